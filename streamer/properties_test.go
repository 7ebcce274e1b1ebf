package streamer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluicelake/sluice/storage"
)

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return name
}

// The order of precedence, the syntax of files, and include (tools C.2).
func TestProperties(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HUDI_CONF_DIR", dir)
	writeFile(t, filepath.Join(dir, "hudi-defaults.conf"), "# global\nhoodie.a   global\nhoodie.b=global\nhoodie.c = global\nhoodie.d global\n")
	writeFile(t, filepath.Join(dir, "base.properties"), "hoodie.b=base\nhoodie.c=base\nhoodie.e=a=b  c\n\nlonely\n")
	main := writeFile(t, filepath.Join(dir, "main.properties"), "hoodie.b=lost\ninclude =base.properties\nhoodie.c=main\n  #no\n")
	props, notes, err := LoadProperties(t.Context(), "file://"+main, []string{"hoodie.d=first", "justakey", "hoodie.d=x=y", "hoodie.f=1,hoodie.g.h=2,3, hoodie.i=4"})
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"hoodie.a": "global", "hoodie.b": "base", "hoodie.c": "main", "hoodie.d": "x=y", "hoodie.e": "a=b c",
		"hoodie.f": "1", "hoodie.g.h": "2,3", "hoodie.i": "4", "justakey": ""} {
		if props[key] != want {
			t.Errorf("%s is %q, want %q", key, props[key], want)
		}
	}
	if text := strings.Join(notes, "\n"); !strings.Contains(text, "taken as 3 properties") || !strings.Contains(text, "justakey") {
		t.Error(text)
	}
	writeFile(t, filepath.Join(dir, "base.properties"), "include=main.properties\n")
	if _, _, err := LoadProperties(t.Context(), main, nil); err == nil || !strings.Contains(err.Error(), "Loop detected") {
		t.Errorf("a loop: %v", err)
	}
	if _, _, err := LoadProperties(t.Context(), dir+"/none", nil); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "Cannot read properties from dfs from file "+dir+"/none") {
		t.Errorf("no file: %v", err)
	}
	for _, none := range []string{"", NoProps, "file:///opt/hudi/src/test/resources/streamer-config/dfs-source.properties"} {
		if _, _, err := LoadProperties(t.Context(), none, nil); err != nil {
			t.Errorf("%q stands for no file: %v", none, err)
		}
	}
}

// A comma belongs to the value unless a property follows it (#1586).
func TestSplitPairs(t *testing.T) {
	for text, want := range map[string][]string{
		"hoodie.datasource.write.recordkey.field=f1,f2":              {"hoodie.datasource.write.recordkey.field=f1,f2"},
		"a=1,hoodie.b=2,hoodie.c.d=3":                                {"a=1", "hoodie.b=2", "hoodie.c.d=3"},
		"hoodie.x=SELECT a, hoodie.y FROM t":                         {"hoodie.x=SELECT a, hoodie.y FROM t"},
		"hoodie.x=hoodie.y=1":                                        {"hoodie.x=hoodie.y=1"},
		"hoodie.x=1, hoodie.y=2":                                     {"hoodie.x=1", " hoodie.y=2"},
		"hoodie.deltastreamer.transformer.sql=SELECT a,b FROM <SRC>": {"hoodie.deltastreamer.transformer.sql=SELECT a,b FROM <SRC>"},
	} {
		if got := splitPairs(text); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// A property is found by its present name first, whatever the order in which both were given.
func TestOldNames(t *testing.T) {
	p := Properties{"hoodie.deltastreamer.source.dfs.root": "old", "hoodie.streamer.source.dfs.root": "new", "hoodie.deltastreamer.csv.sep": ";", "hoodie.deltastreamer.csv.quote": "x", "hoodie.streamer.csv.quote": "y"}
	if got := p.text(keyRoot); got != "new" {
		t.Error(got)
	}
	if got := fmt.Sprint(p.family("hoodie.streamer.csv.", "hoodie.deltastreamer.csv.")); got != "map[quote:y sep:;]" {
		t.Error(got)
	}
	delete(p, "hoodie.streamer.source.dfs.root")
	if got := p.text(keyRoot); got != "old" {
		t.Error(got)
	}
}

// The schema of a registry, with the user of the URL as basic authentication; the password is in no error.
func TestSchemaRegistry(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if user != "u" || password != "secret" || r.URL.Path != "/subjects/t/versions/latest" {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		fmt.Fprint(w, `{"subject":"t","version":1,"schema":"{\"type\":\"record\",\"name\":\"t\",\"fields\":[{\"name\":\"id\",\"type\":\"long\"}]}"}`)
	}))
	defer server.Close()
	at := strings.Replace(server.URL, "http://", "http://u:secret@", 1) + "/subjects/t/versions/latest"
	s, err := provide(t.Context(), "org.apache.hudi.utilities.schema.SchemaRegistryProvider", Properties{"hoodie.deltastreamer.schemaprovider.registry.url": at}, nil)
	if err != nil || len(s.source.Fields) != 1 || s.target != s.source {
		t.Fatalf("%+v, %v", s, err)
	}
	if s, err = provide(t.Context(), "NullTargetSchemaRegistryProvider", Properties{keyRegistry: at}, nil); err != nil || s.target != nil {
		t.Errorf("null target: %+v, %v", s, err)
	}
	_, err = provide(t.Context(), "SchemaRegistryProvider", Properties{keyRegistry: at + "x"}, nil)
	if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "403") {
		t.Errorf("forbidden: %v", err)
	}
}

func TestTemporary(t *testing.T) {
	for err, want := range map[error]bool{
		fmt.Errorf("x: %w", storage.ErrTemporary): true, context.DeadlineExceeded: true, storage.ErrNotExist: false, errors.New("bad line"): false,
	} {
		if temporary(err) != want {
			t.Errorf("%v: %v", err, !want)
		}
	}
}
