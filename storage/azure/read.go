package azure

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/remote"
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

func (s *Store) open(ctx context.Context, name string) (*remote.Object, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	out, err := s.blob(name).DownloadStream(ctx, &blob.DownloadStreamOptions{Range: blob.HTTPRange{Count: headBytes}})
	if status(err) == http.StatusRequestedRangeNotSatisfiable { // an empty blob has no first byte
		info, err := s.stat(ctx, name)
		if err != nil {
			return nil, err
		}
		return s.object(name, info.Size, info.ETag, nil), nil
	}
	if err != nil {
		return nil, err
	}
	defer out.Body.Close()
	if isFolder(out.Metadata) {
		return nil, errFolder
	}
	size, head, err := remote.First(ctx, out.Body, value(out.ContentLength), out.ContentRange, headBytes)
	if err != nil {
		return nil, err
	}
	return s.object(name, size, etag(out.ETag), head), nil
}

// object reads ranges of the blob that has this ETag.
func (s *Store) object(name string, size int64, tag string, head []byte) *remote.Object {
	return &remote.Object{
		Bytes: size, Tag: tag, Head: head, Fail: func(err error) error { return s.fail("read", name, err) },
		Get: func(ctx context.Context, p []byte, off int64) (int, error) { return s.get(ctx, name, tag, p, off) },
	}
}

func (s *Store) get(ctx context.Context, name, tag string, p []byte, off int64) (int, error) {
	opts := &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: off, Count: int64(len(p))}}
	if tag != "" {
		opts.AccessConditions = &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: quoted(tag)}}
	}
	out, err := s.blob(name).DownloadStream(ctx, opts)
	if is(err, bloberror.ConditionNotMet) || status(err) == http.StatusRequestedRangeNotSatisfiable {
		return 0, fmt.Errorf("%w: %w", storage.ErrChanged, classify(err))
	}
	if err != nil {
		return 0, err
	}
	defer out.Body.Close()
	if got := etag(out.ETag); got != tag {
		return 0, fmt.Errorf("%w: its ETag was %s, now %s", storage.ErrChanged, tag, got)
	}
	if want := fmt.Sprintf("bytes %d-", off); !strings.HasPrefix(value(out.ContentRange), want) {
		return 0, fmt.Errorf("asked for a range, the store answered Content-Range %q", value(out.ContentRange))
	}
	n, err := io.ReadFull(out.Body, p)
	if err != nil {
		return n, remote.CutShort(ctx, err)
	}
	return n, nil
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
