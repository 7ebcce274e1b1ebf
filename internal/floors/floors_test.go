// Package floors holds the one test of how the house is built: a package imports packages of its own floor and of the
// floors below it, never above. A new top-level folder must be given a floor here.
package floors

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/sluicelake/sluice/"

// The floors, by top-level folder. Test support has no floor: it may use everything, and only tests may use it.
var floors = map[string]int{
	"storage": 1,
	"hudi":    2, "orc": 2,
	"engine": 3,
	"export": 4, "streamer": 4, "capture": 4, "catalog": 4, "query": 4,
	"cmd": 5, "server": 5, "notebook": 5,
}

var support = []string{"interop", "bench", "internal/fixture", "internal/floors", "internal/foreign", "internal/lakemodel"}

// shared lists internal packages that any floor may use: they know nothing of the project.
var shared = []string{"internal/"}

func TestFloors(t *testing.T) {
	root := filepath.Join("..", "..")
	checked := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && d.Name() != "." && d.Name() != "..") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		checked++
		return checkFile(t, path, filepath.ToSlash(name))
	})
	if err != nil {
		t.Fatal(err)
	}
	if checked < 20 {
		t.Errorf("only %d files were looked at", checked)
	}
}

func checkFile(t *testing.T, path, name string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, data, parser.ImportsOnly)
	if err != nil {
		return err
	}
	test := strings.HasSuffix(name, "_test.go") || within(name, support)
	own, known := floorOf(name)
	if !known && !test && !within(name, shared) {
		t.Errorf("%s: folder %q has no floor; give it one in internal/floors", name, strings.SplitN(name, "/", 2)[0])
	}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		if imported == "C" && known && own <= 2 {
			t.Errorf("%s: cgo on floor %d", name, own)
		}
		target, ours := strings.CutPrefix(imported, module)
		if !ours {
			continue
		}
		if within(target+"/", support) && !test {
			t.Errorf("%s imports %s, which is for tests", name, target)
		}
		floor, ok := floorOf(target + "/")
		if !known && ok && !test {
			t.Errorf("%s imports %s: what every floor may use knows no floor", name, target)
		}
		if known && ok && floor > own && !test {
			t.Errorf("%s (floor %d) imports %s (floor %d)", name, own, target, floor)
		}
	}
	return nil
}

func floorOf(name string) (int, bool) {
	top, _, _ := strings.Cut(name, "/")
	f, ok := floors[top]
	return f, ok
}

func within(name string, folders []string) bool {
	for _, f := range folders {
		if strings.HasPrefix(name, strings.TrimSuffix(f, "/")+"/") {
			return true
		}
	}
	return false
}
