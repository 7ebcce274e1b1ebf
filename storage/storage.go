// Package storage is the lowest floor: named byte objects below one root.
//
// A name is a slash-separated relative path ("2024-01-01/f1.parquet"). Every name passes [CheckName] before it reaches a
// back end, so nothing in a table's own files can make us read or write outside the root of the store that was opened.
//
// Back ends live in sub-packages (local, mem, s3, gcs, azure, hdfs). Layers (ahead, retry, limit, count, fault, slow) are a
// Store around a Store. All of them pass the one suite in storage/storagetest. Package storage/open picks a back end for a
// URL.
package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"strings"
	"time"
	"unicode/utf8"
)

// Errors that every back end and layer reports, wrapped in a [*Error]. Compare with errors.Is.
var (
	// ErrNotExist: the object is not there. It is fs.ErrNotExist, so errors.Is works with either.
	ErrNotExist = fs.ErrNotExist
	// ErrExist: Put with IfAbsent found an object of that name. The object that was there is untouched.
	ErrExist = fs.ErrExist
	// ErrName: the name could leave the root or can't be stored; see CheckName.
	ErrName = errors.New("unsafe object name")
	// ErrPermission: the store refused our credentials or the file mode.
	ErrPermission = fs.ErrPermission
	// ErrChanged: the object was replaced between Open and a read.
	ErrChanged = errors.New("object changed while it was read")
	// ErrNoSpace: the store is full.
	ErrNoSpace = errors.New("no space left in the store")
	// ErrTemporary: the store was busy, slow or out of reach; the same request may succeed later. The request may have been
	// carried out all the same: only its answer is missing.
	ErrTemporary = errors.New("temporary failure of the store")
)

// Error says what was done to which object when something failed.
type Error struct {
	Op   string // "open", "read", "put", "list", "stat", "delete", "copy"
	URL  string // store URL
	Name string // object name below the root; may be empty for list
	Err  error
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s %s: %v", e.Op, Join(e.URL, e.Name), e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Info describes an object or, in a non-recursive List, a folder.
type Info struct {
	Name     string // full name below the root; a folder's name has no trailing slash
	Size     int64  // bytes; 0 for a folder
	ETag     string // opaque version of the content; empty where the store has none
	Modified time.Time
	Dir      bool
	// Token is the PutOptions.Token that the object was stored with. Only Put and Stat fill it, and only where
	// Traits.Tokens says so.
	Token string
}

// Object is an open object for random reads. Safe for use by several goroutines.
type Object interface {
	// ReadAt fills p from byte off. Like io.ReaderAt: fewer bytes than len(p) come with an error, io.EOF at the end.
	ReadAt(ctx context.Context, p []byte, off int64) (int, error)
	Size() int64
	ETag() string
	Close() error
}

// PutOptions of Store.Put.
type PutOptions struct {
	// IfAbsent makes Put fail with ErrExist when an object of that name is there. Atomic where Traits says so.
	IfAbsent bool
	// Size of the body when known, else 0: lets a back end choose one request or many. A body that turns out to be
	// shorter or longer than a Size above 0 fails the Put, and nothing is stored.
	Size int64
	// Token marks this Put, when set, with a name that no other Put has. A store with Traits.Tokens keeps it with the
	// object, so that a Put whose answer was lost can be told from a Put of somebody else that stored the same bytes.
	Token string
}

// ListOptions of Store.List.
type ListOptions struct {
	// Recursive lists every object below the prefix and no folders. Otherwise the direct children, folders among them.
	Recursive bool
}

// Traits say what a back end can promise.
type Traits struct {
	AtomicIfAbsent bool // Put with IfAbsent can have at most one winner
	ConsistentList bool // an object that was put is in the next List
	Dirs           bool // folders exist by themselves (file systems)
	ServerCopy     bool // Copy does not pass the bytes through this process
	Tokens         bool // Stat tells the Token of the Put that stored the object
}

// Store is a root with named objects below it. Implementations are safe for concurrent use.
type Store interface {
	// Open returns the object for reading, or ErrNotExist.
	Open(ctx context.Context, name string) (Object, error)
	// Put stores body whole or not at all: no reader ever sees a part of it. Without IfAbsent it replaces.
	Put(ctx context.Context, name string, body io.Reader, opts PutOptions) (Info, error)
	// List yields what lies below the folder prefix ("" is the root), in byte order of names. A prefix that does not
	// exist yields nothing. After an error the sequence ends.
	List(ctx context.Context, prefix string, opts ListOptions) iter.Seq2[Info, error]
	// Stat describes one object, or ErrNotExist. Folders of a file system are reported with Dir set.
	Stat(ctx context.Context, name string) (Info, error)
	// Delete removes an object. Deleting what is not there is no error. With Traits.Dirs it also removes an empty folder,
	// and refuses one that is not empty.
	Delete(ctx context.Context, name string) error
	// Copy copies an object inside this store, replacing the target, whole or not at all.
	Copy(ctx context.Context, from, to string) error
	Traits() Traits
	// URL names the root for people and logs: "/data/orders", "s3://lake/orders". It holds no secrets.
	URL() string
}

// maxName is the longest name in bytes. S3 takes keys of 1024 bytes, Linux paths of 4096.
const maxName = 4096

// CheckName refuses, with ErrName, every name that could leave the root or mean different objects in different back ends:
// the empty name, absolute paths, segments that are empty (so also a slash at the end) or backslashes only, the segments "."
// and ".." (also where backslashes part them), NUL bytes, bytes that are no UTF-8, and names longer than 4096 bytes.
//
// Everything else is a name: spaces, percent signs, backslashes, even line breaks occur in the partition paths of tables
// whose values were not encoded.
func CheckName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: empty", ErrName)
	case len(name) > maxName:
		return fmt.Errorf("%w: %d bytes, the longest name has %d", ErrName, len(name), maxName)
	case !utf8.ValidString(name):
		return fmt.Errorf("%w: %q is not UTF-8", ErrName, name)
	case strings.IndexByte(name, 0) >= 0:
		return fmt.Errorf("%w: %q holds a NUL byte", ErrName, name)
	}
	for seg := range strings.SplitSeq(name, "/") {
		if strings.Trim(seg, `\`) == "" {
			return fmt.Errorf("%w: %q has an empty segment", ErrName, name)
		}
		for part := range strings.SplitSeq(seg, `\`) {
			if part == "." || part == ".." {
				return fmt.Errorf("%w: %q would leave its folder", ErrName, name)
			}
		}
	}
	return nil
}

// CheckPrefix is CheckName for the prefix of a List, where "" is the root.
func CheckPrefix(prefix string) error {
	if prefix == "" {
		return nil
	}
	return CheckName(prefix)
}

// CompareInfo orders a List: by the bytes of the names, and where a folder and an object share a name the object first.
func CompareInfo(a, b Info) int {
	if c := strings.Compare(a.Name, b.Name); c != 0 {
		return c
	}
	switch {
	case a.Dir == b.Dir:
		return 0
	case b.Dir:
		return -1
	}
	return 1
}

// Join appends a name to a URL or prefix with exactly one slash between them.
func Join(prefix, name string) string {
	switch {
	case prefix == "":
		return name
	case name == "":
		return prefix
	case strings.HasSuffix(prefix, "/"):
		return prefix + name
	}
	return prefix + "/" + name
}
