package formula

import (
	"reflect"
	"strings"
	"testing"

	"github.com/expr-lang/expr/vm"
)

func TestParse(t *testing.T) {
	list, err := Parse("a = x + \"; y = \\\"\" ; b int= let k = x; let l = k; k + z + l;; c = `\\`; d = _hoodie_partition_path; e = len($env); ")
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]any{"x": "1", "z": "2", "_hoodie_partition_path": "p"}
	want := []struct {
		Formula
		value any
	}{
		{Formula{Head: "a", Text: `x + "; y = \""`, Uses: []string{"x"}}, `1; y = "`},
		{Formula{Head: "b int", Text: "let k = x; let l = k; k + z + l", Uses: []string{"x", "z"}}, "121"},
		{Formula{Head: "c", Text: "`\\`"}, `\`},
		{Formula{Head: "d", Text: "_hoodie_partition_path", Uses: []string{"_hoodie_partition_path"}, Alone: "_hoodie_partition_path"}, "p"},
		{Formula{Head: "e", Text: "len($env)", UsesAll: true}, 3},
	}
	if len(list) != len(want) {
		t.Fatalf("%d formulas, want %d", len(list), len(want))
	}
	for i, w := range want {
		got := list[i]
		var machine vm.VM
		if value, err := machine.Run(got.Program, env); err != nil || value != w.value {
			t.Errorf("%s is %v, want %v: %v", got.Text, value, w.value, err)
		}
		if got.Program = nil; !reflect.DeepEqual(got, w.Formula) {
			t.Errorf("got %+v, want %+v", got, w.Formula)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"a = b; c":      `"c" is not name = expression`,
		"a == b":        `"a == b" is not name = expression`,
		"= b":           `"= b" is not name = expression`,
		"a = ":          `"a =" is not name = expression`,
		"a = 1; b = (":  `"b = (": unexpected token`,
		"a = let b = 1": `"a = let b = 1": unexpected token`,
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
