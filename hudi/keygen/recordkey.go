package keygen

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Part is one value of a record key; Null for the placeholder of null.
type Part struct {
	Text string
	Null bool
}

// ParseRecordKey takes a named key apart, as the reference does for bucket indexes, change data and pruning (key generation
// 6.4). wanted chooses parts by field name; nil takes all. Parts come in the order of the key. The rule changed with release
// 1.0; ambiguous keys (values that hold ",text:") are read as that release reads them.
func ParseRecordKey(key string, wanted []string, r Release) ([]Part, error) {
	switch {
	case r.newKeyParser():
		return parseNew(key, wanted), nil
	case r.since(0, 10, 0):
		return parseOld(key, wanted), nil
	}
	return parseOldest(key)
}

func isWanted(field string, wanted []string) bool {
	if wanted == nil {
		return true
	}
	for _, w := range wanted {
		if w == field {
			return true
		}
	}
	return false
}

func partOf(text string) Part {
	switch text {
	case nullPart:
		return Part{Null: true}
	case emptyPart:
		return Part{}
	}
	return Part{Text: text}
}

func parseNew(key string, wanted []string) []Part {
	whole := []Part{{Text: key}}
	if !strings.Contains(key, ",") || !strings.Contains(key, ":") {
		return whole
	}
	var parts []Part
	for pos := 0; pos < len(key); {
		a := indexFrom(key, ':', pos)
		if a < 0 {
			break
		}
		// The value ends at the last comma before the next field's colon; a comma before our own colon belongs to the name.
		b := indexFrom(key, ':', a+1)
		c := lastBefore(key, ',', b)
		for b >= 0 && c < a {
			b = indexFrom(key, ':', b+1)
			c = lastBefore(key, ',', b)
		}
		field := key[pos:a]
		value, next := key[a+1:], len(key)
		if b >= 0 && c > 0 {
			value, next = key[a+1:c], c+1
		}
		if isWanted(field, wanted) {
			parts = append(parts, partOf(value))
		}
		pos = next
	}
	if len(parts) == 0 {
		return whole
	}
	return parts
}

func indexFrom(s string, c byte, from int) int {
	if from > len(s) {
		return -1
	}
	if i := strings.IndexByte(s[from:], c); i >= 0 {
		return from + i
	}
	return -1
}

func lastBefore(s string, c byte, at int) int {
	if at < 0 {
		return -1
	}
	return strings.LastIndexByte(s[:at], c)
}

// parseOld is the rule of 0.14 and 0.15: cut at every comma, then after the first colon.
func parseOld(key string, wanted []string) []Part {
	parts := []Part{}
	for _, piece := range javaSplitWhole(key) {
		field, value, named := strings.Cut(piece, ":")
		if !named {
			parts = append(parts, partOf(piece))
			continue
		}
		if isWanted(field, wanted) {
			parts = append(parts, partOf(value))
		}
	}
	return parts
}

// javaSplitWhole is String.split(","): the empty text is one part.
func javaSplitWhole(text string) []string {
	if text == "" {
		return []string{""}
	}
	return javaSplitComma(text)
}

// parseOldest is the rule of 0.9: one piece is the whole key, of several each must have a name, and a value ends at its colon.
func parseOldest(key string) ([]Part, error) {
	pieces := javaSplitWhole(key)
	if len(pieces) == 1 {
		return []Part{{Text: pieces[0]}}, nil
	}
	var parts []Part
	for _, piece := range pieces {
		values := javaSplitColon(piece)
		if len(values) < 2 {
			return nil, &Error{Class: "ArrayIndexOutOfBoundsException", Row: -1, Message: "Index 1 out of bounds for length 1", Hint: "key " + strconv.Quote(key) + " has a part without a name"}
		}
		parts = append(parts, partOf(values[1]))
	}
	return parts, nil
}

// Bucket is the bucket of a key among n (table format 4.6). fields are the index key fields; the release is that which
// created the table, for keys were parsed by another rule before 1.0.
func Bucket(key string, fields []string, n int, r Release) (int, error) {
	if n <= 0 {
		return 0, fmt.Errorf("bucket of a record key: %d buckets", n)
	}
	if !strings.Contains(key, ":") {
		return BucketOf([]Part{{Text: key}}, n), nil // a key without names is one value in every release
	}
	parts, err := ParseRecordKey(key, fields, r)
	if err != nil {
		return 0, err
	}
	return BucketOf(parts, n), nil
}

// BucketOf is the bucket of the values of the index key fields, in the order in which they stand in the key.
func BucketOf(values []Part, n int) int {
	h := int32(1)
	for _, v := range values {
		h *= 31
		if !v.Null {
			h += javaHash(v.Text)
		}
	}
	return int(h&0x7fffffff) % n
}

// javaHash is String.hashCode, over UTF-16 units.
func javaHash(s string) int32 {
	h := int32(0)
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			h = 31*h + int32(c)
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		if r >= 0x10000 {
			r -= 0x10000
			h = 31*h + 0xd800 + r>>10
			r = 0xdc00 + r&0x3ff
		}
		h = 31*h + r
	}
	return h
}

// BucketText is the number of a bucket as it stands in file ids: eight digits.
func BucketText(bucket int) string { return fmt.Sprintf("%08d", bucket) }

// FixedFileID is the file id of a bucket under non-blocking concurrency control; it is the same in every partition.
func FixedFileID(bucket int) string { return BucketText(bucket) + "-0000-0000-0000-000000000000-0" }

// BucketOfFileID reads the bucket from a file id: its first eight characters.
func BucketOfFileID(id string) (int, error) {
	if len(id) < 8 {
		return 0, fmt.Errorf("file id %q is too short for a bucket number", id)
	}
	n, err := strconv.Atoi(id[:8])
	if err != nil || n < 0 {
		return 0, fmt.Errorf("file id %q doesn't begin with the eight digits of a bucket", id)
	}
	return n, nil
}
