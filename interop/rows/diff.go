package rows

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"
)

// shown is how many differing rows a difference prints; one is often luck, a hundred are noise.
const shown = 5

// Options of a comparison.
type Options struct {
	// Ignore names columns that are left out on both sides, such as _hoodie_file_name of a copy.
	Ignore []string
	// Key names columns that tell which two differing rows belong together, for the print only. The default is the
	// record key with the partition path where rows have them.
	Key []string
}

// Diff compares two bags of rows by the column types of want and returns what a person needs to see why they differ, or
// "" when every row has its equal twin. Counts matter: a row that comes twice must come twice.
func Diff(want, got Set, o Options) string {
	typed := Set{Columns: want.Columns, Rows: got.Rows}
	missing, extra := unmatched(lines(want.Canonical(), o), lines(typed.Canonical(), o))
	if len(missing) == 0 && len(extra) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "rows differ: want %d, got %d; %d of want are missing, %d of got are not wanted\n",
		len(want.Rows), len(got.Rows), len(missing), len(extra))
	printed := 0
	for _, m := range missing {
		if printed++; printed > shown {
			fmt.Fprintf(&b, "  … and %d more\n", len(missing)-shown)
			break
		}
		if at := slices.IndexFunc(extra, func(e line) bool { return e.key == m.key }); at >= 0 {
			fmt.Fprintf(&b, "  %s: %s\n", m.key, changes(m.row, extra[at].row))
			extra = slices.Delete(extra, at, at+1)
			continue
		}
		fmt.Fprintf(&b, "  missing: %s\n", clip(m.text))
	}
	for i, e := range extra {
		if i == shown {
			fmt.Fprintf(&b, "  … and %d more\n", len(extra)-shown)
			break
		}
		fmt.Fprintf(&b, "  not wanted: %s\n", clip(e.text))
	}
	return b.String()
}

// line is a row with its canonical text, by which rows are equal, and its key, by which rows are the same.
type line struct {
	text, key string
	row       Row
}

func lines(s Set, o Options) []line {
	out := make([]line, len(s.Rows))
	for i, row := range s.Rows {
		for _, name := range o.Ignore {
			delete(row, name)
		}
		out[i] = line{text: PythonJSON(row, false), key: keyText(row, o.Key), row: row}
	}
	slices.SortFunc(out, func(a, b line) int { return strings.Compare(a.text, b.text) })
	return out
}

func keyText(row Row, names []string) string {
	if names == nil {
		names = []string{"_hoodie_partition_path", "_hoodie_record_key"}
	}
	var parts []string
	for _, name := range names {
		if v, ok := row[name]; ok {
			parts = append(parts, fmt.Sprintf("%s=%v", name, v))
		}
	}
	if parts == nil {
		return PythonJSON(row, false)
	}
	return strings.Join(parts, " ")
}

// unmatched walks two sorted lists and keeps what has no equal on the other side.
func unmatched(want, got []line) (missing, extra []line) {
	i, j := 0, 0
	for i < len(want) && j < len(got) {
		switch strings.Compare(want[i].text, got[j].text) {
		case 0:
			i++
			j++
		case -1:
			missing = append(missing, want[i])
			i++
		default:
			extra = append(extra, got[j])
			j++
		}
	}
	return append(missing, want[i:]...), append(extra, got[j:]...)
}

func changes(want, got Row) string {
	names := slices.Sorted(maps.Keys(want))
	for name := range got {
		if _, ok := want[name]; !ok {
			names = append(names, name)
		}
	}
	var parts []string
	for _, name := range names {
		w, inWant := want[name]
		g, inGot := got[name]
		switch {
		case !inGot:
			parts = append(parts, fmt.Sprintf("no column %s (want %s)", name, clip(PythonJSON(w, false))))
		case !inWant:
			parts = append(parts, fmt.Sprintf("column %s not wanted (%s)", name, clip(PythonJSON(g, false))))
		default:
			if a, b := PythonJSON(w, false), PythonJSON(g, false); a != b {
				parts = append(parts, fmt.Sprintf("%s want %s, got %s", name, clip(a), clip(b)))
			}
		}
	}
	return strings.Join(parts, "; ")
}

func clip(s string) string {
	const most = 400
	if len(s) <= most {
		return s
	}
	cut := most
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// SHA256 is the digest by which long answers are kept: over the canonical rows, ordered by record key, partition path
// and content, one a line, each as Python's json.dumps(row, sort_keys=True, ensure_ascii=False).
func (s Set) SHA256() string {
	type ordered struct {
		key, partition, content, text string
	}
	canon := s.Canonical()
	all := make([]ordered, len(canon.Rows))
	for i, row := range canon.Rows {
		user := make(Row, len(row))
		for name, v := range row {
			if !strings.HasPrefix(name, "_hoodie_") {
				user[name] = v
			}
		}
		all[i] = ordered{pythonStr(row["_hoodie_record_key"]), pythonStr(row["_hoodie_partition_path"]),
			PythonJSON(user, true), PythonJSON(row, false)}
	}
	sort.SliceStable(all, func(i, j int) bool {
		a, b := all[i], all[j]
		if a.key != b.key {
			return a.key < b.key
		}
		if a.partition != b.partition {
			return a.partition < b.partition
		}
		return a.content < b.content
	})
	h := sha256.New()
	for i, o := range all {
		if i > 0 {
			h.Write([]byte{'\n'})
		}
		h.Write([]byte(o.text))
	}
	return hex.EncodeToString(h.Sum(nil))
}

func pythonStr(v any) string {
	if v == nil {
		return "None"
	}
	return fmt.Sprint(v)
}

// PythonJSON prints a value as Python's json.dumps(value, sort_keys=True, ensure_ascii=ascii) does, so that a digest
// made there can be made here.
func PythonJSON(v any, ascii bool) string {
	var b strings.Builder
	writePython(&b, v, ascii)
	return b.String()
}

func writePython(b *strings.Builder, v any, ascii bool) {
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case bool:
		fmt.Fprint(b, v)
	case json.Number:
		b.WriteString(string(v))
	case string:
		writePythonString(b, v, ascii)
	case []any:
		b.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			writePython(b, item, ascii)
		}
		b.WriteByte(']')
	case Row:
		writePython(b, map[string]any(v), ascii)
	case map[string]any:
		b.WriteByte('{')
		for i, name := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b.WriteString(", ")
			}
			writePythonString(b, name, ascii)
			b.WriteString(": ")
			writePython(b, v[name], ascii)
		}
		b.WriteByte('}')
	default:
		fmt.Fprintf(b, "%v", v)
	}
}

func writePythonString(b *strings.Builder, s string, ascii bool) {
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\b':
			b.WriteString(`\b`)
		case r == '\f':
			b.WriteString(`\f`)
		case r < 0x20 || ascii && r >= 0x7f && r < 0x10000:
			fmt.Fprintf(b, `\u%04x`, r)
		case ascii && r >= 0x10000:
			r -= 0x10000
			fmt.Fprintf(b, `\u%04x\u%04x`, 0xd800+(r>>10), 0xdc00+(r&0x3ff))
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
}
