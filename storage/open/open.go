// Package open turns a URL into a store.
//
//	/data/orders, data/orders, file:/data/orders, file:///data/orders   a folder of this machine (storage/local)
//	s3://bucket/orders, s3a://bucket/orders, s3n://bucket/orders        a bucket (storage/s3)
//	gs://bucket/orders                                                  a bucket of Google Cloud Storage (storage/gcs)
//	abfss://container@account.dfs.core.windows.net/orders               a container of Azure Storage (storage/azure);
//	wasbs://container@account.blob.core.windows.net/orders              also abfs, wasb
//	az://container/orders                                               the same, the account from the environment
//	hdfs://namenode:8020/orders                                         HDFS (storage/hdfs), if built with -tags hdfs
//	mem:orders, mem://orders                                            the memory of this process (storage/mem)
//
// As in Hadoop nothing in a URL is decoded: "%20" is three characters.
package open

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/ahead"
	"github.com/sluicelake/sluice/storage/azure"
	"github.com/sluicelake/sluice/storage/count"
	"github.com/sluicelake/sluice/storage/gcs"
	"github.com/sluicelake/sluice/storage/limit"
	"github.com/sluicelake/sluice/storage/local"
	"github.com/sluicelake/sluice/storage/mem"
	"github.com/sluicelake/sluice/storage/retry"
	"github.com/sluicelake/sluice/storage/s3"
)

// Options of Store. The zero value suits a program that is configured by its environment.
type Options struct {
	Local local.Options
	S3    s3.Options
	GCS   gcs.Options
	Azure azure.Options
	// Mem holds the stores of mem: URLs. Without it each such URL is a new, empty store.
	Mem *mem.Hub

	// Retry is how temporary failures of remote stores are repeated; with NoRetry they are not.
	Retry   retry.Options
	NoRetry bool
	// Ahead is how long reads of remote stores are split and sequential ones fetched ahead; with NoAhead they are not.
	Ahead   ahead.Options
	NoAhead bool
	// Limit bounds operations at once and bytes per second.
	Limit limit.Options
	// Count, when set, counts each operation, repeated ones too.
	Count *count.Counter
}

// known names the schemes for error messages.
const known = "a path, file:///path, s3://bucket/folder (also s3a, s3n), gs://bucket/folder, " +
	"abfss://container@account.dfs.core.windows.net/folder (also abfs, wasb, wasbs), az://container/folder, " +
	"hdfs://namenode:8020/folder or mem:name"

// Store opens the store at url. It sends no request: that a folder or bucket is missing shows when it is used.
func Store(ctx context.Context, url string, opts Options) (storage.Store, error) {
	store, remote, err := backEnd(ctx, url, opts)
	if err != nil {
		return nil, err
	}
	if opts.Count != nil {
		store = count.New(store, opts.Count)
	}
	if opts.Limit != (limit.Options{}) {
		store = limit.New(store, opts.Limit)
	}
	// Around the limit, so that an operation holds no slot of the limit while it waits for its next attempt.
	if remote && !opts.NoRetry {
		store = retry.New(store, opts.Retry)
	}
	// Around the retries, so that each part of a long read has its own.
	if remote && !opts.NoAhead {
		store = ahead.New(store, opts.Ahead)
	}
	return store, nil
}

func backEnd(ctx context.Context, url string, opts Options) (store storage.Store, remote bool, err error) {
	switch scheme := Scheme(url); scheme {
	case "", "file":
		store, err = local.New(url, opts.Local)
	case "s3", "s3a", "s3n":
		remote = true
		store, err = s3.New(ctx, url, opts.S3)
	case "gs":
		remote = true
		store, err = gcs.New(ctx, url, opts.GCS)
	case "abfs", "abfss", "wasb", "wasbs", "az":
		remote = true
		store, err = azure.New(ctx, url, opts.Azure)
	case "hdfs":
		remote = true
		store, err = openHDFS(ctx, url)
	case "mem":
		name := strings.TrimPrefix(url[len("mem:"):], "//")
		if opts.Mem != nil {
			store = opts.Mem.Store(name)
		} else {
			store = mem.New(name)
		}
	default:
		err = fmt.Errorf("open %q: unknown scheme %q; known are %s", url, scheme, known)
	}
	if err != nil {
		return nil, false, err // not a nil pointer in an interface
	}
	return store, remote, nil
}

// schemePattern needs two letters, so that C:\data is a path, and what follows the colon must be a slash, so that a folder
// named a:b is one.
var schemePattern = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]+):/`)

// Scheme is the scheme of a URL in lower case, or "" for a path.
func Scheme(url string) string {
	if m := schemePattern.FindStringSubmatch(url); m != nil {
		return strings.ToLower(m[1])
	}
	if len(url) >= 4 && strings.EqualFold(url[:4], "mem:") {
		return "mem"
	}
	return ""
}

// ReadFile reads a small file at a path or URL, of at most so many bytes.
func ReadFile(ctx context.Context, url string, most int64) ([]byte, error) {
	folder, name, err := Split(url)
	if err != nil {
		return nil, err
	}
	store, err := Store(ctx, folder, Options{})
	if err != nil {
		return nil, err
	}
	return storage.ReadAll(ctx, store, name, most)
}

// Split parts the URL of an object or folder into the URL of its folder and its name there, so that
// Store(parent).Open(base) opens it: "s3://b/x/y.parquet" gives "s3://b/x" and "y.parquet", "y.parquet" gives "." and
// "y.parquet". A slash at the end does not count. The root of a bucket or file system has no name: that is an error.
func Split(url string) (parent, base string, err error) {
	head, rest := "", url
	switch scheme := Scheme(url); scheme {
	case "":
	case "file":
		head = url[:len("file:")]
		rest = url[len("file:"):]
		if after, ok := strings.CutPrefix(rest, "//"); ok {
			host, _, _ := strings.Cut(after, "/")
			head, rest = head+"//"+host, after[len(host):]
		}
	case "mem":
		return "", "", fmt.Errorf("split %q: the name of a mem: store has no folders", url)
	default:
		if _, _, found := strings.Cut(url, "://"); !found {
			return "", "", fmt.Errorf("split %q: write %s://bucket/folder", url, scheme)
		}
		at := strings.Index(url, "://") + len("://")
		host, _, _ := strings.Cut(url[at:], "/")
		head, rest = url[:at]+host, url[at+len(host):]
	}
	trimmed := strings.TrimRight(rest, "/")
	slash := strings.LastIndexByte(trimmed, '/')
	base = trimmed[slash+1:]
	if err := storage.CheckName(base); err != nil {
		return "", "", fmt.Errorf("split %q: no object or folder has this URL: %w", url, err)
	}
	switch {
	case slash < 0:
		return head + ".", base, nil
	case head == "" || strings.HasPrefix(head, "file"):
		if slash == 0 {
			return head + "/", base, nil
		}
	}
	return head + trimmed[:slash], base, nil
}
