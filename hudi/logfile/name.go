package logfile

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Name is a parsed log file name, .<fileId>_<instant>.log.<version>[_<writeToken>][.cdc] (table format 4.1).
type Name struct {
	FileID string
	// Instant is the base instant of the slice in tables of version 7 and below, the delta commit's own from 8 on.
	Instant string
	Version int
	Token   string // "<task>-<stage>-<attempt>"; empty in old logs
	CDC     bool
}

// ParseName parses the last element of a path. It reports false for anything that Apache Hudi 1.x does not take for a log
// file: archives, base files, sidecars, a token that is cut.
func ParseName(name string) (Name, bool) { return parseName(name, false) }

// ParseLooseName parses as releases before 1.0 do: the file id reaches to the last underscore before ".log.", and text behind
// the version that is no token is ignored. It differs from ParseName only for names that no writer makes.
func ParseLooseName(name string) (Name, bool) { return parseName(name, true) }

func parseName(name string, loose bool) (Name, bool) {
	rest, ok := strings.CutPrefix(name, ".")
	if !ok {
		return Name{}, false
	}
	middle, tail, ok := strings.Cut(rest, ".log.")
	if !ok {
		return Name{}, false
	}
	at := strings.IndexByte(middle, '_')
	if loose {
		at = strings.LastIndexByte(middle, '_')
	}
	if at < 1 || !loose && strings.ContainsAny(middle, ".") {
		return Name{}, false
	}
	n := Name{FileID: middle[:at], Instant: middle[at+1:]}
	digits := digitsOf(tail)
	version, err := strconv.ParseInt(digits, 10, 32)
	if err != nil {
		return Name{}, false
	}
	n.Version = int(version)
	if n.Token, n.CDC, ok = parseToken(tail[len(digits):]); !ok && !loose {
		return Name{}, false
	}
	return n, true
}

// parseToken reads _<n>-<n>-<n>[.cdc] or nothing.
func parseToken(s string) (token string, cdc, ok bool) {
	if s == "" {
		return "", false, true
	}
	s, cdc = strings.CutSuffix(s, ".cdc")
	token, ok = strings.CutPrefix(s, "_")
	if !ok {
		return "", false, false
	}
	parts := 0
	for part := range strings.SplitSeq(token, "-") {
		if part == "" || digitsOf(part) != part {
			return "", false, false
		}
		parts++
	}
	if parts != 3 {
		return "", false, false
	}
	return token, cdc, true
}

func digitsOf(s string) string {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return s[:n]
}

// String is the file name.
func (n Name) String() string {
	s := fmt.Sprintf(".%s_%s.log.%d", n.FileID, n.Instant, n.Version)
	if n.Token != "" {
		s += "_" + n.Token
	}
	if n.CDC {
		s += ".cdc"
	}
	return s
}

// Compare orders the logs of a slice, in every table version: by instant, version as a number, token as text (none first), the
// plain name before the .cdc one.
func Compare(a, b Name) int {
	return cmp.Or(
		strings.Compare(a.Instant, b.Instant),
		cmp.Compare(a.Version, b.Version),
		strings.Compare(a.Token, b.Token),
		strings.Compare(a.suffix(), b.suffix()),
		strings.Compare(a.FileID, b.FileID),
	)
}

func (n Name) suffix() string {
	if n.CDC {
		return ".cdc"
	}
	return ""
}
