package source

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// maxJSONDepth bounds the nesting of a value.
const maxJSONDepth = 256

// scanner walks over JSON text and checks it; it makes nothing.
type scanner struct {
	text  []byte
	pos   int
	names bool // NaN, Infinity and -Infinity are numbers
}

var errShort = errors.New("the text ends in the middle of a value")

func (s *scanner) space() {
	for s.pos < len(s.text) {
		switch s.text[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

func (s *scanner) errorf(format string, args ...any) error {
	return fmt.Errorf("column %d: %s", s.pos+1, fmt.Sprintf(format, args...))
}

// value skips one value and gives its text.
func (s *scanner) value(depth int) ([]byte, error) {
	s.space()
	if s.pos >= len(s.text) {
		return nil, errShort
	}
	start := s.pos
	var err error
	switch c := s.text[s.pos]; {
	case c == '"':
		_, err = s.str()
	case c == '{':
		err = s.members(depth, nil)
	case c == '[':
		err = s.elements(depth, nil)
	case s.named():
	case c == '-' || c >= '0' && c <= '9':
		err = s.number()
	default:
		err = s.literal()
	}
	return s.text[start:s.pos], err
}

// members walks an object and tells each of its keys (without quotes, escapes as they stand) and values.
func (s *scanner) members(depth int, each func(key, value []byte) error) error {
	return s.list(depth, '}', func() error {
		if s.text[s.pos] != '"' {
			return s.errorf("a key in quotes was expected, not %q", s.text[s.pos])
		}
		key, err := s.str()
		if err != nil {
			return err
		}
		s.space()
		if s.pos >= len(s.text) {
			return errShort
		}
		if s.text[s.pos] != ':' {
			return s.errorf("a colon was expected, not %q", s.text[s.pos])
		}
		s.pos++
		value, err := s.value(depth + 1)
		if err != nil || each == nil {
			return err
		}
		return each(key[1:len(key)-1], value)
	})
}

func (s *scanner) elements(depth int, each func(value []byte) error) error {
	return s.list(depth, ']', func() error {
		value, err := s.value(depth + 1)
		if err != nil || each == nil {
			return err
		}
		return each(value)
	})
}

// list walks what stands between the bracket at pos and the closing one, with commas between.
func (s *scanner) list(depth int, closing byte, item func() error) error {
	if depth >= maxJSONDepth {
		return s.errorf("nested more than %d levels", maxJSONDepth)
	}
	s.pos++
	for n := 0; ; n++ {
		s.space()
		if s.pos >= len(s.text) {
			return errShort
		}
		if c := s.text[s.pos]; c == closing && n == 0 {
			s.pos++
			return nil
		}
		if err := item(); err != nil {
			return err
		}
		s.space()
		if s.pos >= len(s.text) {
			return errShort
		}
		switch s.text[s.pos] {
		case closing:
			s.pos++
			return nil
		case ',':
			s.pos++
		default:
			return s.errorf("a comma or %q was expected, not %q", closing, s.text[s.pos])
		}
	}
}

// str skips a text in quotes and gives it with its quotes.
func (s *scanner) str() ([]byte, error) {
	start := s.pos
	for i := s.pos + 1; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '"':
			s.pos = i + 1
			return s.text[start:s.pos], nil
		case c == '\\':
			i++
		case c < 0x20:
			s.pos = i
			return nil, s.errorf("a control character (%#x) in a text", c)
		}
	}
	return nil, errShort
}

func (s *scanner) number() error {
	digits := func() bool {
		start := s.pos
		for s.pos < len(s.text) && s.text[s.pos] >= '0' && s.text[s.pos] <= '9' {
			s.pos++
		}
		return s.pos > start
	}
	at := func(c ...byte) bool { return s.pos < len(s.text) && bytes.IndexByte(c, s.text[s.pos]) >= 0 }
	if at('-') {
		s.pos++
	}
	zero := at('0')
	start := s.pos
	if !digits() || zero && s.pos > start+1 {
		return s.errorf("not a number")
	}
	if at('.') {
		s.pos++
		if !digits() {
			return s.errorf("not a number")
		}
	}
	if at('e', 'E') {
		s.pos++
		if at('+', '-') {
			s.pos++
		}
		if !digits() {
			return s.errorf("not a number")
		}
	}
	return nil
}

// named skips a number that is a name.
func (s *scanner) named() bool { return s.names && s.word("NaN", "Infinity", "-Infinity") }

// word skips one of these.
func (s *scanner) word(words ...string) bool {
	for _, w := range words {
		if bytes.HasPrefix(s.text[s.pos:], []byte(w)) {
			s.pos += len(w)
			return true
		}
	}
	return false
}

func (s *scanner) literal() error {
	if s.word("true", "false", "null") {
		return nil
	}
	end := s.pos
	for end < len(s.text) && end < s.pos+20 && s.text[end] > ' ' && bytes.IndexByte([]byte(",:{}[]\""), s.text[end]) < 0 {
		end++
	}
	return s.errorf("unrecognized token %q", s.text[s.pos:max(end, s.pos+1)])
}

// appendText writes the characters of a text without its quotes: escapes undone, what is no UTF-8 replaced.
func appendText(b, raw []byte) ([]byte, error) {
	if bytes.IndexByte(raw, '\\') < 0 {
		if utf8.Valid(raw) {
			return append(b, raw...), nil
		}
		return append(b, bytes.ToValidUTF8(raw, []byte("\uFFFD"))...), nil
	}
	for i := 0; i < len(raw); {
		c := raw[i]
		if c != '\\' {
			r, n := utf8.DecodeRune(raw[i:])
			b = utf8.AppendRune(b, r)
			i += n
			continue
		}
		if i+1 >= len(raw) {
			return nil, errShort
		}
		i += 2
		switch e := raw[i-1]; e {
		case '"', '\\', '/':
			b = append(b, e)
		case 'b':
			b = append(b, '\b')
		case 'f':
			b = append(b, '\f')
		case 'n':
			b = append(b, '\n')
		case 'r':
			b = append(b, '\r')
		case 't':
			b = append(b, '\t')
		case 'u':
			r, n, err := unicodeEscape(raw[i:])
			if err != nil {
				return nil, err
			}
			b = utf8.AppendRune(b, r)
			i += n
		default:
			return nil, fmt.Errorf("unrecognized escape \\%c", e)
		}
	}
	return b, nil
}

// unicodeEscape reads the digits behind \u, and those of the second half of a pair.
func unicodeEscape(raw []byte) (r rune, n int, err error) {
	first, ok := hex4(raw)
	if !ok {
		return 0, 0, errors.New(`four hexadecimal digits are expected behind \u`)
	}
	if !utf16.IsSurrogate(first) {
		return first, 4, nil
	}
	if len(raw) >= 10 && raw[4] == '\\' && raw[5] == 'u' {
		if second, ok := hex4(raw[6:]); ok {
			if r := utf16.DecodeRune(first, second); r != utf8.RuneError {
				return r, 10, nil
			}
		}
	}
	return '?', 4, nil // half a pair, which Java writes like this
}

func hex4(raw []byte) (rune, bool) {
	if len(raw) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range raw[:4] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}
