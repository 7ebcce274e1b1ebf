package open_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/count"
	"github.com/sluicelake/sluice/storage/fault"
	"github.com/sluicelake/sluice/storage/limit"
	"github.com/sluicelake/sluice/storage/mem"
	"github.com/sluicelake/sluice/storage/open"
	"github.com/sluicelake/sluice/storage/retry"
	"github.com/sluicelake/sluice/storage/s3/s3test"
	"github.com/sluicelake/sluice/storage/storagetest"
)

func TestStoreURL(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("AZURE_STORAGE_ACCOUNT", "lake")
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]string{
		"/data/orders":                           "/data/orders",
		"/data//orders/../x/":                    "/data/x",
		"orders":                                 filepath.Join(here, "orders"),
		"a:b/c":                                  filepath.Join(here, "a:b/c"),
		"file:/data/orders":                      "/data/orders",
		"FILE:///data/a%20b":                     "/data/a%20b",
		"file://localhost/data":                  "/data",
		"s3://lake":                              "s3://lake",
		"s3a://lake//a/b c%20#?/":                "s3://lake/a/b c%20#?",
		"S3N://lake/x":                           "s3://lake/x",
		"gs://lake//a/b":                         "gs://lake/a/b",
		"mem:orders":                             "mem://orders",
		"abfss://c@lake.dfs.core.windows.net/a/": "abfss://c@lake.dfs.core.windows.net/a",
		"WASBS://c@lake.blob.core.windows.net":   "wasbs://c@lake.blob.core.windows.net",
		"az://c/a%20b":                           "az://c/a%20b",
		"mem://orders":                           "mem://orders",
	} {
		s, err := open.Store(t.Context(), url, open.Options{})
		if err != nil {
			t.Errorf("%s: %v", url, err)
		} else if s.URL() != want {
			t.Errorf("%s opened %s, want %s", url, s.URL(), want)
		}
	}
	for url, hint := range map[string]string{
		"ftp://name/x":        `unknown scheme "ftp"; known are`,
		"gs:/b/x":             "gs://bucket/folder",
		"abfss://c@a/x":       "account.dfs.core.windows.net",
		"":                    "path is empty",
		"file://host/x":       "can't name the host",
		"file:x":              "absolute path",
		"s3:/lake/x":          "s3://bucket/folder",
		"s3:///x":             "no bucket name",
		"s3://lake/../x":      "unsafe object name",
		"s3a://KEY:pw@lake/x": "AWS_PROFILE",
		"\x00":                "NUL",
	} {
		_, err := open.Store(t.Context(), url, open.Options{})
		if err == nil || !strings.Contains(err.Error(), hint) || strings.Contains(err.Error(), "pw") {
			t.Errorf("%q: %v, want a hint at %q", url, err, hint)
		}
	}
}

func TestSplit(t *testing.T) {
	for url, want := range map[string][2]string{
		"s3://b/x/y.parquet":                   {"s3://b/x", "y.parquet"},
		"s3a://b/y.parquet":                    {"s3a://b", "y.parquet"},
		"gs://b/x/y.parquet":                   {"gs://b/x", "y.parquet"},
		"abfss://c@a.dfs.core.windows.net/x/y": {"abfss://c@a.dfs.core.windows.net/x", "y"},
		"/data/x.csv":                          {"/data", "x.csv"},
		"/x.csv":                               {"/", "x.csv"},
		"x.csv":                                {".", "x.csv"},
		"dir/sub/":                             {"dir", "sub"},
		"file:///data/x.csv":                   {"file:///data", "x.csv"},
		"file:/x.csv":                          {"file:/", "x.csv"},
	} {
		parent, base, err := open.Split(url)
		if err != nil || parent != want[0] || base != want[1] {
			t.Errorf("%s: %q, %q, %v", url, parent, base, err)
		}
	}
	for _, url := range []string{"s3://b", "s3://b/", "/", "", "..", "a/..", "mem:x", "s3:/b/x"} {
		if parent, base, err := open.Split(url); err == nil {
			t.Errorf("%q gave %q and %q", url, parent, base)
		}
	}
}

// What Split parts, Store and Open put together again.
func TestSplitOpens(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a b", "x%20.csv")
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("content"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{file, "file:" + file, "file://" + file} {
		parent, base, err := open.Split(url)
		if err != nil {
			t.Fatal(err)
		}
		s, err := open.Store(t.Context(), parent, open.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if data, err := storage.ReadAll(t.Context(), s, base, 100); string(data) != "content" {
			t.Errorf("%s: %q, %v", url, data, err)
		}
	}
}

func FuzzURL(f *testing.F) {
	for _, url := range []string{"s3://b/x", "file:///x", "mem:x", "a/b", "s3a://b//../x", "file:/", "C:\\x", "://", "s3://b/x/",
		"gs://b/x//y", "gs://b/../x", "abfss://c@a.dfs.core.windows.net/x", "wasb://c@a.blob.core.windows.net/../x", "az://c/x", "abfs://@/x"} {
		f.Add(url)
	}
	f.Fuzz(func(t *testing.T, url string) {
		s, err := open.Store(t.Context(), url, open.Options{})
		if err == nil && strings.Contains(s.URL(), "://") && !strings.HasPrefix(s.URL(), "mem:") && strings.Contains(s.URL()+"/", "/../") {
			t.Errorf("%q opened %q", url, s.URL())
		}
		parent, base, err := open.Split(url)
		if err != nil {
			return
		}
		if err := storage.CheckName(base); err != nil || strings.Contains(base, "/") {
			t.Errorf("%q has the base %q: %v", url, base, err)
		}
		if open.Scheme(parent) != open.Scheme(url) {
			t.Errorf("%q has the parent %q", url, parent)
		}
	})
}

func TestMemHub(t *testing.T) {
	opts := open.Options{Mem: &mem.Hub{}}
	for _, url := range []string{"mem:x", "mem://x"} {
		s, err := open.Store(t.Context(), url, opts)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Put(t.Context(), "once", nil, storage.PutOptions{IfAbsent: true}); (url == "mem://x") != errors.Is(err, storage.ErrExist) {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// Copies by the server go through all layers, and are counted.
func TestCopyFromThroughLayers(t *testing.T) {
	var counter count.Counter
	opts := open.Options{Count: &counter, Limit: limit.Options{Reads: 1, Writes: 1}}
	storagetest.RunCopyFrom(t, func(t *testing.T) (storage.Store, storage.Store) {
		a, errA := open.Store(t.Context(), "mem:a", opts)
		b, errB := open.Store(t.Context(), "mem:b", opts)
		if err := errors.Join(errA, errB); err != nil {
			t.Fatal(err)
		}
		return retry.New(a, retry.Options{}), fault.New(retry.New(b, retry.Options{}))
	})
	if n := counter.Stats()[count.Copy].Requests; n < 20 {
		t.Errorf("counted %d copies", n)
	}
}

// Only a URL and the AWS environment: all layers over a real server.
func TestConformanceS3ByEnvironment(t *testing.T) {
	server := s3test.Start(t)
	server.Setenv(t)
	var counter count.Counter
	storagetest.Run(t, func(t *testing.T) storage.Store {
		s, err := open.Store(t.Context(), "s3a://"+server.Bucket(t)+"/a/table", open.Options{Count: &counter, Limit: limit.Options{Reads: 4, Writes: 4}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
	if n := counter.Stats(); n[count.Put].Requests < 1000 {
		t.Errorf("counted %v", n)
	}
}
