// Package azure keeps objects in a container of Azure Blob Storage or Azure Data Lake Storage Gen2, by the Blob service's
// REST API, which serves both.
//
// # URLs
//
//	abfss://container@account.dfs.core.windows.net/folder    as Hadoop's ABFS client (also abfs)
//	wasbs://container@account.blob.core.windows.net/folder   as Hadoop's older client (also wasb)
//	az://container/folder                                    the account is AZURE_STORAGE_ACCOUNT (also abfs, abfss)
//
// Requests are always encrypted, unless an endpoint that is given says http.
//
// # Credentials
//
// Options first, then AZURE_STORAGE_CONNECTION_STRING, AZURE_STORAGE_KEY (or AZURE_STORAGE_ACCOUNT_KEY) and
// AZURE_STORAGE_SAS_TOKEN, where they are for the account of the URL, and then what azidentity's DefaultAzureCredential finds:
// the environment of a service principal (AZURE_CLIENT_ID, ...), workload and managed identities, "az login".
//
// # What a Put does
//
// A body of one block is one Put Blob, a longer one is staged in blocks, several at once, and appears with Put Block List. At
// most one block for each parallel request and one more are in memory. IfAbsent is "If-None-Match: *" on the request that
// makes the blob appear. Blocks of a Put that failed are invisible, and the service forgets them after a week.
//
// Each blob carries a token in its metadata (sluiceput). The SDK repeats a request whose answer is lost; a conditional Put
// then meets its own blob, and the token tells.
//
// # Names and folders
//
// The service takes a backslash for a slash and warns of path segments that end with a dot: names with a backslash are
// refused, and nothing is written below a segment that ends with a dot, as Hadoop's client does not either. Accounts with a
// hierarchical namespace, and Hadoop's older client, keep folders as empty blobs with metadata hdi_isfolder: they are no
// objects here.
package azure

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/sluicelake/sluice/storage"
)

// Options of New. The zero value asks the environment for everything.
type Options struct {
	// Endpoint of the account's Blob service, "http://127.0.0.1:10000/devstoreaccount1"; empty: the connection string,
	// AZURE_STORAGE_SERVICE_ENDPOINT, then Azure.
	Endpoint string
	// Account for URLs without one; empty: the environment.
	Account string

	// One of these replaces the environment's credentials.
	AccountKey string // base64, as the portal shows it
	SAS        string // a shared access signature, "sv=...&sig=..."
	Credential azcore.TokenCredential
	Anonymous  bool // for public containers

	// BlockSize is the size of one block in bytes. Default 8 MiB: with the service's limit of 50000 blocks, bodies of
	// unknown length may have 390 GiB; known ones get larger blocks where they need them.
	BlockSize int64
	// Parallel is how many blocks of one Put, or of one copy, are sent at once. Default 4.
	Parallel int
	// CopyLimit is the size from which Copy copies in blocks of that size. Default and most: 256 MiB.
	CopyLimit int64

	// HTTPClient replaces the SDK's.
	HTTPClient *http.Client
}

const (
	defaultBlock   = 8 << 20
	largestBlock   = 4000 << 20
	mostBlocks     = 50_000
	largestCopy    = 256 << 20
	headBytes      = 32 << 10    // read by Open instead of a HEAD request: small blobs need no second request
	tokenMetadata  = "sluiceput" // a name may have no hyphen
	folderMetadata = "hdi_isfolder"
)

// Store is a container, or what lies below a prefix of it.
type Store struct {
	client  *container.Client
	access  access
	account string
	url     string // without the prefix
	prefix  string // without slash at the end; may be empty
	opts    Options
}

// New returns the store at a URL; see the package comment. It sends no request.
func New(_ context.Context, url string, opts Options) (*Store, error) {
	place, err := ParseURL(url)
	if err != nil {
		return nil, err
	}
	if opts.BlockSize == 0 {
		opts.BlockSize = defaultBlock
	}
	if opts.BlockSize < 0 || opts.BlockSize > largestBlock {
		return nil, fmt.Errorf("azure: block size %d is not between 1 and %d bytes", opts.BlockSize, int64(largestBlock))
	}
	if opts.Parallel <= 0 {
		opts.Parallel = 4
	}
	if opts.CopyLimit <= 0 || opts.CopyLimit > largestCopy {
		opts.CopyLimit = largestCopy
	}
	s := &Store{prefix: place.Prefix, opts: opts, url: place.root()}
	if err := s.connect(place); err != nil {
		return nil, &storage.Error{Op: "open", URL: s.URL(), Err: err}
	}
	return s, nil
}

// Place is what a URL names.
type Place struct {
	Scheme    string // in lower case
	Account   string // empty: the environment's
	Suffix    string // of the service's host name: "core.windows.net"
	Container string
	Prefix    string // without slash at the end; may be empty

	host string // behind the @; may be empty
}

func (p Place) root() string {
	if p.host == "" {
		return p.Scheme + "://" + p.Container
	}
	return p.Scheme + "://" + p.Container + "@" + p.host
}

const defaultSuffix = "core.windows.net"

// ParseURL takes a URL apart. As in Hadoop the prefix is taken as it stands ("%20" is three characters) and repeated slashes
// are one.
func ParseURL(url string) (Place, error) {
	scheme, rest, ok := strings.Cut(url, "://")
	p := Place{Scheme: strings.ToLower(scheme), Suffix: defaultSuffix}
	service := map[string]string{"abfs": "dfs", "abfss": "dfs", "wasb": "blob", "wasbs": "blob", "az": ""}
	if _, known := service[p.Scheme]; !ok || !known {
		return Place{}, fmt.Errorf("open %q: not an Azure URL; write abfss://container@account.dfs.core.windows.net/folder", url)
	}
	authority, rest, _ := strings.Cut(rest, "/")
	if strings.Contains(authority, ":") {
		return Place{}, errors.New("open Azure URL: a key or port does not belong there; set AZURE_STORAGE_KEY, and AZURE_STORAGE_SERVICE_ENDPOINT for another server")
	}
	p.Container, p.host, _ = strings.Cut(authority, "@")
	if p.Container == "" || strings.ContainsAny(authority, "?#%\\ \x00") || strings.Contains(p.host, "@") {
		return Place{}, fmt.Errorf("open %q: %q names no container; write abfss://container@account.dfs.core.windows.net/folder", url, authority)
	}
	if p.host != "" {
		account, suffix, _ := strings.Cut(p.host, ".")
		kind, suffix, _ := strings.Cut(suffix, ".")
		if account == "" || suffix == "" || kind != "dfs" && kind != "blob" {
			return Place{}, fmt.Errorf("open %q: %q is no account; write account.dfs.core.windows.net", url, p.host)
		}
		p.Account, p.Suffix = account, suffix
	} else if service[p.Scheme] == "blob" {
		return Place{}, fmt.Errorf("open %q: the account is missing; write %s://container@account.blob.core.windows.net/folder", url, p.Scheme)
	}
	segments := slices.DeleteFunc(strings.Split(rest, "/"), func(s string) bool { return s == "" })
	p.Prefix = strings.Join(segments, "/")
	if err := checkPrefix(p.Prefix); err != nil {
		return Place{}, fmt.Errorf("open %q: %w", url, err)
	}
	return p, nil
}

// checkName is storage.CheckName and what this service can't tell apart.
func checkName(name string) error {
	if err := storage.CheckName(name); err != nil {
		return err
	}
	if strings.Contains(name, `\`) {
		return fmt.Errorf(`%w: Azure takes the backslash of %q for a slash`, storage.ErrName, name)
	}
	return nil
}

func checkPrefix(prefix string) error {
	if prefix == "" {
		return nil
	}
	return checkName(prefix)
}

// checkNew is checkName for a blob that is to be written.
func checkNew(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if strings.HasSuffix(name, ".") || strings.Contains(name, "./") {
		return fmt.Errorf("%w: Azure has no files or folders whose name ends with a dot: %q", storage.ErrName, name)
	}
	return nil
}

// Traits of the Blob service.
func (s *Store) Traits() storage.Traits {
	return storage.Traits{AtomicIfAbsent: true, ConsistentList: true, ServerCopy: true, Tokens: true}
}

// URL is that which was opened.
func (s *Store) URL() string { return storage.Join(s.url, s.prefix) }

func (s *Store) blob(name string) *blockblob.Client {
	return s.client.NewBlockBlobClient(storage.Join(s.prefix, name))
}

func (s *Store) fail(op, name string, err error) error {
	return &storage.Error{Op: op, URL: s.URL(), Name: name, Err: classify(err)}
}

// environment gives the first of the variables that is set.
func environment(names ...string) string {
	for _, name := range names {
		if value := os.Getenv(name); value != "" {
			return value
		}
	}
	return ""
}

func etag(tag *azcore.ETag) string {
	if tag == nil {
		return ""
	}
	return strings.Trim(string(*tag), `"`)
}

// quoted is an ETag as conditions want it.
func quoted(tag string) *azcore.ETag {
	e := azcore.ETag(`"` + tag + `"`)
	return &e
}

func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

func modified(t *time.Time) time.Time { return value(t) }
