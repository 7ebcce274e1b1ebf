//go:build interop

// Package stores holds the stores whose servers can't run inside a Go test against real ones: Azurite, Microsoft's emulator
// of Azure Storage, and HDFS with a NameNode and a DataNode.
package stores

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/sluicelake/sluice/interop/peer"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/azure"
	"github.com/sluicelake/sluice/storage/hdfs"
	"github.com/sluicelake/sluice/storage/open"
	"github.com/sluicelake/sluice/storage/storagetest"
)

// run starts a program that ends with the test, whose output goes to the test's folder, and returns its standard output.
func run(t *testing.T, argv ...string) *bufio.Reader {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("%s said:\n%s", argv[0], text[max(0, len(text)-4000):])
		}
		_ = log.Close()
	})
	return bufio.NewReader(out)
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// azurite is a running emulator with one account.
type azurite struct {
	endpoint, account, key string
	containers             int
}

func startAzurite(t *testing.T) *azurite {
	t.Helper()
	server := peer.Env(t, "SLUICE_INTEROP_AZURITE")
	address := freePort(t)
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	a := &azurite{account: "lake", key: base64.StdEncoding.EncodeToString([]byte(storage.NewToken() + storage.NewToken()))}
	a.endpoint = "http://" + address + "/" + a.account
	t.Setenv("AZURITE_ACCOUNTS", a.account+":"+a.key)
	out := run(t, server, "--blobHost", host, "--blobPort", port, "--location", t.TempDir(), "--skipApiVersionCheck", "--disableTelemetry")
	go func() { _, _ = io.Copy(io.Discard, out) }()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
			return a
		}
		if time.Now().After(deadline) {
			t.Fatalf("Azurite does not listen on %s: %v", address, err)
		}
	}
}

func (a *azurite) options() azure.Options {
	return azure.Options{Endpoint: a.endpoint, Account: a.account, AccountKey: a.key}
}

// container makes a new, empty one.
func (a *azurite) container(t *testing.T) string {
	t.Helper()
	a.containers++
	name := fmt.Sprintf("container-%d", a.containers)
	key, err := container.NewSharedKeyCredential(a.account, a.key)
	if err != nil {
		t.Fatal(err)
	}
	client, err := container.NewClientWithSharedKeyCredential(a.endpoint+"/"+name, key, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return name
}

func (a *azurite) store(t *testing.T, opts azure.Options) storage.Store {
	t.Helper()
	s, err := azure.New(t.Context(), "az://"+a.container(t)+"/lake/table", opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAzurite(t *testing.T) {
	server := startAzurite(t)
	refused := storagetest.Refuses("dots...", `back\slash`)
	t.Run("conformance", func(t *testing.T) {
		storagetest.Run(t, func(t *testing.T) storage.Store { return server.store(t, server.options()) }, refused)
	})
	t.Run("copy from", func(t *testing.T) {
		storagetest.RunCopyFrom(t, func(t *testing.T) (storage.Store, storage.Store) {
			return server.store(t, server.options()), server.store(t, server.options())
		}, refused)
	})
	t.Run("by environment", func(t *testing.T) {
		t.Setenv("AZURE_STORAGE_CONNECTION_STRING", "AccountName="+server.account+";AccountKey="+server.key+";BlobEndpoint="+server.endpoint)
		name := server.container(t)
		for _, url := range []string{"az://" + name + "/t", "abfss://" + name + "@" + server.account + ".dfs.core.windows.net/t"} {
			s, err := open.Store(t.Context(), url, open.Options{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.Put(t.Context(), "x", strings.NewReader("x"), storage.PutOptions{IfAbsent: true})
			if strings.HasPrefix(url, "az:") && err != nil || strings.HasPrefix(url, "abfss:") && !errors.Is(err, storage.ErrExist) {
				t.Errorf("%s: %v", url, err)
			}
		}
	})
	t.Run("copy in blocks", func(t *testing.T) {
		opts := server.options()
		opts.CopyLimit = 5 << 20
		from, to := server.store(t, opts), server.store(t, opts)
		content := strings.Repeat("0123456789abcdef", 12<<20/16) + "tail"
		if _, err := from.Put(t.Context(), "from ü", strings.NewReader(content), storage.PutOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, byServer, err := storage.CopyBetween(t.Context(), from, "from ü", to, "to"); err != nil || !byServer {
			t.Fatalf("by the server %v, %v", byServer, err)
		}
		if data, err := storage.ReadAll(t.Context(), to, "to", 0); err != nil || string(data) != content {
			t.Errorf("%d bytes, %v", len(data), err)
		}
	})
}

func TestHDFS(t *testing.T) {
	jars := peer.Env(t, "SLUICE_INTEROP_HADOOP_JARS")
	java := filepath.Join(peer.Env(t, "JAVA_HOME"), "bin", "java")
	source, err := filepath.Abs("MiniCluster.java")
	if err != nil {
		t.Fatal(err)
	}
	out := run(t, java, "-Xmx512m", "-cp", filepath.Join(jars, "*"), source, t.TempDir())
	var port int
	for port == 0 {
		line, err := out.ReadString('\n')
		if err != nil {
			t.Fatalf("HDFS did not start: %v", err)
		}
		_, _ = fmt.Sscanf(line, "PORT %d", &port) // other lines are none of ours
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	n := 0
	next := func(t *testing.T) storage.Store {
		t.Helper()
		n++
		s, err := hdfs.New(t.Context(), fmt.Sprintf("hdfs://127.0.0.1:%d/lake/table-%d", port, n), hdfs.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	t.Run("conformance", func(t *testing.T) {
		storagetest.Run(t, next, storagetest.Refuses("dt=2024-01-01 10:00:00/f"))
	})
}
