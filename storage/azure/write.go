package azure

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"golang.org/x/sync/errgroup"

	"github.com/sluicelake/sluice/storage"
)

// Put stores the body; see the package comment. It reads the body once.
func (s *Store) Put(ctx context.Context, name string, body io.Reader, opts storage.PutOptions) (storage.Info, error) {
	if opts.Token == "" {
		opts.Token = storage.NewToken()
	}
	info, err := s.put(ctx, name, body, opts)
	if err != nil {
		info, err = s.settle(ctx, name, opts, err)
	}
	if err != nil {
		return storage.Info{}, s.fail("put", name, err)
	}
	return info, nil
}

func (s *Store) put(ctx context.Context, name string, body io.Reader, opts storage.PutOptions) (storage.Info, error) {
	if err := checkNew(name); err != nil {
		return storage.Info{}, err
	}
	body = storage.CheckedBody(ctx, body, opts.Size)
	block := s.opts.BlockSize
	if least := (opts.Size + mostBlocks - 1) / mostBlocks; block < least {
		block = least
	}
	var first bytes.Buffer
	if opts.Size > 0 {
		first.Grow(int(min(opts.Size, block)) + bytes.MinRead)
	}
	n, err := first.ReadFrom(io.LimitReader(body, block))
	if err != nil {
		return storage.Info{}, err
	}
	info := storage.Info{Name: name, Token: opts.Token}
	if n < block {
		err = s.putWhole(ctx, &info, first.Bytes(), opts)
	} else {
		err = s.putBlocks(ctx, &info, block, io.MultiReader(&first, body), opts)
	}
	return info, err
}

func conditions(opts storage.PutOptions) *blob.AccessConditions {
	if !opts.IfAbsent {
		return nil
	}
	everything := azcore.ETagAny
	return &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: &everything}}
}

func attributes(opts storage.PutOptions) map[string]*string {
	return map[string]*string{tokenMetadata: &opts.Token}
}

// crc64Table is of the polynomial that the service takes, reflected.
var crc64Table = crc64.MakeTable(0x9A6C9329AC4BC9B5)

// checksum lets the service refuse what was damaged on its way. (The SDK's own computation copies the bytes.)
func checksum(data []byte) blob.TransferValidationType {
	return blob.TransferValidationTypeCRC64(crc64.Checksum(data, crc64Table))
}

// putWhole sends one request and completes info.
func (s *Store) putWhole(ctx context.Context, info *storage.Info, content []byte, opts storage.PutOptions) error {
	out, err := s.blob(info.Name).Upload(ctx, streaming.NopCloser(bytes.NewReader(content)), &blockblob.UploadOptions{
		AccessConditions: conditions(opts), Metadata: attributes(opts),
		TransactionalValidation: checksum(content),
	})
	if err != nil {
		return err
	}
	info.Size, info.ETag, info.Modified = int64(len(content)), etag(out.ETag), modified(out.LastModified)
	return nil
}

// putBlocks stages the body in blocks, several at once, commits them and completes info.
func (s *Store) putBlocks(ctx context.Context, info *storage.Info, size int64, body io.Reader, opts storage.PutOptions) error {
	client, ids := s.blob(info.Name), newBlockIDs()
	free := make(chan []byte, s.opts.Parallel) // buffers that were sent
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(s.opts.Parallel)
	var bodyErr error
	for groupCtx.Err() == nil {
		var data []byte
		select {
		case data = <-free:
		default:
			data = make([]byte, size)
		}
		n, err := io.ReadFull(body, data[:size])
		info.Size += int64(n)
		if n > 0 && (err == nil || err == io.ErrUnexpectedEOF) {
			id := ids.next()
			group.Go(func() error {
				_, err := client.StageBlock(groupCtx, id, streaming.NopCloser(bytes.NewReader(data[:n])), &blockblob.StageBlockOptions{
					TransactionalValidation: checksum(data[:n]),
				})
				select {
				case free <- data:
				default:
				}
				return err
			})
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF { // as it stands: an error of the body comes wrapped
			break
		}
		if bodyErr = err; err != nil {
			break
		}
	}
	if err := group.Wait(); err != nil || bodyErr != nil {
		return errors.Join(bodyErr, err)
	}
	out, err := client.CommitBlockList(ctx, ids.all, &blockblob.CommitBlockListOptions{
		AccessConditions: conditions(opts), Metadata: attributes(opts),
	})
	if err != nil {
		return err
	}
	info.ETag, info.Modified = etag(out.ETag), modified(out.LastModified)
	return nil
}

// blockIDs names the blocks of one Put. Two writers of one blob share its uncommitted blocks, so each has names of its own;
// all must have one length.
type blockIDs struct {
	writer string
	all    []string
}

func newBlockIDs() *blockIDs { return &blockIDs{writer: storage.NewToken()[:20]} }

func (b *blockIDs) next() string {
	id := base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%s-%06d", b.writer, len(b.all)))
	b.all = append(b.all, id)
	return id
}

// settle finds out what a failed Put has really done, where the answer leaves that open.
func (s *Store) settle(ctx context.Context, name string, opts storage.PutOptions, err error) (storage.Info, error) {
	exists := opts.IfAbsent && is(err, bloberror.BlobAlreadyExists, bloberror.ConditionNotMet)
	// The blocks are gone when they were committed by an attempt whose answer was lost, or when another writer committed.
	gone := is(err, bloberror.InvalidBlockList)
	if !exists && !gone {
		return storage.Info{}, err
	}
	info, statErr := s.stat(ctx, name)
	switch {
	case statErr == nil && info.Token == opts.Token:
		return info, nil
	case statErr == nil && opts.IfAbsent:
		return storage.Info{}, storage.ErrExist
	case status(statErr) == http.StatusNotFound || statErr == nil:
		return storage.Info{}, fmt.Errorf("%w: another request for this blob was under way: %w", storage.ErrTemporary, classify(err))
	}
	return storage.Info{}, fmt.Errorf("%w: the blob may have been stored or not (%w), and it can't be asked for: %w",
		storage.ErrTemporary, classify(err), classify(statErr))
}

// Delete removes the blob, which the account may keep for a while (soft delete).
func (s *Store) Delete(ctx context.Context, name string) error {
	err := checkName(name)
	if err == nil {
		_, err = s.blob(name).Delete(ctx, nil)
	}
	if err == nil || status(err) == http.StatusNotFound && !is(err, bloberror.ContainerNotFound) {
		return nil
	}
	return s.fail("delete", name, err)
}

// Copy lets the store copy, in blocks above Options.CopyLimit.
func (s *Store) Copy(ctx context.Context, from, to string) error {
	_, err := s.copy(ctx, s, from, to)
	return err
}

// CopyFrom copies a blob of another container, or another folder of this one, without its bytes passing through here, also
// from another account: the service reads with the credentials of the source, and where it can't (a firewall, for one) the
// error is storage.ErrPermission. It answers errors.ErrUnsupported for stores of another service.
func (s *Store) CopyFrom(ctx context.Context, source storage.Store, from, to string) (storage.Info, error) {
	other, ok := source.(*Store)
	if !ok {
		return storage.Info{}, errors.ErrUnsupported
	}
	return s.copy(ctx, other, from, to)
}

// copy uses the requests that answer when all is done. The service's older way, a copy in the background, makes the target
// appear before it is whole.
func (s *Store) copy(ctx context.Context, source *Store, from, to string) (storage.Info, error) {
	if err := checkNew(to); err != nil {
		return storage.Info{}, s.fail("copy", to, err)
	}
	info, err := source.stat(ctx, from)
	if err != nil {
		return storage.Info{}, source.fail("copy", from, err)
	}
	info.Name = to
	if source.blob(from).URL() == s.blob(to).URL() {
		return info, nil
	}
	link, authorization, err := source.link(ctx, from)
	if err == nil {
		part := copied{link: link, authorization: authorization, conditions: &blob.SourceModifiedAccessConditions{SourceIfMatch: quoted(info.ETag)}}
		if info.Size > s.opts.CopyLimit {
			err = s.copyBlocks(ctx, part, &info)
		} else {
			err = s.copyWhole(ctx, part, &info)
		}
	}
	if status(err) == http.StatusPreconditionFailed {
		err = fmt.Errorf("%w: %w", storage.ErrChanged, classify(err))
	}
	if err != nil {
		return storage.Info{}, s.fail("copy", to, fmt.Errorf("from %q: %w", storage.Join(source.URL(), from), classify(err)))
	}
	return info, nil
}

// copied is the source of a copy.
type copied struct {
	link          string // it may hold a signature
	authorization *string
	conditions    *blob.SourceModifiedAccessConditions
}

func (s *Store) copyWhole(ctx context.Context, from copied, info *storage.Info) error {
	out, err := s.blob(info.Name).BlobClient().CopyFromURL(ctx, from.link, &blob.CopyFromURLOptions{
		CopySourceAuthorization: from.authorization, SourceModifiedAccessConditions: from.conditions,
	})
	if err != nil {
		return err
	}
	if state := value(out.CopyStatus); state != string(blob.CopyStatusTypeSuccess) {
		return fmt.Errorf("%w: the store answered that the copy is %q", storage.ErrTemporary, state)
	}
	info.ETag, info.Modified = etag(out.ETag), modified(out.LastModified)
	return nil
}

func (s *Store) copyBlocks(ctx context.Context, from copied, info *storage.Info) error {
	size := max(s.opts.CopyLimit, (info.Size+mostBlocks-1)/mostBlocks)
	client, ids := s.blob(info.Name), newBlockIDs()
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(s.opts.Parallel)
	for off := int64(0); off < info.Size; off += size {
		id := ids.next()
		group.Go(func() error {
			_, err := client.StageBlockFromURL(groupCtx, id, from.link, &blockblob.StageBlockFromURLOptions{
				CopySourceAuthorization: from.authorization, SourceModifiedAccessConditions: from.conditions,
				Range: blob.HTTPRange{Offset: off, Count: min(size, info.Size-off)},
			})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	out, err := client.CommitBlockList(ctx, ids.all, nil)
	if err != nil {
		return err
	}
	info.ETag, info.Modified = etag(out.ETag), time.Now()
	info.Token = ""
	return nil
}
