package config

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
)

// Properties is the text of a java.util.Properties file: keys with values in the order in which they stand in the file.
// Keys that nobody here knows are kept as they are (table format 1.2).
type Properties struct {
	keys   []string
	values map[string]string
}

// MaxPropertiesSize is the largest file that ParseProperties accepts, in bytes. A wide table's schema takes a few hundred
// kilobytes; more than this is no properties file.
const MaxPropertiesSize = 64 << 20

// NewProperties makes an empty set.
func NewProperties() *Properties { return &Properties{values: map[string]string{}} }

// Get returns the value of a key by its exact name.
func (p *Properties) Get(key string) (string, bool) {
	v, ok := p.values[key]
	return v, ok
}

// Set puts a value; a new key goes to the end.
func (p *Properties) Set(key, value string) {
	if _, ok := p.values[key]; !ok {
		p.keys = append(p.keys, key)
	}
	p.values[key] = value
}

// Delete removes a key; one that is absent is no error.
func (p *Properties) Delete(key string) {
	if _, ok := p.values[key]; !ok {
		return
	}
	delete(p.values, key)
	p.keys = slices.DeleteFunc(p.keys, func(k string) bool { return k == key })
}

// Keys are the keys in file order.
func (p *Properties) Keys() []string { return slices.Clone(p.keys) }

// Len is the number of keys.
func (p *Properties) Len() int { return len(p.keys) }

// Clone copies the set.
func (p *Properties) Clone() *Properties {
	return &Properties{keys: slices.Clone(p.keys), values: maps.Clone(p.values)}
}

// ParseProperties reads the text as Java does: ISO-8859-1, comments, continued lines, the separators "=", ":" and blank, all
// escapes. The last of several equal keys wins. Errors name the byte offset.
func ParseProperties(text []byte) (*Properties, error) {
	if len(text) > MaxPropertiesSize {
		return nil, fmt.Errorf("properties of %d bytes: more than %d", len(text), MaxPropertiesSize)
	}
	p := NewProperties()
	for pos := 0; pos < len(text); {
		start, end := pos, lineEnd(text, pos)
		pos = skipTerminator(text, end)
		line := bytes.TrimLeft(text[start:end], " \t\f")
		if len(line) == 0 || line[0] == '#' || line[0] == '!' {
			continue
		}
		start = end - len(line)
		if endsInEscape(line) {
			line, pos = joinLines(text, line, pos)
		}
		key, value := splitEntry(line)
		k, err := unescape(key)
		if err != nil {
			return nil, fmt.Errorf("properties entry at byte %d: %w", start, err)
		}
		v, err := unescape(value)
		if err != nil {
			return nil, fmt.Errorf("properties entry %q at byte %d: %w", k, start, err)
		}
		p.Set(k, v)
	}
	return p, nil
}

// joinLines appends the continuation lines that begin at pos to line, which ends in a backslash, and gives the place behind them.
func joinLines(text, line []byte, pos int) ([]byte, int) {
	joined := slices.Clone(line)
	for tail := line; endsInEscape(tail); {
		joined = joined[:len(joined)-1]
		if pos >= len(text) {
			break // a backslash before the end of the file joins nothing
		}
		end := lineEnd(text, pos)
		tail = bytes.TrimLeft(text[pos:end], " \t\f")
		joined = append(joined, tail...)
		pos = skipTerminator(text, end)
	}
	return joined, pos
}

func lineEnd(text []byte, from int) int {
	if i := bytes.IndexAny(text[from:], "\r\n"); i >= 0 {
		return from + i
	}
	return len(text)
}

func skipTerminator(text []byte, at int) int {
	switch {
	case at >= len(text):
		return at
	case text[at] == '\r' && at+1 < len(text) && text[at+1] == '\n':
		return at + 2
	}
	return at + 1
}

// endsInEscape reports an odd number of backslashes at the end.
func endsInEscape(line []byte) bool {
	n := len(line) - len(bytes.TrimRight(line, `\`))
	return n%2 == 1
}

func splitEntry(line []byte) (key, value []byte) {
	i := 0
	for ; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
			continue
		case '=', ':', ' ', '\t', '\f':
		default:
			continue
		}
		break
	}
	i = min(i, len(line)) // an escape may have stepped over the end
	key, value = line[:i], bytes.TrimLeft(line[i:], " \t\f")
	if len(value) > 0 && (value[0] == '=' || value[0] == ':') {
		value = bytes.TrimLeft(value[1:], " \t\f")
	}
	return key, value
}

func unescape(text []byte) (string, error) {
	if !bytes.ContainsFunc(text, func(r rune) bool { return r == '\\' || r >= 0x80 }) {
		return string(text), nil
	}
	units := make([]uint16, 0, len(text))
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c != '\\' {
			units = append(units, uint16(c))
			continue
		}
		if i++; i >= len(text) {
			break
		}
		switch text[i] {
		case 't':
			units = append(units, '\t')
		case 'n':
			units = append(units, '\n')
		case 'r':
			units = append(units, '\r')
		case 'f':
			units = append(units, '\f')
		case 'u':
			if i+4 >= len(text) {
				return "", fmt.Errorf(`malformed \u escape %q`, text[i-1:])
			}
			u, err := strconv.ParseUint(string(text[i+1:i+5]), 16, 16)
			if err != nil {
				return "", fmt.Errorf(`malformed \u escape %q`, text[i-1:i+5])
			}
			units = append(units, uint16(u))
			i += 4
		default:
			units = append(units, uint16(text[i]))
		}
	}
	return string(utf16.Decode(units)), nil
}

// Encode writes the text as Java stores it (table format 1.2): two comment lines that carry the time, then the entries with
// everything escaped. Properties with a valid checksum say "Updated at"; otherwise the checksum is computed and put in, and
// the first line says "Properties saved on".
func (p *Properties) Encode(at time.Time) []byte {
	at = at.UTC()
	first := "Updated at "
	out := p
	if !p.ValidChecksum() {
		first = "Properties saved on "
		out = p.Clone()
		out.Set(TableChecksum, strconv.FormatUint(uint64(p.Checksum()), 10))
	}
	var b bytes.Buffer
	b.WriteString("#" + first + javaInstant(at) + "\n#" + at.Format("Mon Jan 02 15:04:05 MST 2006") + "\n")
	for _, k := range out.keys {
		writeEscaped(&b, k, true)
		b.WriteByte('=')
		writeEscaped(&b, out.values[k], false)
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// javaInstant prints a time as java.time.Instant does: no fraction, or three, six or nine digits of it.
func javaInstant(at time.Time) string {
	switch ns := at.Nanosecond(); {
	case ns == 0:
		return at.Format("2006-01-02T15:04:05Z")
	case ns%1e6 == 0:
		return at.Format("2006-01-02T15:04:05.000Z")
	case ns%1e3 == 0:
		return at.Format("2006-01-02T15:04:05.000000Z")
	}
	return at.Format("2006-01-02T15:04:05.000000000Z")
}

func writeEscaped(b *bytes.Buffer, text string, key bool) {
	for i, u := range utf16.Encode([]rune(text)) {
		switch {
		case u == ' ':
			if key || i == 0 {
				b.WriteByte('\\')
			}
			b.WriteByte(' ')
		case u == '\t':
			b.WriteString(`\t`)
		case u == '\n':
			b.WriteString(`\n`)
		case u == '\r':
			b.WriteString(`\r`)
		case u == '\f':
			b.WriteString(`\f`)
		case u == '\\' || u == '=' || u == ':' || u == '#' || u == '!':
			b.WriteByte('\\')
			b.WriteByte(byte(u))
		case u < 0x20 || u > 0x7e:
			fmt.Fprintf(b, `\u%04X`, u)
		default:
			b.WriteByte(byte(u))
		}
	}
}

// Checksum is the CRC-32 of "<database>.<table>" (table format 1.2). It covers nothing else.
func (p *Properties) Checksum() uint32 {
	return crc32.ChecksumIEEE([]byte(p.values[DatabaseName] + "." + p.values[TableName]))
}

// ValidChecksum reports whether hoodie.table.checksum is there and right.
func (p *Properties) ValidChecksum() bool {
	stored, ok := p.values[TableChecksum]
	if !ok {
		return false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(stored), 10, 64)
	return err == nil && n == int64(p.Checksum())
}
