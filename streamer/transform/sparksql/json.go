package sparksql

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
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
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return "", false
	}
	return b.String(), true
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
