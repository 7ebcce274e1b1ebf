package keygen

import "strings"

// Markers of a null or empty partition value (key generation 7.2).
const (
	NullPartition    = "__HIVE_DEFAULT_PARTITION__"
	OldNullPartition = "default" // written before 0.12, tables of version 4 and below
)

// escaped says which ASCII characters a partition path may not hold (key generation 7.3).
var escaped = func() (set [128]bool) {
	for c := range 0x20 {
		set[c] = true
	}
	for _, c := range "\"#%'*/:=?\\\x7f{[]^" {
		set[c] = true
	}
	return set
}()

const upperHex = "0123456789ABCDEF"

func appendEscaped(dst, text []byte) []byte {
	for _, c := range text {
		if c < 128 && escaped[c] {
			dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
		} else {
			dst = append(dst, c)
		}
	}
	return dst
}

// Escape writes one partition value so that it is safe as a folder's name. The empty text is the null marker
// (key generation 7.3).
func Escape(text string) string {
	if text == "" {
		return NullPartition
	}
	return string(appendEscaped(nil, []byte(text)))
}

// EscapeFileName is the stricter form that release 1.2.0 has for file names; partitions don't use it.
func EscapeFileName(text string) string {
	if text == "" {
		return NullPartition
	}
	var dst []byte
	for i := range len(text) {
		c := text[i]
		if c < 128 && (escaped[c] || c == '-' || c == '_') {
			dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
		} else {
			dst = append(dst, c)
		}
	}
	return string(dst)
}

// Unescape is the way back: % and two hex digits are the character of that code, everything else stays. As the reference
// reads the two digits as a signed number, "%+1" is U+0001 too.
func Unescape(text string) string {
	if strings.IndexByte(text, '%') < 0 {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && i+2 < len(text) {
			if code, ok := hexCode(text[i+1], text[i+2]); ok {
				b.WriteRune(rune(code))
				i += 2
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

func hexCode(hi, lo byte) (int, bool) {
	l, ok := hexDigit(lo)
	if !ok {
		return 0, false
	}
	if hi == '+' {
		return l, true
	}
	if hi == '-' && l == 0 {
		return 0, true
	}
	h, ok := hexDigit(hi)
	return h<<4 | l, ok
}

func hexDigit(c byte) (int, bool) {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0'), true
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10, true
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10, true
	}
	return 0, false
}

// CheckPath refuses a partition path with a segment ".."; separators are / and \ (key generation 7.3).
func CheckPath(path string) error {
	if hasParent(path) {
		return parentInPath(path)
	}
	return nil
}

func parentInPath(path string) *Error {
	return &Error{Class: classKey, Stage: StagePartition, Row: -1, Message: "Partition path '" + path + "' has a path-traversal segment '..'",
		Hint: "correct the partition value in the source, or set " + KeyURLEncode + "=true where the table is new"}
}

func hasParent(path string) bool {
	if !strings.Contains(path, "..") {
		return false
	}
	for s := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || r == '\\' }) {
		if s == ".." {
			return true
		}
	}
	return false
}

// unsafePath says what makes a generated path unsafe to write: ".." anywhere, or a segment that stores drop or fold.
// The empty path is that of an unpartitioned table.
func unsafePath(path string) string {
	switch {
	case path == "":
		return ""
	case path[0] == '/':
		return "begins with /"
	case path[len(path)-1] == '/':
		return "ends with /"
	case strings.Contains(path, "//"):
		return "has an empty segment"
	case hasParent(path):
		return "has a path-traversal segment '..'"
	}
	if path[0] == '.' || strings.Contains(path, "/.") {
		for s := range strings.SplitSeq(path, "/") {
			if s == "." {
				return "has a segment '.'"
			}
		}
	}
	return ""
}

// slashDate is the rule for slash separated dates (key generation 7.4). The guarded form leaves values alone that would
// give empty or dot segments.
func slashDate(text []byte, guarded bool) {
	if guarded && !slashSafe(text) {
		return
	}
	for i, c := range text {
		if c == '-' {
			text[i] = '/'
		}
	}
}

func slashSafe(text []byte) bool {
	start := 0
	for i := 0; i <= len(text); i++ {
		if i < len(text) && text[i] != '-' {
			continue
		}
		switch string(text[start:i]) {
		case "", ".", "..":
			return false
		}
		start = i + 1
	}
	return true
}
