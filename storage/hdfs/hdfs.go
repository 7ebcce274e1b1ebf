//go:build hdfs || interop

package hdfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/user"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/colinmarc/hdfs/v2"
	"github.com/colinmarc/hdfs/v2/hadoopconf"
	krbclient "github.com/jcmturner/gokrb5/v8/client"
	krbconfig "github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/credentials"

	"github.com/sluicelake/sluice/storage"
)

// Options of New. The zero value asks the environment for everything.
type Options struct {
	ConfDir string // of core-site.xml and hdfs-site.xml; empty: HADOOP_CONF_DIR, then HADOOP_HOME/conf
	User    string // empty: HADOOP_USER_NAME, then the user of the process
}

// Store is a folder of a Hadoop file system.
type Store struct {
	host string // as the URL has it
	root string // absolute
	opts Options

	mu     sync.Mutex
	client *hdfs.Client
}

// New returns the store at a URL like hdfs://namenode:8020/folder. It sends no request.
func New(_ context.Context, url string, opts Options) (*Store, error) {
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok || !strings.EqualFold(scheme, "hdfs") {
		return nil, fmt.Errorf("open %q: not an HDFS URL; write hdfs://namenode:8020/folder", url)
	}
	host, rest, _ := strings.Cut(rest, "/")
	segments := slices.DeleteFunc(strings.Split(rest, "/"), func(s string) bool { return s == "" })
	folder := strings.Join(segments, "/")
	if folder != "" {
		if err := checkName(folder); err != nil {
			return nil, fmt.Errorf("open %q: %w", url, err)
		}
	}
	return &Store{host: host, root: "/" + folder, opts: opts}, nil
}

// checkName is storage.CheckName and what the NameNode refuses.
func checkName(name string) error {
	if err := storage.CheckName(name); err != nil {
		return err
	}
	if strings.Contains(name, ":") {
		return fmt.Errorf("%w: HDFS has no files with a colon in their name: %q", storage.ErrName, name)
	}
	return nil
}

// connect makes the client with the first request.
func (s *Store) connect() (*hdfs.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		return s.client, nil
	}
	opts, err := s.settings()
	if err != nil {
		return nil, err
	}
	client, err := hdfs.NewClient(opts)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", strings.Join(opts.Addresses, ", "), err)
	}
	s.client = client
	return client, nil
}

func (s *Store) settings() (hdfs.ClientOptions, error) {
	load := hadoopconf.LoadFromEnvironment
	if s.opts.ConfDir != "" {
		load = func() (hadoopconf.HadoopConf, error) { return hadoopconf.Load(s.opts.ConfDir) }
	}
	conf, err := load()
	if err != nil {
		return hdfs.ClientOptions{}, fmt.Errorf("reading the Hadoop configuration: %w", err)
	}
	opts := hdfs.ClientOptionsFromConf(conf)
	if nodes := nodesOf(conf, s.host); len(nodes) > 0 {
		opts.Addresses = nodes
	}
	if len(opts.Addresses) == 0 {
		return opts, errors.New("the URL names no NameNode and no configuration was found; set HADOOP_CONF_DIR or write hdfs://namenode:8020/folder")
	}
	if opts.KerberosClient != nil {
		opts.KerberosClient, err = ticket()
		return opts, err
	}
	opts.User = s.opts.User
	if opts.User == "" {
		opts.User = os.Getenv("HADOOP_USER_NAME")
	}
	if opts.User == "" {
		who, err := user.Current()
		if err != nil {
			return opts, fmt.Errorf("the user is not known; set HADOOP_USER_NAME: %w", err)
		}
		opts.User = who.Username
	}
	return opts, nil
}

// nodesOf gives the NameNodes of a URL's host: those of a name service, else the host itself.
func nodesOf(conf hadoopconf.HadoopConf, host string) []string {
	if host == "" {
		return nil
	}
	if ids := conf["dfs.ha.namenodes."+host]; ids != "" {
		var nodes []string
		for id := range strings.SplitSeq(ids, ",") {
			if node := conf["dfs.namenode.rpc-address."+host+"."+strings.TrimSpace(id)]; node != "" {
				nodes = append(nodes, node)
			}
		}
		return nodes
	}
	if node := conf["dfs.namenode.rpc-address."+host]; node != "" {
		return []string{node}
	}
	if _, _, err := net.SplitHostPort(host); err != nil {
		host = net.JoinHostPort(host, "8020")
	}
	return []string{host}
}

// ticket is a Kerberos client from the cache that kinit filled.
func ticket() (*krbclient.Client, error) {
	file := os.Getenv("KRB5_CONFIG")
	if file == "" {
		file = "/etc/krb5.conf"
	}
	config, err := krbconfig.Load(file)
	if err != nil {
		return nil, fmt.Errorf("the Kerberos configuration %s: %w", file, err)
	}
	cache := strings.TrimPrefix(os.Getenv("KRB5CCNAME"), "FILE:")
	if strings.Contains(cache, ":") {
		return nil, fmt.Errorf("the Kerberos cache %q is not a file; set KRB5CCNAME=FILE:path", cache)
	}
	if cache == "" {
		cache = fmt.Sprintf("/tmp/krb5cc_%d", os.Getuid())
	}
	held, err := credentials.LoadCCache(cache)
	if err != nil {
		return nil, fmt.Errorf("%w: no Kerberos ticket in %s; run kinit: %w", storage.ErrPermission, cache, err)
	}
	client, err := krbclient.NewFromCCache(held, config)
	if err != nil {
		return nil, fmt.Errorf("%w: the Kerberos ticket in %s: %w", storage.ErrPermission, cache, err)
	}
	return client, nil
}

// Traits: see the package comment for IfAbsent.
func (s *Store) Traits() storage.Traits {
	return storage.Traits{AtomicIfAbsent: true, ConsistentList: true, Dirs: true}
}

// URL is hdfs://host/folder.
func (s *Store) URL() string { return "hdfs://" + s.host + s.root }

func (s *Store) path(name string) string { return path.Join(s.root, name) }

// begin checks what each operation needs.
func (s *Store) begin(ctx context.Context, name string) (*hdfs.Client, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if name != "" { // the root of a List
		if err := checkName(name); err != nil {
			return nil, err
		}
	}
	return s.connect()
}

func (s *Store) fail(op, name string, err error) error {
	return &storage.Error{Op: op, URL: s.URL(), Name: name, Err: classify(err)}
}

// classify gives an error of the NameNode, a DataNode or the connection the meaning that callers ask for.
func classify(err error) error {
	for _, known := range []error{
		storage.ErrName, storage.ErrNotExist, storage.ErrExist, storage.ErrChanged, storage.ErrTemporary, context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, known) {
			return err
		}
	}
	var remote hdfs.Error
	if errors.As(err, &remote) {
		exception := remote.Exception()
		kind := map[string]error{
			"ParentNotDirectoryException":   storage.ErrNotExist,
			"StandbyException":              storage.ErrTemporary,
			"SafeModeException":             storage.ErrTemporary,
			"RetriableException":            storage.ErrTemporary,
			"NSQuotaExceededException":      storage.ErrNoSpace,
			"DSQuotaExceededException":      storage.ErrNoSpace,
			"AccessControlException":        storage.ErrPermission,
			"InvalidPathException":          storage.ErrName,
			"FSLimitException":              storage.ErrName,
			"PathComponentTooLongException": storage.ErrName,
		}[exception[strings.LastIndexAny(exception, ".$")+1:]]
		message, _, _ := strings.Cut(remote.Message(), "\n")
		if kind == nil {
			return fmt.Errorf("%s: %s: %w", remote.Method(), message, err)
		}
		return fmt.Errorf("%w: %s: %s", kind, remote.Method(), message)
	}
	var network net.Error
	var address *url.Error
	if errors.As(err, &network) || errors.As(err, &address) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return fmt.Errorf("%w: %w", storage.ErrTemporary, err)
	}
	return err
}

// etag changes with each file and each change of one.
func etag(info fs.FileInfo) string {
	size, changed := info.Size(), info.ModTime().UnixMilli()
	if status, ok := info.Sys().(*hdfs.FileStatus); ok {
		return fmt.Sprintf("%x-%x-%x", status.GetFileId(), changed, size)
	}
	return fmt.Sprintf("%x-%x", changed, size)
}

func describe(name string, info fs.FileInfo) storage.Info {
	out := storage.Info{Name: name, Modified: info.ModTime(), Dir: info.IsDir()}
	if !out.Dir {
		out.Size, out.ETag = info.Size(), etag(info)
	}
	return out
}
