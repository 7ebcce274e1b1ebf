// Package local keeps objects as files below one folder.
//
// # What a Put does
//
// The body goes into a staging file beside its target (".sluice-put-" and 26 random characters), which is then renamed over
// the target, or, with IfAbsent, linked to it: link(2) fails when the target is there, so two writers can't both win. A
// killed process leaves at most its staging files; List hides them, and CleanStaging removes old ones.
//
// Options.Sync is off by default, as in Hadoop's own local file system: what was put survives the end of the process, but
// after a power failure the newest files may be empty or missing. Switch it on where tables live on local disks for good.
//
// # Hadoop's checksum sidecars
//
// Hadoop's local file system keeps a checksum of "x" in ".x.crc" and refuses to read "x" when the two differ (table format
// 11.4). Replacing or deleting "x" therefore removes ".x.crc" first, and List hides it while "x" is there. Files without
// sidecar are fine for Hadoop.
//
// # Symbolic links
//
// Links inside the root are followed as long as they stay inside; one that leads out, or is absolute, is an error
// (storage.ErrName) and never followed. The root itself may be a link.
package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sluicelake/sluice/storage"
)

// Options of New.
type Options struct {
	// Sync makes Put and Copy wait until file and folder are on the disk (fsync). Default off; see the package comment.
	Sync bool
	// ReadOnly refuses every Put, Copy and Delete with storage.ErrPermission.
	ReadOnly bool
}

// Store is a folder. It holds no open files between calls.
type Store struct {
	root    string // absolute
	opts    Options
	buffers sync.Pool
}

const (
	// copyBuffer is how much of a body is read at once, in bytes.
	copyBuffer = 256 << 10
	// writePiece bounds a write. For a longer one Linux takes larger pages, which it has to put together where memory is in
	// pieces, or to ask for where a host has taken back what was free: up to five times the time of the write.
	writePiece = 64 << 10
	// copyRound is how much a file system copies between two looks at the context.
	copyRound = 64 << 20
)

// New returns the store below root, a path or a file URL (see Path). The folder need not exist: reading finds nothing then,
// and the first Put makes it.
func New(root string, opts Options) (*Store, error) {
	dir, err := Path(root)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, &storage.Error{Op: "open", URL: dir, Err: errors.New("it is a file, not a folder")}
	}
	s := &Store{root: dir, opts: opts}
	s.buffers.New = func() any { b := make([]byte, copyBuffer); return &b }
	return s, nil
}

// Path turns a path, "file:/path" or "file:///path" into an absolute path of this machine. As in Hadoop the text after the
// scheme is taken as it stands: "%20" is three characters, not a space.
func Path(url string) (string, error) {
	p := url
	if len(p) >= 5 && strings.EqualFold(p[:5], "file:") {
		p = p[5:]
		if rest, ok := strings.CutPrefix(p, "//"); ok {
			host, _, _ := strings.Cut(rest, "/")
			if host != "" && host != "localhost" {
				return "", fmt.Errorf("open %q: a file URL can't name the host %q; write file:///path", url, host)
			}
			p = rest[len(host):]
		}
		if !strings.HasPrefix(p, "/") {
			return "", fmt.Errorf("open %q: a file URL needs an absolute path, as in file:///data/orders", url)
		}
	}
	if p == "" {
		return "", fmt.Errorf("open %q: the path is empty", url)
	}
	if strings.IndexByte(p, 0) >= 0 {
		return "", fmt.Errorf("open %q: the path holds a NUL byte", url)
	}
	abs, err := filepath.Abs(filepath.FromSlash(p))
	if err != nil {
		return "", fmt.Errorf("open %q: %w", url, err)
	}
	return abs, nil
}

// Traits of a file system.
func (s *Store) Traits() storage.Traits {
	return storage.Traits{
		AtomicIfAbsent: true, ConsistentList: true, Dirs: true,
		ServerCopy: runtime.GOOS == "linux", // copy_file_range
	}
}

// URL is the absolute path.
func (s *Store) URL() string { return s.root }

// Open opens the file. A folder is no object: storage.ErrNotExist.
func (s *Store) Open(ctx context.Context, name string) (storage.Object, error) {
	f, info, err := s.open(ctx, name)
	if err != nil {
		return nil, s.fail("open", name, err)
	}
	return &file{store: s, name: name, f: f, size: info.Size(), etag: etag(info)}, nil
}

func (s *Store) open(ctx context.Context, name string) (*os.File, fs.FileInfo, error) {
	if err := s.check(ctx, name); err != nil {
		return nil, nil, err
	}
	root, err := os.OpenRoot(s.root)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	// Without O_NONBLOCK a named pipe in the folder would block us for ever.
	f, err := root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%w: it is a %s, not a file", storage.ErrNotExist, kind(info))
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

func kind(info fs.FileInfo) string {
	if info.IsDir() {
		return "folder"
	}
	return "special file (" + info.Mode().Type().String() + ")"
}

// Put stores the body; see the package comment.
func (s *Store) Put(ctx context.Context, name string, body io.Reader, opts storage.PutOptions) (storage.Info, error) {
	checked := storage.CheckedBody(ctx, body, opts.Size)
	info, err := s.put(ctx, name, opts.IfAbsent, func(f *os.File) error {
		buf := s.buffers.Get().(*[]byte)
		defer s.buffers.Put(buf)
		_, err := io.CopyBuffer(pieces{f}, checked, *buf)
		return err
	})
	if err != nil {
		return storage.Info{}, s.fail("put", name, err)
	}
	return info, nil
}

// put makes a file of what fill writes.
func (s *Store) put(ctx context.Context, name string, ifAbsent bool, fill func(*os.File) error) (info storage.Info, err error) {
	if err := s.checkWrite(ctx, name); err != nil {
		return info, err
	}
	root, err := s.makeRoot()
	if err != nil {
		return info, err
	}
	defer root.Close()
	if ifAbsent {
		// A writer that has lost already need not send its body. The link below decides.
		if _, err := root.Lstat(filepath.FromSlash(name)); err == nil {
			return info, storage.ErrExist
		}
	}
	staged, f, err := s.stage(root, path.Dir(name))
	if err != nil {
		return info, err
	}
	defer func() {
		if removeErr := root.Remove(staged); err == nil && removeErr != nil && !errors.Is(removeErr, fs.ErrNotExist) {
			err = removeErr
		}
	}()
	meta, err := s.finish(f, fill(f))
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = s.publish(root, staged, name, ifAbsent)
	}
	if err != nil {
		return info, err
	}
	return infoOf(name, meta), nil
}

// pieces writes in pieces.
type pieces struct{ f *os.File }

func (p pieces) Write(b []byte) (n int, err error) {
	for len(b) > n && err == nil {
		var m int
		m, err = p.f.Write(b[n:min(len(b), n+writePiece)])
		n += m
	}
	return n, err
}

// RangesOf is for files of any local store.
func (p pieces) RangesOf(from storage.Object) func(context.Context, storage.Range) error {
	src, ok := from.(*file)
	if !ok {
		return nil
	}
	return func(ctx context.Context, r storage.Range) error {
		src.position.Lock()
		defer src.position.Unlock()
		if _, err := src.f.Seek(r.Off, io.SeekStart); err != nil {
			return err
		}
		n, err := transfer(ctx, p.f, src.f, r.Len)
		if err == nil && n < r.Len {
			err = src.store.fail("read", src.name, fmt.Errorf("%d of %d bytes at offset %d: %w", n, r.Len, r.Off, io.ErrUnexpectedEOF))
		}
		return err
	}
}

// transfer appends up to n bytes of a file, from its position on, to another one; on Linux the kernel moves them
// (copy_file_range).
func transfer(ctx context.Context, to, from *os.File, n int64) (done int64, err error) {
	for done < n && err == nil {
		if err = ctx.Err(); err == nil {
			var m int64
			m, err = io.CopyN(to, from, min(n-done, copyRound))
			done += m
		}
	}
	if err == io.EOF {
		err = nil
	}
	return done, err
}

// finish describes a staging file that was filled, unless that failed.
func (s *Store) finish(f *os.File, err error) (fs.FileInfo, error) {
	if err == nil && s.opts.Sync {
		err = f.Sync()
	}
	if err != nil {
		return nil, err
	}
	return f.Stat()
}

// publish gives the staged file its name.
func (s *Store) publish(root *os.Root, staged, name string, ifAbsent bool) error {
	target := filepath.FromSlash(name)
	// The sidecar goes first: a file without one is sound, a new file with an old one is not.
	if err := root.Remove(sidecar(target)); err != nil && !missing(err) {
		return err
	}
	if !ifAbsent {
		if err := root.Rename(staged, target); err != nil {
			return err
		}
	} else if err := linkNew(root, staged, target); err != nil {
		return err
	}
	if s.opts.Sync {
		return syncFolders(root, filepath.Dir(target))
	}
	return nil
}

// linkNew gives the staged file its name if no file has it. On file systems without hard links it renames without replacing
// where the system can do that.
func linkNew(root *os.Root, staged, target string) error {
	err := root.Link(staged, target)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	if !errors.Is(err, syscall.EPERM) && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EMLINK) {
		return err
	}
	renameErr := renameNew(root, staged, target)
	if renameErr == nil || errors.Is(renameErr, fs.ErrExist) {
		return renameErr
	}
	return fmt.Errorf("this file system has neither hard links (%w) nor rename without replace (%w), so two writers could not be kept apart", err, renameErr)
}

// stage makes a staging file in the folder, and the folder when it is missing.
func (s *Store) stage(root *os.Root, folder string) (string, *os.File, error) {
	dir := filepath.FromSlash(folder)
	for attempt := 0; ; attempt++ {
		staged := filepath.Join(dir, stagingPrefix+storage.NewToken())
		f, err := root.OpenFile(staged, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if err == nil {
			return staged, f, nil
		}
		// Somebody may remove the empty folder between our two calls.
		if !errors.Is(err, fs.ErrNotExist) || attempt == 5 {
			return "", nil, err
		}
		if err := root.MkdirAll(dir, 0o777); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", nil, err
		}
	}
}

func (s *Store) makeRoot() (*os.Root, error) {
	root, err := os.OpenRoot(s.root)
	if !errors.Is(err, fs.ErrNotExist) {
		return root, err
	}
	if err := os.MkdirAll(s.root, 0o777); err != nil {
		return nil, err
	}
	return os.OpenRoot(s.root)
}

// syncFolders syncs a folder and those above it, up to the root: any of them may be new.
func syncFolders(root *os.Root, dir string) error {
	for ; ; dir = filepath.Dir(dir) {
		d, err := root.Open(dir)
		if err != nil {
			return err
		}
		err = d.Sync()
		if closeErr := d.Close(); err == nil {
			err = closeErr
		}
		if err != nil || dir == "." {
			return err
		}
	}
}

// Stat describes a file or a folder.
func (s *Store) Stat(ctx context.Context, name string) (storage.Info, error) {
	info, err := s.stat(ctx, name)
	if err != nil {
		return storage.Info{}, s.fail("stat", name, err)
	}
	return info, nil
}

func (s *Store) stat(ctx context.Context, name string) (storage.Info, error) {
	if err := s.check(ctx, name); err != nil {
		return storage.Info{}, err
	}
	root, err := os.OpenRoot(s.root)
	if err != nil {
		return storage.Info{}, err
	}
	defer root.Close()
	info, err := root.Stat(filepath.FromSlash(name))
	if err != nil {
		return storage.Info{}, err
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return storage.Info{}, fmt.Errorf("%w: it is a %s", storage.ErrNotExist, kind(info))
	}
	return infoOf(name, info), nil
}

// Delete removes a file and its sidecar, or an empty folder.
func (s *Store) Delete(ctx context.Context, name string) error {
	if err := s.delete(ctx, name); err != nil && !missing(err) {
		return s.fail("delete", name, err)
	}
	return nil
}

func (s *Store) delete(ctx context.Context, name string) error {
	if err := s.checkWrite(ctx, name); err != nil {
		return err
	}
	root, err := os.OpenRoot(s.root)
	if err != nil {
		return err
	}
	defer root.Close()
	target := filepath.FromSlash(name)
	if err := root.Remove(sidecar(target)); err != nil && !missing(err) {
		return err
	}
	err = root.Remove(target)
	if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST) {
		if left, listErr := removeStaging(root, target); listErr == nil && left {
			return root.Remove(target)
		}
	}
	return err
}

// removeStaging removes the staging files of a folder that has nothing else in it: List shows it as empty, so it is to be
// deleted as an empty one. It reports whether there were some. Killed processes leave them.
func removeStaging(root *os.Root, folder string) (bool, error) {
	d, err := root.Open(folder)
	if err != nil {
		return false, err
	}
	entries, err := d.ReadDir(-1)
	if closeErr := d.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		if !isStaging(e.Name()) {
			return false, nil
		}
	}
	for _, e := range entries {
		if err := root.Remove(filepath.Join(folder, e.Name())); err != nil && !missing(err) {
			return false, err
		}
	}
	return len(entries) > 0, nil
}

// Copy copies through a staging file.
func (s *Store) Copy(ctx context.Context, from, to string) error {
	_, err := s.CopyFrom(ctx, s, from, to)
	return err
}

// CopyFrom copies a file of another folder in the same way.
func (s *Store) CopyFrom(ctx context.Context, source storage.Store, from, to string) (storage.Info, error) {
	other, ok := source.(*Store)
	if !ok {
		return storage.Info{}, errors.ErrUnsupported
	}
	if err := s.checkWrite(ctx, to); err != nil {
		return storage.Info{}, s.fail("copy", to, err)
	}
	f, meta, err := other.open(ctx, from)
	if err != nil {
		return storage.Info{}, other.fail("copy", from, err)
	}
	defer f.Close()
	if other.root == s.root && from == to {
		return infoOf(to, meta), nil
	}
	info, err := s.put(ctx, to, false, func(out *os.File) error {
		_, err := transfer(ctx, out, f, math.MaxInt64)
		return err
	})
	if err != nil {
		return storage.Info{}, s.fail("copy", to, err)
	}
	return info, nil
}

// CleanStaging removes staging files older than age that killed processes left anywhere below the folder prefix, and tells
// how many. Choose an age longer than any Put takes.
func (s *Store) CleanStaging(ctx context.Context, prefix string, age time.Duration) (int, error) {
	if s.opts.ReadOnly {
		return 0, s.fail("delete", prefix, errReadOnly)
	}
	removed := 0
	w := walker{store: s, ctx: ctx, recursive: true, staging: func(root *os.Root, name string, info fs.FileInfo) error {
		if time.Since(info.ModTime()) < age {
			return nil
		}
		err := root.Remove(filepath.FromSlash(name))
		if err == nil {
			removed++
		} else if missing(err) {
			err = nil
		}
		return err
	}}
	for _, err := range w.list(prefix) {
		if err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// List walks the folder.
func (s *Store) List(ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Info, error] {
	w := walker{store: s, ctx: ctx, recursive: opts.Recursive}
	return w.list(prefix)
}

// walker is one List.
type walker struct {
	store     *Store
	ctx       context.Context
	recursive bool
	staging   func(root *os.Root, name string, info fs.FileInfo) error // told of staging files, when set
}

func (w walker) list(prefix string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		if _, err := w.walk(prefix, yield); err != nil {
			yield(storage.Info{}, w.store.fail("list", prefix, err))
		}
	}
}

// walk opens the root and visits the prefix. It reports false when the consumer has stopped.
func (w walker) walk(prefix string, yield func(storage.Info, error) bool) (bool, error) {
	if err := storage.CheckPrefix(prefix); err != nil {
		return false, err
	}
	root, err := os.OpenRoot(w.store.root)
	if missing(err) {
		return true, w.ctx.Err()
	}
	if err != nil {
		return false, err
	}
	defer root.Close()
	return w.visit(root, prefix, nil, yield)
}

// visit lists one folder; above are the folders that lead to it.
func (w walker) visit(root *os.Root, dir string, above []fs.FileInfo, yield func(storage.Info, error) bool) (bool, error) {
	if err := w.ctx.Err(); err != nil {
		return false, err
	}
	self, found, err := w.children(root, dir)
	if err != nil {
		return false, err
	}
	for _, above := range above {
		if os.SameFile(self, above) {
			return false, fmt.Errorf("%w: the link %q leads back to a folder above it", storage.ErrName, dir)
		}
	}
	for _, child := range found {
		if w.recursive && child.Dir {
			if ok, err := w.visit(root, child.Name, append(above, self), yield); !ok || err != nil {
				return ok, err
			}
			continue
		}
		if err := w.ctx.Err(); err != nil {
			return false, err
		}
		if !yield(child, nil) {
			return false, nil
		}
	}
	return true, nil
}

// children reads one folder, in the order of the List: by name, and in a recursive one a folder where its files belong
// ("a.txt" before "a/x"). What vanishes meanwhile is left out.
func (w walker) children(root *os.Root, dir string) (fs.FileInfo, []storage.Info, error) {
	osDir := filepath.FromSlash(dir)
	if dir == "" {
		osDir = "."
	}
	self, err := root.Stat(osDir)
	if missing(err) || err == nil && !self.IsDir() {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	d, err := root.Open(osDir)
	if missing(err) {
		return self, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	entries, err := d.ReadDir(-1)
	if closeErr := d.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, nil, err
	}
	there := make(map[string]bool, len(entries))
	for _, e := range entries {
		there[e.Name()] = true
	}
	var out []storage.Info
	for _, e := range entries {
		info, ok, err := w.child(root, dir, e, there)
		if err != nil {
			return nil, nil, err
		}
		if ok {
			out = append(out, info)
		}
	}
	w.sort(out)
	return self, out, nil
}

func (w walker) sort(infos []storage.Info) {
	if !w.recursive {
		slices.SortFunc(infos, storage.CompareInfo)
		return
	}
	key := func(i storage.Info) string {
		if i.Dir {
			return i.Name + "/"
		}
		return i.Name
	}
	slices.SortFunc(infos, func(a, b storage.Info) int { return strings.Compare(key(a), key(b)) })
}

// child turns a folder entry into an Info; ok is false for what is no object: staging files, sidecars of files that are
// there, pipes and dangling links.
func (w walker) child(root *os.Root, dir string, e fs.DirEntry, there map[string]bool) (_ storage.Info, ok bool, _ error) {
	name := storage.Join(dir, e.Name())
	if isStaging(e.Name()) {
		if w.staging == nil {
			return storage.Info{}, false, nil
		}
		info, err := e.Info()
		if err == nil {
			err = w.staging(root, name, info)
		}
		return storage.Info{}, false, dropMissing(err)
	}
	if of, isSidecar := sidecarOf(e.Name()); isSidecar && there[of] {
		return storage.Info{}, false, nil
	}
	if err := storage.CheckName(name); err != nil {
		return storage.Info{}, false, err
	}
	info, err := e.Info()
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		info, err = root.Stat(filepath.FromSlash(name))
	}
	if err != nil {
		if err = dropMissing(err); err != nil {
			err = fmt.Errorf("%q: %w", name, err)
		}
		return storage.Info{}, false, err
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return storage.Info{}, false, nil
	}
	return infoOf(name, info), true, nil
}

func infoOf(name string, info fs.FileInfo) storage.Info {
	if info.IsDir() {
		return storage.Info{Name: name, Modified: info.ModTime(), Dir: true}
	}
	return storage.Info{Name: name, Size: info.Size(), Modified: info.ModTime(), ETag: etag(info)}
}

// etag changes whenever a file is replaced: it is a new inode then. A file that others write in place changes it through
// its size and time.
func etag(info fs.FileInfo) string {
	return fmt.Sprintf("%x-%x-%x", inode(info), info.ModTime().UnixNano(), info.Size())
}

// stagingPrefix and a token name a staging file. The name ends in no extension that a reader of tables looks for.
const stagingPrefix = ".sluice-put-"

func isStaging(base string) bool {
	token, ok := strings.CutPrefix(base, stagingPrefix)
	if !ok || len(token) != 26 {
		return false
	}
	return strings.Trim(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

func sidecar(name string) string {
	return filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+".crc")
}

// sidecarOf tells the file that a sidecar belongs to.
func sidecarOf(base string) (string, bool) {
	if len(base) <= len(".")+len(".crc") || base[0] != '.' || !strings.HasSuffix(base, ".crc") {
		return "", false
	}
	return base[1 : len(base)-len(".crc")], true
}

func (s *Store) check(ctx context.Context, name string) error {
	if err := storage.CheckName(name); err != nil {
		return err
	}
	if runtime.GOOS == "windows" && strings.ContainsAny(name, `\:`) {
		return fmt.Errorf("%w: %q can't be stored on Windows", storage.ErrName, name)
	}
	return ctx.Err()
}

var errReadOnly = fmt.Errorf("%w: the store was opened read-only", storage.ErrPermission)

func (s *Store) checkWrite(ctx context.Context, name string) error {
	if err := s.check(ctx, name); err != nil {
		return err
	}
	if isStaging(path.Base(name)) {
		return fmt.Errorf("%w: %q is kept for staging files", storage.ErrName, name)
	}
	if s.opts.ReadOnly {
		return errReadOnly
	}
	return nil
}

// missing: the file or a folder above it is not there, or what should be a folder is a file.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

func dropMissing(err error) error {
	if missing(err) {
		return nil
	}
	return err
}

func (s *Store) fail(op, name string, err error) error {
	return &storage.Error{Op: op, URL: s.root, Name: name, Err: classify(op, err)}
}

// classify gives an error of the operating system the meaning that callers ask for.
func classify(op string, err error) error {
	cause := err
	switch e := err.(type) { //nolint:errorlint // only the outermost: its path is in the storage.Error already
	case *fs.PathError:
		cause = e.Err
	case *os.LinkError:
		cause = e.Err
	}
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: %w", storage.ErrNoSpace, cause)
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w: the file system is mounted read-only", storage.ErrPermission)
	case errors.Is(err, syscall.ENAMETOOLONG):
		return fmt.Errorf("%w: %w", storage.ErrName, cause)
	case escapes(err):
		return fmt.Errorf("%w: a link on the way leads out of the store's folder", storage.ErrName)
	case errors.Is(err, syscall.EISDIR), op == "put" && errors.Is(err, syscall.ENOTEMPTY):
		return fmt.Errorf("a folder has this name: %w", cause)
	case errors.Is(err, syscall.ENOTDIR):
		if op == "open" || op == "stat" {
			return fmt.Errorf("%w: %w", storage.ErrNotExist, cause)
		}
		return fmt.Errorf("a file has the name of a folder on the way: %w", cause)
	case temporary(err):
		return fmt.Errorf("%w: %w", storage.ErrTemporary, cause)
	}
	return cause
}

// escapes knows the error of os.Root for a link that leads out; os keeps its value to itself.
func escapes(err error) bool {
	var pathErr *fs.PathError
	var linkErr *os.LinkError
	switch {
	case errors.As(err, &pathErr):
		err = pathErr.Err
	case errors.As(err, &linkErr):
		err = linkErr.Err
	}
	return err.Error() == "path escapes from parent"
}

// temporary lists what network file systems and a busy machine answer now and then.
func temporary(err error) bool {
	for _, errno := range []syscall.Errno{syscall.EINTR, syscall.EAGAIN, syscall.ESTALE, syscall.ETIMEDOUT, syscall.EMFILE, syscall.ENFILE} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// file is an open file. A replaced file stays readable through it, with its old content.
type file struct {
	store *Store
	name  string
	f     *os.File
	size  int64
	etag  string

	position sync.Mutex // of f: ReadAt has no use for it
}

func (f *file) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, f.store.fail("read", f.name, err)
	}
	n, err := f.f.ReadAt(p, off)
	if err != nil && err != io.EOF {
		err = f.store.fail("read", f.name, fmt.Errorf("%d bytes at offset %d: %w", len(p), off, err))
	}
	return n, err
}

func (f *file) Size() int64  { return f.size }
func (f *file) ETag() string { return f.etag }

func (f *file) Close() error {
	if err := f.f.Close(); err != nil {
		return f.store.fail("close", f.name, err)
	}
	return nil
}
