// Package s3 keeps objects in a bucket of Amazon S3 or of a server that speaks its protocol.
//
// Credentials, region and endpoint come from where every AWS tool takes them: Options first, then the environment
// (AWS_ACCESS_KEY_ID, AWS_PROFILE, AWS_REGION, AWS_ENDPOINT_URL, AWS_ENDPOINT_URL_S3, ...), the shared files in ~/.aws, and
// the machine's own role.
//
// # What a Put does
//
// A body below 2 parts is one PutObject, a longer one a multipart upload that is aborted when anything fails, so that no
// unfinished object is paid for. A body of unknown length is never held whole: at most two parts and one for each parallel
// request are in memory. IfAbsent is "If-None-Match: *" on the request that makes the object appear.
//
// # Lost answers
//
// The SDK repeats a request whose answer is lost. A repeated conditional Put then meets its own object. Each Put therefore
// carries a token in the object's metadata (x-amz-meta-sluice-put): when the store says that the object exists, or that
// the multipart upload is gone, the token tells whether it is ours, and then the Put was a success.
package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"

	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/remote"
)

// Options of New. The zero value asks the AWS environment for everything.
type Options struct {
	Endpoint string // "http://127.0.0.1:9000"; empty: the environment, then Amazon
	Region   string // empty: the environment, then us-east-1
	Profile  string // of the shared files; empty: the environment

	// AccessKey and SecretKey, and SessionToken with temporary ones, replace the environment's credentials.
	AccessKey, SecretKey, SessionToken string
	// Anonymous sends no credentials: for public buckets.
	Anonymous bool

	// PathStyle puts the bucket into the path instead of the host name. It is on for every endpoint that is not Amazon's,
	// unless VirtualHost is set.
	PathStyle, VirtualHost bool

	// PartSize is the size of one part of a multipart upload in bytes, at least 5 MiB. Default 8 MiB: with S3's limit of
	// 10000 parts, bodies of unknown length may have 78 GiB; known ones get larger parts where they need them.
	PartSize int64
	// Parallel is how many parts of one Put are sent at once. Default 4.
	Parallel int
	// CopyLimit is the size from which Copy copies in parts of that size. Default and most: 5 GiB.
	CopyLimit int64

	// HTTPClient replaces the SDK's.
	HTTPClient *http.Client
}

const (
	defaultPart   = 8 << 20
	smallestPart  = 5 << 20
	largestCopy   = 5 << 30
	headBytes     = 32 << 10 // read by Open instead of a HEAD request: small objects need no second request
	abortTimeout  = 30 * time.Second
	tokenMetadata = "sluice-put"
)

// Store is a bucket, or what lies below a prefix of it.
type Store struct {
	client *s3.Client
	bucket string
	prefix string // without slash at the end; may be empty
	opts   Options
}

// New returns the store at a URL like s3://bucket/prefix (s3a and s3n mean the same). It sends no request.
func New(ctx context.Context, url string, opts Options) (*Store, error) {
	bucket, prefix, err := ParseURL(url)
	if err != nil {
		return nil, err
	}
	if opts.PartSize == 0 {
		opts.PartSize = defaultPart
	}
	if opts.PartSize < smallestPart {
		return nil, fmt.Errorf("s3: part size %d is below S3's least of %d bytes", opts.PartSize, smallestPart)
	}
	if opts.Parallel <= 0 {
		opts.Parallel = 4
	}
	if opts.CopyLimit <= 0 || opts.CopyLimit > largestCopy {
		opts.CopyLimit = largestCopy
	}
	client, err := newClient(ctx, opts)
	if err != nil {
		return nil, &storage.Error{Op: "open", URL: "s3://" + storage.Join(bucket, prefix), Err: err}
	}
	return &Store{client: client, bucket: bucket, prefix: prefix, opts: opts}, nil
}

func newClient(ctx context.Context, opts Options) (*s3.Client, error) {
	var load []func(*config.LoadOptions) error
	if opts.Region != "" {
		load = append(load, config.WithRegion(opts.Region))
	}
	if opts.Profile != "" {
		load = append(load, config.WithSharedConfigProfile(opts.Profile))
	}
	switch {
	case opts.Anonymous:
		load = append(load, config.WithCredentialsProvider(aws.AnonymousCredentials{}))
	case opts.AccessKey != "":
		load = append(load, config.WithCredentialsProvider(
			credentials.NewStaticCredentialsProvider(opts.AccessKey, opts.SecretKey, opts.SessionToken)))
	}
	if opts.HTTPClient != nil {
		load = append(load, config.WithHTTPClient(opts.HTTPClient))
	}
	cfg, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, fmt.Errorf("reading the AWS configuration: %w", err)
	}
	if cfg.Region == "" {
		cfg.Region = "us-east-1"
	}
	return s3.NewFromConfig(cfg, func(o *s3.Options) {
		if opts.Endpoint != "" {
			o.BaseEndpoint = &opts.Endpoint
		}
		o.UsePathStyle = opts.PathStyle || !opts.VirtualHost && foreign(aws.ToString(o.BaseEndpoint))
		// The SDK warns on every range read that it can't check the checksum of a part of an object.
		o.DisableLogOutputChecksumValidationSkipped = true
	}), nil
}

// foreign: a server of somebody else, where the bucket is seldom part of the host name.
func foreign(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if endpoint == "" || err != nil {
		return false
	}
	host := u.Hostname()
	return !strings.HasSuffix(host, ".amazonaws.com") && !strings.HasSuffix(host, ".amazonaws.com.cn")
}

// ParseURL takes apart s3://bucket/prefix, with the scheme s3, s3a or s3n. As in Hadoop the prefix is taken as it stands
// ("%20" is three characters) and repeated slashes are one.
func ParseURL(url string) (bucket, prefix string, err error) {
	scheme, rest, ok := strings.Cut(url, "://")
	switch strings.ToLower(scheme) {
	case "s3", "s3a", "s3n":
	default:
		ok = false
	}
	if !ok {
		return "", "", fmt.Errorf("open %q: not an S3 URL; write s3://bucket/folder", url)
	}
	bucket, rest, _ = strings.Cut(rest, "/")
	if strings.Contains(bucket, "@") {
		return "", "", errors.New("open s3 URL: keys don't belong into a URL; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or AWS_PROFILE")
	}
	if bucket == "" || strings.ContainsAny(bucket, "?#:%\\ \x00") {
		return "", "", fmt.Errorf("open %q: %q is no bucket name; write s3://bucket/folder", url, bucket)
	}
	segments := slices.DeleteFunc(strings.Split(rest, "/"), func(s string) bool { return s == "" })
	prefix = strings.Join(segments, "/")
	if err := storage.CheckPrefix(prefix); err != nil {
		return "", "", fmt.Errorf("open %q: %w", url, err)
	}
	return bucket, prefix, nil
}

// Traits of S3 since conditional writes (2024).
func (s *Store) Traits() storage.Traits {
	return storage.Traits{AtomicIfAbsent: true, ConsistentList: true, ServerCopy: true, Tokens: true}
}

// URL is s3://bucket/prefix.
func (s *Store) URL() string { return "s3://" + storage.Join(s.bucket, s.prefix) }

func (s *Store) key(name string) *string { return aws.String(storage.Join(s.prefix, name)) }

func (s *Store) fail(op, name string, err error) error {
	return &storage.Error{Op: op, URL: s.URL(), Name: name, Err: classify(err)}
}

// Open asks for the object's first bytes, which also tells its size and ETag.
func (s *Store) Open(ctx context.Context, name string) (storage.Object, error) {
	o, err := s.open(ctx, name)
	if err != nil {
		return nil, s.fail("open", name, err)
	}
	return o, nil
}

func (s *Store) open(ctx context.Context, name string) (*remote.Object, error) {
	if err := storage.CheckName(name); err != nil {
		return nil, err
	}
	out, err := s.client.GetObject(ctx, &s3.GetObjectInput{
		Bucket: &s.bucket, Key: s.key(name), Range: aws.String("bytes=0-" + strconv.Itoa(headBytes-1)),
	})
	if status(err) == http.StatusRequestedRangeNotSatisfiable { // an empty object has no first byte
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
	size, head, err := remote.First(ctx, out.Body, aws.ToInt64(out.ContentLength), out.ContentRange, headBytes)
	if err != nil {
		return nil, err
	}
	return s.object(name, size, etag(out.ETag), head), nil
}

// object reads ranges of the object that has this ETag.
func (s *Store) object(name string, size int64, tag string, head []byte) *remote.Object {
	return &remote.Object{
		Bytes: size, Tag: tag, Head: head, Fail: func(err error) error { return s.fail("read", name, err) },
		Get: func(ctx context.Context, p []byte, off int64) (int, error) { return s.get(ctx, name, tag, p, off) },
	}
}

func (s *Store) get(ctx context.Context, name, tag string, p []byte, off int64) (int, error) {
	in := &s3.GetObjectInput{
		Bucket: &s.bucket, Key: s.key(name),
		Range: aws.String(fmt.Sprintf("bytes=%d-%d", off, off+int64(len(p))-1)),
	}
	if tag != "" {
		in.IfMatch = aws.String(`"` + tag + `"`)
	}
	out, err := s.client.GetObject(ctx, in)
	switch status(err) {
	case http.StatusPreconditionFailed, http.StatusRequestedRangeNotSatisfiable:
		return 0, fmt.Errorf("%w: %w", storage.ErrChanged, err)
	}
	if err != nil {
		return 0, err
	}
	defer out.Body.Close()
	// Not every server minds If-Match, and one that minds no Range sends the whole.
	if got := etag(out.ETag); got != tag {
		return 0, fmt.Errorf("%w: its ETag was %s, now %s", storage.ErrChanged, tag, got)
	}
	if want := fmt.Sprintf("bytes %d-", off); !strings.HasPrefix(aws.ToString(out.ContentRange), want) {
		return 0, fmt.Errorf("asked for a range, the store answered Content-Range %q", aws.ToString(out.ContentRange))
	}
	n, err := io.ReadFull(out.Body, p)
	if err != nil {
		return n, remote.CutShort(ctx, err)
	}
	return n, nil
}

// Stat asks for the object's head.
func (s *Store) Stat(ctx context.Context, name string) (storage.Info, error) {
	info, err := s.stat(ctx, name)
	if err != nil {
		return storage.Info{}, s.fail("stat", name, err)
	}
	return info, nil
}

func (s *Store) stat(ctx context.Context, name string) (storage.Info, error) {
	if err := storage.CheckName(name); err != nil {
		return storage.Info{}, err
	}
	out, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.bucket, Key: s.key(name)})
	if err != nil {
		return storage.Info{}, err
	}
	return storage.Info{
		Name: name, Size: aws.ToInt64(out.ContentLength), ETag: etag(out.ETag), Modified: aws.ToTime(out.LastModified),
		Token: out.Metadata[tokenMetadata],
	}, nil
}

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
	if err := storage.CheckName(name); err != nil {
		return storage.Info{}, err
	}
	counted := &counter{body: storage.CheckedBody(ctx, body, opts.Size)}
	in := &transfermanager.UploadObjectInput{
		Bucket: &s.bucket, Key: s.key(name), Body: counted, Metadata: map[string]string{tokenMetadata: opts.Token},
	}
	if opts.Size > 0 {
		in.ContentLength = &opts.Size
	}
	if opts.IfAbsent {
		in.IfNoneMatch = aws.String("*")
	}
	up := &upload{Client: s.client}
	out, err := transfermanager.New(up, func(o *transfermanager.Options) {
		o.PartSizeBytes = s.opts.PartSize
		o.MultipartUploadThreshold = 2 * s.opts.PartSize
		o.Concurrency = s.opts.Parallel
		o.FailTimeout = abortTimeout
		o.RequestChecksumCalculation = s.client.Options().RequestChecksumCalculation
	}).UploadObject(ctx, in)
	if err = errors.Join(err, up.finish(ctx)); err != nil {
		return storage.Info{}, err
	}
	return storage.Info{
		Name: name, Size: counted.n, ETag: etag(out.ETag), Modified: time.Now(), Token: opts.Token,
	}, nil
}

type counter struct {
	body io.Reader
	n    int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.body.Read(p)
	c.n += int64(n)
	return n, err
}

// settle finds out what a failed Put has really done, where the answer leaves that open.
func (s *Store) settle(ctx context.Context, name string, opts storage.PutOptions, err error) (storage.Info, error) {
	code := status(err)
	exists := opts.IfAbsent && (code == http.StatusPreconditionFailed || code == http.StatusConflict)
	if !exists && apiCode(err) != "NoSuchUpload" {
		return storage.Info{}, err
	}
	info, statErr := s.stat(ctx, name)
	switch {
	case statErr == nil && info.Token == opts.Token:
		return info, nil
	case statErr == nil && opts.IfAbsent:
		return storage.Info{}, storage.ErrExist
	case status(statErr) == http.StatusNotFound || statErr == nil:
		// Either another Put was under way and came to nothing, or the object was deleted since.
		return storage.Info{}, fmt.Errorf("%w: another request for this object was under way: %w", storage.ErrTemporary, err)
	}
	return storage.Info{}, fmt.Errorf("%w: the object may have been stored or not (%w), and it can't be asked for: %w",
		storage.ErrTemporary, err, statErr)
}

// upload is the client that the transfer manager sees during one Put. It keeps the errors of the last steps to itself: the
// manager prints them to the process's log, and loses their kind when the abort fails too.
type upload struct {
	*s3.Client
	completeErr error
	id          *s3.AbortMultipartUploadInput
}

func (u *upload) CompleteMultipartUpload(ctx context.Context, in *s3.CompleteMultipartUploadInput, fns ...func(*s3.Options)) (*s3.CompleteMultipartUploadOutput, error) {
	out, err := u.Client.CompleteMultipartUpload(ctx, in, fns...)
	if err != nil {
		u.completeErr = err
		u.id = &s3.AbortMultipartUploadInput{Bucket: in.Bucket, Key: in.Key, UploadId: in.UploadId}
		return &s3.CompleteMultipartUploadOutput{}, nil //nolint:nilerr // Put asks for the error itself: see upload
	}
	return out, nil
}

func (u *upload) AbortMultipartUpload(_ context.Context, in *s3.AbortMultipartUploadInput, _ ...func(*s3.Options)) (*s3.AbortMultipartUploadOutput, error) {
	u.id = in
	return &s3.AbortMultipartUploadOutput{}, nil
}

// finish aborts what did not complete, also when ctx has ended, and tells why it did not complete. That an abort fails
// changes nothing for the caller: the object is not there, only its parts still cost money until the bucket's rules remove
// them, and after a lost answer there may be nothing to abort.
func (u *upload) finish(ctx context.Context) error {
	if u.id != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
		defer cancel()
		_, _ = u.Client.AbortMultipartUpload(ctx, u.id)
	}
	return u.completeErr
}

// List asks for pages of 1000. Keys that no name can be ("folder/" markers, "a//b", "../x") are left out: Hadoop's readers
// see no files there either.
func (s *Store) List(ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		if err := s.list(ctx, prefix, opts.Recursive, func(i storage.Info) bool { return yield(i, nil) }); err != nil {
			yield(storage.Info{}, s.fail("list", prefix, err))
		}
	}
}

func (s *Store) list(ctx context.Context, prefix string, recursive bool, yield func(storage.Info) bool) error {
	if err := storage.CheckPrefix(prefix); err != nil {
		return err
	}
	in := &s3.ListObjectsV2Input{Bucket: &s.bucket, EncodingType: types.EncodingTypeUrl}
	if folder := *s.key(prefix); folder != "" {
		in.Prefix = aws.String(folder + "/")
	}
	if !recursive {
		in.Delimiter = aws.String("/")
	}
	// S3 sorts the folder "a" as "a/", behind "a.txt", and the buckets of S3 Express sort not at all.
	hold := !recursive || strings.HasSuffix(s.bucket, "--x-s3")
	var held []storage.Info
	for pages := s3.NewListObjectsV2Paginator(s.client, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		infos, err := s.infos(page)
		if err != nil {
			return err
		}
		if hold {
			held = append(held, infos...)
			continue
		}
		for _, info := range infos {
			if err := ctx.Err(); err != nil {
				return err
			}
			if !yield(info) {
				return nil
			}
		}
	}
	slices.SortFunc(held, storage.CompareInfo)
	for _, info := range held {
		if !yield(info) {
			return nil
		}
	}
	return nil
}

func (s *Store) infos(page *s3.ListObjectsV2Output) ([]storage.Info, error) {
	out := make([]storage.Info, 0, len(page.Contents)+len(page.CommonPrefixes))
	for _, o := range page.Contents {
		name, ok, err := s.name(page, aws.ToString(o.Key))
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, storage.Info{
				Name: name, Size: aws.ToInt64(o.Size), ETag: etag(o.ETag), Modified: aws.ToTime(o.LastModified),
			})
		}
	}
	for _, p := range page.CommonPrefixes {
		name, ok, err := s.name(page, strings.TrimSuffix(aws.ToString(p.Prefix), "/"))
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, storage.Info{Name: name, Dir: true})
		}
	}
	return out, nil
}

// name turns a listed key into a name below the root; ok is false where it can't be one.
func (s *Store) name(page *s3.ListObjectsV2Output, key string) (name string, ok bool, err error) {
	if page.EncodingType == types.EncodingTypeUrl {
		if key, err = url.QueryUnescape(key); err != nil {
			return "", false, fmt.Errorf("the store listed a key in a strange encoding: %w", err)
		}
	}
	name = key
	if s.prefix != "" {
		if name, ok = strings.CutPrefix(key, s.prefix+"/"); !ok {
			return "", false, nil
		}
	}
	return name, storage.CheckName(name) == nil, nil
}

// Delete removes the object. In a bucket with versions it becomes an old version.
func (s *Store) Delete(ctx context.Context, name string) error {
	err := storage.CheckName(name)
	if err == nil {
		_, err = s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: s.key(name)})
	}
	if err == nil || apiCode(err) != "NoSuchBucket" && status(err) == http.StatusNotFound {
		return nil
	}
	return s.fail("delete", name, err)
}

// Copy lets the store copy, in parts above Options.CopyLimit.
func (s *Store) Copy(ctx context.Context, from, to string) error {
	_, err := s.copy(ctx, s, from, to)
	return err
}

// CopyFrom copies an object of another bucket, or another folder of this one, without its bytes passing through here. The
// credentials of this store must be allowed to read there. It answers errors.ErrUnsupported for stores of another service
// and for buckets at another endpoint; one in another region of Amazon's is reached.
func (s *Store) CopyFrom(ctx context.Context, source storage.Store, from, to string) (storage.Info, error) {
	other, ok := source.(*Store)
	if !ok || aws.ToString(other.client.Options().BaseEndpoint) != aws.ToString(s.client.Options().BaseEndpoint) {
		return storage.Info{}, errors.ErrUnsupported
	}
	return s.copy(ctx, other, from, to)
}

func (s *Store) copy(ctx context.Context, from *Store, name, to string) (storage.Info, error) {
	if err := storage.CheckName(to); err != nil {
		return storage.Info{}, s.fail("copy", to, err)
	}
	info, err := from.stat(ctx, name)
	if err != nil {
		return storage.Info{}, from.fail("copy", name, err)
	}
	info.Name = to
	if from.bucket == s.bucket && *from.key(name) == *s.key(to) {
		return info, nil
	}
	source := copySource(from.bucket, *from.key(name))
	ifMatch := aws.String(`"` + info.ETag + `"`)
	if info.Size > s.opts.CopyLimit {
		info.ETag, err = s.copyParts(ctx, source, ifMatch, info.Size, to)
	} else {
		info.ETag, err = s.copyWhole(ctx, source, ifMatch, to)
	}
	if status(err) == http.StatusPreconditionFailed {
		err = fmt.Errorf("%w: %w", storage.ErrChanged, err)
	}
	if err != nil {
		return storage.Info{}, s.fail("copy", to, fmt.Errorf("from %q: %w", storage.Join(from.URL(), name), err))
	}
	info.Modified = time.Now()
	return info, nil
}

// copyWhole copies by one request and returns the ETag of the copy.
func (s *Store) copyWhole(ctx context.Context, source string, ifMatch *string, to string) (string, error) {
	out, err := s.client.CopyObject(ctx, &s3.CopyObjectInput{
		Bucket: &s.bucket, Key: s.key(to), CopySource: &source, CopySourceIfMatch: ifMatch,
	})
	if err != nil {
		return "", err
	}
	return etag(out.CopyObjectResult.ETag), nil
}

// copySource is the value of the header x-amz-copy-source.
func copySource(bucket, key string) string {
	segments := strings.Split(key, "/")
	for i, seg := range segments {
		segments[i] = strings.ReplaceAll(url.QueryEscape(seg), "+", "%20")
	}
	return bucket + "/" + strings.Join(segments, "/")
}

// copyParts copies by several requests at once and returns the ETag of the copy.
func (s *Store) copyParts(ctx context.Context, source string, ifMatch *string, size int64, to string) (tag string, err error) {
	created, err := s.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &s.bucket, Key: s.key(to)})
	if err != nil {
		return "", err
	}
	up := &upload{Client: s.client}
	defer func() {
		if err != nil {
			up.id = &s3.AbortMultipartUploadInput{Bucket: &s.bucket, Key: s.key(to), UploadId: created.UploadId}
			_ = up.finish(ctx)
		}
	}()
	parts := make([]types.CompletedPart, (size+s.opts.CopyLimit-1)/s.opts.CopyLimit)
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(s.opts.Parallel)
	for i := range parts {
		off, number := int64(i)*s.opts.CopyLimit, aws.Int32(int32(i+1))
		group.Go(func() error {
			out, err := s.client.UploadPartCopy(groupCtx, &s3.UploadPartCopyInput{
				Bucket: &s.bucket, Key: s.key(to), UploadId: created.UploadId, PartNumber: number,
				CopySource: &source, CopySourceIfMatch: ifMatch,
				CopySourceRange: aws.String(fmt.Sprintf("bytes=%d-%d", off, min(off+s.opts.CopyLimit, size)-1)),
			})
			if err == nil {
				parts[i] = types.CompletedPart{ETag: out.CopyPartResult.ETag, PartNumber: number}
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return "", err
	}
	out, err := s.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &s.bucket, Key: s.key(to), UploadId: created.UploadId,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
	})
	if err != nil {
		return "", err
	}
	return etag(out.ETag), nil
}

// etag without its quotes, which some answers lack.
func etag(s *string) string { return strings.Trim(aws.ToString(s), `"`) }
