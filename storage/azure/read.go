package azure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/sluicelake/sluice/storage"
)

// metadata looks a name up whose case the service or HTTP may have changed.
func metadata(all map[string]*string, name string) string {
	for key, v := range all {
		if strings.EqualFold(key, name) {
			return value(v)
		}
	}
	return ""
}

func isFolder(all map[string]*string) bool {
	return strings.EqualFold(metadata(all, folderMetadata), "true")
}

// errFolder is what a folder is to those who ask for an object.
var errFolder = fmt.Errorf("%w: it is a folder", storage.ErrNotExist)

// Stat asks for the blob's properties.
func (s *Store) Stat(ctx context.Context, name string) (storage.Info, error) {
	info, err := s.stat(ctx, name)
	if err != nil {
		return storage.Info{}, s.fail("stat", name, err)
	}
	return info, nil
}

func (s *Store) stat(ctx context.Context, name string) (storage.Info, error) {
	if err := checkName(name); err != nil {
		return storage.Info{}, err
	}
	out, err := s.blob(name).GetProperties(ctx, nil)
	if err != nil {
		return storage.Info{}, err
	}
	if isFolder(out.Metadata) {
		return storage.Info{}, errFolder
	}
	return storage.Info{
		Name: name, Size: value(out.ContentLength), ETag: etag(out.ETag), Modified: modified(out.LastModified),
		Token: metadata(out.Metadata, tokenMetadata),
	}, nil
}

// Open asks for the blob's first bytes, which also tells its size and ETag.
func (s *Store) Open(ctx context.Context, name string) (storage.Object, error) {
	o, err := s.open(ctx, name)
	if err != nil {
		return nil, s.fail("open", name, err)
	}
	return o, nil
}

func (s *Store) open(ctx context.Context, name string) (*object, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	out, err := s.blob(name).DownloadStream(ctx, &blob.DownloadStreamOptions{Range: blob.HTTPRange{Count: headBytes}})
	if status(err) == http.StatusRequestedRangeNotSatisfiable { // an empty blob has no first byte
		info, err := s.stat(ctx, name)
		if err != nil {
			return nil, err
		}
		return &object{store: s, name: name, size: info.Size, etag: info.ETag}, nil
	}
	if err != nil {
		return nil, err
	}
	defer out.Body.Close()
	if isFolder(out.Metadata) {
		return nil, errFolder
	}
	size := value(out.ContentLength)
	if out.ContentRange != nil {
		if size, err = totalSize(*out.ContentRange); err != nil {
			return nil, err
		}
	}
	if size < 0 {
		return nil, errors.New("the store tells no size")
	}
	head := make([]byte, min(size, headBytes))
	if _, err := io.ReadFull(out.Body, head); err != nil {
		return nil, fmt.Errorf("the first bytes: %w", cutShort(ctx, err))
	}
	return &object{store: s, name: name, size: size, etag: etag(out.ETag), head: head}, nil
}

// totalSize reads the 1234 of "bytes 0-99/1234".
func totalSize(contentRange string) (int64, error) {
	_, total, _ := strings.Cut(contentRange, "/")
	size, err := strconv.ParseInt(total, 10, 64)
	if err != nil || size < 0 {
		return 0, fmt.Errorf("the store's Content-Range %q tells no size", contentRange)
	}
	return size, nil
}

// object reads ranges, each by a request of its own that holds only for the ETag seen by Open.
type object struct {
	store *Store
	name  string
	size  int64
	etag  string
	head  []byte // the first bytes
}

func (o *object) Size() int64  { return o.size }
func (o *object) ETag() string { return o.etag }
func (o *object) Close() error { return nil }

func (o *object) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	n, err := o.readAt(ctx, p, off)
	if err != nil && err != io.EOF {
		err = o.store.fail("read", o.name, fmt.Errorf("%d bytes at offset %d: %w", len(p), off, err))
	}
	return n, err
}

func (o *object) readAt(ctx context.Context, p []byte, off int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	var atEnd error
	switch {
	case off < 0:
		return 0, errors.New("negative offset")
	case len(p) == 0:
		return 0, nil
	case off >= o.size:
		return 0, io.EOF
	case int64(len(p)) > o.size-off:
		p, atEnd = p[:o.size-off], io.EOF
	}
	if end := off + int64(len(p)); end <= int64(len(o.head)) {
		return copy(p, o.head[off:end]), atEnd
	}
	n, err := o.get(ctx, p, off)
	if err == nil {
		err = atEnd
	}
	return n, err
}

func (o *object) get(ctx context.Context, p []byte, off int64) (int, error) {
	opts := &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: off, Count: int64(len(p))}}
	if o.etag != "" {
		opts.AccessConditions = &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: quoted(o.etag)}}
	}
	out, err := o.store.blob(o.name).DownloadStream(ctx, opts)
	if is(err, bloberror.ConditionNotMet) || status(err) == http.StatusRequestedRangeNotSatisfiable {
		return 0, fmt.Errorf("%w: %w", storage.ErrChanged, classify(err))
	}
	if err != nil {
		return 0, err
	}
	defer out.Body.Close()
	if got := etag(out.ETag); got != o.etag {
		return 0, fmt.Errorf("%w: its ETag was %s, now %s", storage.ErrChanged, o.etag, got)
	}
	if want := fmt.Sprintf("bytes %d-", off); !strings.HasPrefix(value(out.ContentRange), want) {
		return 0, fmt.Errorf("asked for a range, the store answered Content-Range %q", value(out.ContentRange))
	}
	n, err := io.ReadFull(out.Body, p)
	if err != nil {
		return n, cutShort(ctx, err)
	}
	return n, nil
}

// cutShort marks a body that ended early: the connection broke, and a new request may do better.
func cutShort(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%w: %w", storage.ErrTemporary, err)
}

// List asks for pages of 5000 and holds the entries until all are known: how the service sorts names depends on the kind of
// the account. Folders are told by a prefix that blobs share, never by an empty blob that stands for one.
func (s *Store) List(ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		infos, err := s.list(ctx, prefix, opts)
		if err != nil {
			yield(storage.Info{}, s.fail("list", prefix, err))
			return
		}
		for _, info := range infos {
			if err := ctx.Err(); err != nil {
				yield(storage.Info{}, s.fail("list", prefix, err))
				return
			}
			if !yield(info, nil) {
				return
			}
		}
	}
}

func (s *Store) list(ctx context.Context, prefix string, opts storage.ListOptions) ([]storage.Info, error) {
	if err := checkPrefix(prefix); err != nil {
		return nil, err
	}
	full := storage.Join(s.prefix, prefix)
	if full != "" {
		full += "/"
	}
	var all []storage.Info
	var err error
	if opts.Recursive {
		all, err = s.listFlat(ctx, full)
	} else {
		all, err = s.listFolder(ctx, full)
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, storage.CompareInfo)
	return slices.CompactFunc(all, func(a, b storage.Info) bool { return storage.CompareInfo(a, b) == 0 }), nil
}

func (s *Store) listFlat(ctx context.Context, prefix string) (all []storage.Info, err error) {
	pages := s.client.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{
		Prefix: &prefix, Include: container.ListBlobsInclude{Metadata: true},
	})
	for pages.More() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		if page.Segment != nil {
			all = s.blobs(all, page.Segment.BlobItems)
		}
	}
	return all, nil
}

func (s *Store) listFolder(ctx context.Context, prefix string) (all []storage.Info, err error) {
	pages := s.client.NewListBlobsHierarchyPager("/", &container.ListBlobsHierarchyOptions{
		Prefix: &prefix, Include: container.ListBlobsInclude{Metadata: true},
	})
	for pages.More() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		if page.Segment == nil {
			continue
		}
		all = s.blobs(all, page.Segment.BlobItems)
		for _, folder := range page.Segment.BlobPrefixes {
			if name, ok := s.name(strings.TrimSuffix(value(folder.Name), "/")); ok {
				all = append(all, storage.Info{Name: name, Dir: true})
			}
		}
	}
	return all, nil
}

func (s *Store) blobs(all []storage.Info, items []*container.BlobItem) []storage.Info {
	for _, item := range items {
		name, ok := s.name(value(item.Name))
		if !ok || isFolder(item.Metadata) || item.Properties == nil {
			continue
		}
		all = append(all, storage.Info{
			Name: name, Size: value(item.Properties.ContentLength), ETag: etag(item.Properties.ETag),
			Modified: modified(item.Properties.LastModified),
		})
	}
	return all
}

// name turns a listed name into one below the root; ok is false where it can't be one.
func (s *Store) name(full string) (name string, ok bool) {
	name = full
	if s.prefix != "" {
		if name, ok = strings.CutPrefix(full, s.prefix+"/"); !ok {
			return "", false
		}
	}
	return name, checkName(name) == nil
}
