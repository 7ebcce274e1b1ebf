package config

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
)

// Scope says who reads a key.
type Scope string

// The scopes.
const (
	ScopeTable    Scope = "table"    // stored in hoodie.properties
	ScopeRead     Scope = "read"     // queries
	ScopeWrite    Scope = "write"    // writers and table services
	ScopeKeyGen   Scope = "keygen"   // record keys and partition paths
	ScopeStreamer Scope = "streamer" // sources, schemas, transformers, checkpoints
	ScopeSync     Scope = "sync"     // Hive and Glue
)

// Use says what Sluice does with a key.
type Use string

// The uses.
const (
	Honoured Use = "honoured" // has its effect
	Kept     Use = "kept"     // stored in the table, preserved, of no effect here
	Ignored  Use = "ignored"  // accepted so that scripts run, of no effect: it tunes an engine that Sluice does not have
	Refused  Use = "refused"  // a run that needs it is refused with an explanation
)

// Kind is the type of a value.
type Kind string

// The kinds.
const (
	KindString Kind = "string"
	KindBool   Kind = "bool"
	KindInt    Kind = "int"
	KindFloat  Kind = "float"
	KindList   Kind = "list" // comma separated
	KindEnum   Kind = "enum"
	KindClass  Kind = "class" // Java class name, or Sluice's short name for it
)

// Key is one hoodie.* key.
type Key struct {
	Name    string
	Old     []string // names of earlier releases that mean the same
	Kind    Kind
	Default string // empty: none
	Since   string // release of Apache Hudi; empty: since the beginning
	Scope   Scope
	Use     Use
	Doc     string
	// Family keys are prefixes or patterns: the name ends in "<x>" where any text may stand, or holds "<table>" in its middle.
	Family bool
}

// registry is built once; the keys themselves are in keys.go.
type registry struct {
	keys   []Key
	byName map[string]int // present and old names
}

var load = sync.OnceValue(func() registry {
	r := registry{byName: map[string]int{}}
	for _, part := range [][]Key{tableKeys(), readKeys(), writeKeys(), keygenKeys(), streamerKeys(), syncKeys()} {
		r.keys = append(r.keys, part...)
	}
	slices.SortFunc(r.keys, func(a, b Key) int { return strings.Compare(a.Name, b.Name) })
	for i, k := range r.keys {
		for _, old := range k.Old {
			r.byName[old] = i
		}
	}
	for i, k := range r.keys { // a present name wins: precombine.field is a key of its own and an old name of another
		r.byName[k.Name] = i
	}
	return r
})

// Keys are all keys that Sluice knows, by name.
func Keys() []Key { return slices.Clone(load().keys) }

// Lookup finds a key by its present or an old name, or as a member of a family ("hoodie.record.merge.property.x").
func Lookup(name string) (Key, bool) {
	r := load()
	if i, ok := r.byName[name]; ok {
		return r.keys[i], true
	}
	for _, k := range r.keys {
		if k.Family && k.covers(name) {
			return k, true
		}
	}
	return Key{}, false
}

// covers matches a family's name, in which one <...> stands for any text of at least one character.
func (k Key) covers(name string) bool {
	for _, pattern := range append([]string{k.Name}, k.Old...) {
		before, rest, ok := strings.Cut(pattern, "<")
		if !ok {
			continue
		}
		_, after, _ := strings.Cut(rest, ">")
		if len(name) > len(before)+len(after) && strings.HasPrefix(name, before) && strings.HasSuffix(name, after) {
			return true
		}
	}
	return false
}

// Canonical is the present name of a key; an unknown name stays as it is.
func Canonical(name string) string {
	r := load()
	if i, ok := r.byName[name]; ok {
		return r.keys[i].Name
	}
	return name
}

// Nearest finds the known name that an unknown one was probably meant to be: one that differs by at most two letters in
// position, number or kind, case and the prefix "hoodie." left aside. Use it for "did you mean".
func Nearest(name string) (string, bool) {
	if _, known := Lookup(name); known || len(name) > 200 {
		return "", false
	}
	best, bestDistance := "", 3
	lower := strings.ToLower(name)
	for known := range load().byName {
		k := strings.ToLower(known)
		d := distance(lower, k, bestDistance+1)
		if short, ok := strings.CutPrefix(k, "hoodie."); ok && lower == short {
			d = 1
		}
		if d < bestDistance || d == bestDistance && best != "" && known < best {
			best, bestDistance = known, d
		}
	}
	return best, best != ""
}

// distance is the edit distance of two texts, or limit when it is not below limit.
func distance(a, b string, limit int) int {
	if a == b {
		return 0
	}
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	prev, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			step := 1
			if a[i] == b[j] {
				step = 0
			}
			row[j+1] = min(prev[j]+step, prev[j+1]+1, row[j]+1)
		}
		prev, row = row, prev
	}
	return min(prev[len(b)], limit)
}

// Markdown writes the reference page of all keys, one table per scope.
func Markdown(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# Configuration keys\n\n")
	b.WriteString("Every `hoodie.*` key that Sluice knows. This page is generated from the registry in `hudi/config`; change it there.\n\n")
	b.WriteString("**Sluice** says what happens: *honoured* has its effect; *kept* is stored in the table and preserved; *ignored* is accepted\n")
	b.WriteString("so that scripts run, and has no effect; *refused* stops the run with an explanation. Unknown keys of a table are always preserved.\n")
	titles := []struct {
		scope Scope
		title string
	}{
		{ScopeTable, "Table properties (`hoodie.properties`)"}, {ScopeRead, "Reading"}, {ScopeWrite, "Writing and table services"},
		{ScopeKeyGen, "Record keys and partition paths"}, {ScopeStreamer, "Streamer"}, {ScopeSync, "Catalog sync"},
	}
	for _, t := range titles {
		fmt.Fprintf(&b, "\n## %s\n\n| key | type | default | since | Sluice | meaning |\n|---|---|---|---|---|---|\n", t.title)
		for _, k := range load().keys {
			if k.Scope == t.scope {
				writeRow(&b, k)
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeRow(b *strings.Builder, k Key) {
	cell := strings.NewReplacer("|", `\|`, "\n", " ").Replace
	name := "`" + cell(k.Name) + "`"
	for _, old := range k.Old {
		name += "<br>old: `" + cell(old) + "`"
	}
	absent := k.Default
	if absent != "" {
		absent = "`" + cell(absent) + "`"
	}
	fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", name, k.Kind, absent, cmp.Or(k.Since, "-"), k.Use, cell(k.Doc))
}
