package sparksql

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sluicelake/sluice/hudi/keygen"
)

// jsonObject is get_json_object: what a path such as $.a.b[0] or $['a'] names in a JSON text: a text without its quotes, other
// values as JSON. It is null when the text is no JSON or has nothing there. Wildcards are not supported.
func jsonObject(text, path string) (string, bool) {
	steps, ok := jsonPath(path)
	if !ok {
		return "", false
	}
	raw := json.RawMessage(text)
	if !json.Valid(raw) {
		return "", false
	}
	for _, step := range steps {
		if raw, ok = jsonStep(raw, step); !ok {
			return "", false
		}
	}
	raw = bytes.TrimSpace(raw)
	switch {
	case bytes.Equal(raw, []byte("null")):
		return "", false
	case raw[0] == '"':
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return "", false
		}
		return s, true
	}
	return string(rewritten(nil, raw)), true
}

// rewritten is a JSON value as Java's writer puts it: no blanks, fractions as doubles (1.50 is 1.5, 1e3 is 1000.0), texts
// with the escapes that they need.
func rewritten(b []byte, raw []byte) []byte {
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
		case c == '"':
			end := i + 1
			for raw[end] != '"' {
				if raw[end] == '\\' {
					end++
				}
				end++
			}
			var s string
			if json.Unmarshal(raw[i:end+1], &s) != nil {
				return append(b, raw[i:]...)
			}
			b = appendText(b, s)
			i = end
		case c == '-' || c >= '0' && c <= '9':
			end := i
			for end < len(raw) && strings.IndexByte("+-.eE0123456789", raw[end]) >= 0 {
				end++
			}
			number := string(raw[i:end])
			if f, err := strconv.ParseFloat(number, 64); err == nil && strings.ContainsAny(number, ".eE") {
				b = keygen.AppendFloat(b, f, 64)
			} else {
				b = append(b, number...)
			}
			i = end - 1
		default:
			b = append(b, c)
		}
	}
	return b
}

func appendText(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\b':
			b = append(b, `\b`...)
		case r == '\f':
			b = append(b, `\f`...)
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r < ' ':
			b = fmt.Appendf(b, `\u%04X`, r)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}

type pathStep struct {
	name  string
	index int // -1: a name
}

func jsonPath(path string) (steps []pathStep, ok bool) {
	rest, ok := strings.CutPrefix(path, "$")
	for ok && rest != "" {
		switch {
		case strings.HasPrefix(rest, "['"):
			end := strings.Index(rest, "']")
			if end < 0 {
				return nil, false
			}
			steps = append(steps, pathStep{rest[2:end], -1})
			rest = rest[end+2:]
		case rest[0] == '[':
			end := strings.IndexByte(rest, ']')
			if end < 0 {
				return nil, false
			}
			i, err := strconv.Atoi(rest[1:end])
			if err != nil || i < 0 {
				return nil, false
			}
			steps = append(steps, pathStep{"", i})
			rest = rest[end+1:]
		case rest[0] == '.':
			rest = rest[1:]
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			if end == 0 || rest[:end] == "*" {
				return nil, false
			}
			steps = append(steps, pathStep{rest[:end], -1})
			rest = rest[end:]
		default:
			return nil, false
		}
	}
	return steps, ok
}

func jsonStep(raw json.RawMessage, step pathStep) (json.RawMessage, bool) {
	if step.index >= 0 {
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil || step.index >= len(list) {
			return nil, false
		}
		return list[step.index], true
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil {
		return nil, false
	}
	v, ok := object[step.name]
	return v, ok
}
