package source

import (
	"fmt"
	"regexp"
	"strings"
)

// What Spark's older date parser takes where no pattern is given. A text that only the older one reads, such as February 30, ends a
// job of the original (SparkUpgradeException): it does not become null.
var (
	olderDay    = olderForm("yyyy-MM-dd")
	olderMoment = olderForm("yyyy-MM-dd HH:mm:ss")
)

// olderForm is what the older parser takes of a pattern: numbers of any size, and whatever follows. It is nil where the pattern has
// more than numbers in it.
func olderForm(pattern string) *regexp.Regexp {
	var b strings.Builder
	b.WriteByte('^')
	for i := 0; i < len(pattern); {
		n := 1
		for i+n < len(pattern) && pattern[i+n] == pattern[i] {
			n++
		}
		switch c := pattern[i]; {
		case c == '\'':
			text, next, err := quoted(pattern, i)
			if err != nil {
				return nil
			}
			b.WriteString(regexp.QuoteMeta(text))
			n = next - i
		case !isLetter(c):
			b.WriteString(regexp.QuoteMeta(pattern[i : i+n]))
		case !strings.ContainsRune("yMdHhmsS", rune(c)) || c == 'M' && n > 2:
			return nil
		case i+n < len(pattern) && isLetter(pattern[i+n]): // the next number follows at once
			fmt.Fprintf(&b, `\s*\d{1,%d}`, n)
		default:
			b.WriteString(`\s*\d+`)
		}
		i += n
	}
	form, err := regexp.Compile(b.String())
	if err != nil {
		return nil
	}
	return form
}

// olderError is of a text that the older parser alone takes.
type olderError struct{ text string }

func (e olderError) Error() string {
	return fmt.Sprintf("Fail to parse '%s' in the new parser, and Spark's older one reads another date from it: correct the value", e.text)
}

// orOlder gives the error for a text that could not be read.
func orOlder(err error, text string, older *regexp.Regexp) error {
	if err != nil && older != nil && older.MatchString(text) {
		return olderError{text}
	}
	return err
}

// goLayout turns a pattern of Java's date formatters into a layout of package time. Letters that package time has no form for
// are refused.
func goLayout(pattern string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(pattern); {
		c := pattern[i]
		switch {
		case c == '\'':
			text, next, err := quoted(pattern, i)
			if err != nil {
				return "", err
			}
			b.WriteString(text)
			i = next
		case isLetter(c):
			n := 1
			for i+n < len(pattern) && pattern[i+n] == c {
				n++
			}
			text, ok := letters(c, n)
			if c == 'S' && (i == 0 || pattern[i-1] != '.' && pattern[i-1] != ',') {
				return "", fmt.Errorf("pattern %q: a point is needed in front of fractions of seconds", pattern)
			}
			if !ok {
				return "", fmt.Errorf("pattern %q: %q is not known; y, M, d, H, h, m, s, S, a, E and the zones X, x, Z, z are", pattern, pattern[i:i+n])
			}
			b.WriteString(text)
			i += n
		default:
			b.WriteByte(c)
			i++
		}
	}
	return b.String(), nil
}

// goLayouts is goLayout for patterns with optional parts in brackets: one layout for each way to take or leave them, the longest
// first.
func goLayouts(pattern string) ([]string, error) {
	forms, err := variants(pattern)
	if err != nil {
		return nil, err
	}
	layouts := make([]string, len(forms))
	for i, f := range forms {
		if layouts[i], err = goLayout(f); err != nil {
			return nil, err
		}
	}
	return layouts, nil
}

func variants(pattern string) ([]string, error) {
	open := strings.IndexByte(pattern, '[')
	if open < 0 {
		return []string{pattern}, nil
	}
	depth, end := 0, -1
	for i := open; i < len(pattern) && end < 0; i++ {
		switch pattern[i] {
		case '[':
			depth++
		case ']':
			if depth--; depth == 0 {
				end = i
			}
		}
	}
	if end < 0 || strings.Count(pattern, "[") > 6 {
		return nil, fmt.Errorf("pattern %q: its brackets make no sense", pattern)
	}
	with, err := variants(pattern[:open] + pattern[open+1:end] + pattern[end+1:])
	if err != nil {
		return nil, err
	}
	without, err := variants(pattern[:open] + pattern[end+1:])
	return append(with, without...), err
}

// quoted reads a text between apostrophes from i; two apostrophes are one.
func quoted(pattern string, i int) (text string, next int, err error) {
	if strings.HasPrefix(pattern[i:], "''") {
		return "'", i + 2, nil
	}
	end := strings.IndexByte(pattern[i+1:], '\'')
	if end < 0 {
		return "", 0, fmt.Errorf("pattern %q: an apostrophe is left open", pattern)
	}
	return pattern[i+1 : i+1+end], i + end + 2, nil
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func letters(c byte, n int) (string, bool) {
	pick := func(forms ...string) (string, bool) {
		if n > len(forms) || forms[n-1] == "" {
			return "", false
		}
		return forms[n-1], true
	}
	switch c {
	case 'y', 'u':
		return pick("2006", "06", "2006", "2006")
	case 'M', 'L':
		return pick("1", "01", "Jan", "January")
	case 'd':
		return pick("2", "02")
	case 'H':
		return pick("15", "15")
	case 'h':
		return pick("3", "03")
	case 'm':
		return pick("4", "04")
	case 's':
		return pick("5", "05")
	case 'S':
		return strings.Repeat("0", n), n <= 9
	case 'a':
		return pick("PM")
	case 'E':
		return pick("Mon", "Mon", "Mon", "Monday")
	case 'X':
		return pick("Z07", "Z0700", "Z07:00")
	case 'x':
		return pick("-07", "-0700", "-07:00")
	case 'Z':
		return pick("-0700", "-0700", "-0700")
	case 'z':
		return pick("MST", "MST", "MST")
	}
	return "", false
}
