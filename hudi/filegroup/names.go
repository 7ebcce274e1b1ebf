package filegroup

import (
	"fmt"
	"strings"
)

// BaseName is a parsed base file name: <fileId>_<writeToken>_<instant>.<ext> (table format 4.1).
type BaseName struct {
	FileID  string
	Token   string
	Instant string
	Ext     string // with its dot: ".parquet"; "" when there is none
}

// ParseBaseName parses the last element of a base file's path: at the first and second underscore and at the first dot
// behind the second. It reports false for names of any other form: markers, sidecars, log files, what people leave behind.
func ParseBaseName(name string) (BaseName, bool) {
	id, rest, ok := strings.Cut(name, "_")
	if !ok || id == "" || strings.HasPrefix(id, ".") {
		return BaseName{}, false
	}
	token, rest, ok := strings.Cut(rest, "_")
	if !ok || token == "" {
		return BaseName{}, false
	}
	instant, ext := rest, ""
	if dot := strings.IndexByte(rest, '.'); dot >= 0 {
		instant, ext = rest[:dot], rest[dot:]
	}
	if !allDigits(instant) {
		return BaseName{}, false
	}
	return BaseName{FileID: id, Token: token, Instant: instant, Ext: ext}, true
}

// String is the file name.
func (n BaseName) String() string {
	return fmt.Sprintf("%s_%s_%s%s", n.FileID, n.Token, n.Instant, n.Ext)
}

func allDigits(s string) bool {
	if s == "" {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
