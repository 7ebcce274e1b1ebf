package sparksql

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tokEnd tokenKind = iota
	tokWord
	tokQuoted // an identifier in backticks
	tokNumber
	tokText
	tokMark // an operator or bracket
)

type token struct {
	kind tokenKind
	text string // a word as written; a string's or identifier's content
	pos  int
}

// Error says what is wrong with a statement, and where.
type Error struct {
	// Statement is the text; Offset is where in it, in bytes.
	Statement string
	Offset    int
	Message   string
}

func (e *Error) Error() string {
	line, column := 1, 1
	for _, r := range e.Statement[:min(e.Offset, len(e.Statement))] {
		if column++; r == '\n' {
			line, column = line+1, 1
		}
	}
	return fmt.Sprintf("SQL, line %d, column %d: %s", line, column, e.Message)
}

// failure carries an *Error up to the border of the package.
type failure struct{ err *Error }

func fail(pos int, format string, args ...any) {
	panic(failure{&Error{Offset: pos, Message: fmt.Sprintf(format, args...)}})
}

// recovered turns a failure into an error of the function that it is deferred in.
func recovered(statement string, err *error) {
	switch r := recover().(type) {
	case nil:
	case failure:
		r.err.Statement = statement
		*err = r.err
	default:
		*err = fmt.Errorf("SQL: internal error: %v", r)
	}
}

var marks = []string{"<=>", "<=", ">=", "<>", "!=", "==", "||", "->", "=>", "::", "(", ")", "[", "]", ",", ".", ";", "+", "-", "*", "/", "%", "=", "<", ">", "&", "|", "^", "~", "!", ":", "?", "{", "}"}

func lex(text string) (tokens []token) {
	for i := 0; ; {
		i = skipBlank(text, i)
		if i >= len(text) {
			return append(tokens, token{tokEnd, "", len(text)})
		}
		t := token{pos: i}
		c, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case c == '\'' || c == '"':
			t.kind = tokText
			t.text, i = lexText(text, i, false)
		case (c == 'r' || c == 'R') && i+1 < len(text) && (text[i+1] == '\'' || text[i+1] == '"'):
			t.kind = tokText
			t.text, i = lexText(text, i+1, true)
		case c == '`':
			t.kind = tokQuoted
			t.text, i = lexQuoted(text, i)
		case c >= '0' && c <= '9' || c == '.' && i+1 < len(text) && text[i+1] >= '0' && text[i+1] <= '9' && !afterName(tokens, i):
			t.kind = tokNumber
			t.text, i = lexNumber(text, i)
		case c == '_' || unicode.IsLetter(c):
			t.kind = tokWord
			end := i
			for end < len(text) {
				r, n := utf8.DecodeRuneInString(text[end:])
				if r != '_' && r != '$' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
					break
				}
				end += n
			}
			t.text, i = text[i:end], end
		default:
			t.kind = tokMark
			for _, m := range marks {
				if strings.HasPrefix(text[i:], m) {
					t.text = m
					break
				}
			}
			if t.text == "" {
				fail(i, "%q is nothing that a statement holds", text[i:i+size])
			}
			i += len(t.text)
		}
		tokens = append(tokens, t)
	}
}

// afterName tells a member's name (a.1x) from a number (.5).
func afterName(tokens []token, pos int) bool {
	if len(tokens) == 0 {
		return false
	}
	last := tokens[len(tokens)-1]
	return (last.kind == tokWord && last.pos+len(last.text) == pos) || last.kind == tokQuoted || last.text == ")" || last.text == "]"
}

func skipBlank(text string, i int) int {
	for i < len(text) {
		switch {
		case strings.HasPrefix(text[i:], "--"):
			for i < len(text) && text[i] != '\n' {
				i++
			}
		case strings.HasPrefix(text[i:], "/*"):
			end := strings.Index(text[i+2:], "*/")
			if end < 0 {
				fail(i, "a comment is not closed")
			}
			i += 2 + end + 2
		default:
			r, n := utf8.DecodeRuneInString(text[i:])
			if !unicode.IsSpace(r) && r != '\ufeff' {
				return i
			}
			i += n
		}
	}
	return i
}

// lexText reads a string with the escapes of Spark: \n, \', \u0041, octal \101; \% and \_ stay for LIKE.
func lexText(text string, from int, raw bool) (string, int) {
	quote := text[from]
	var b strings.Builder
	for i := from + 1; i < len(text); i++ {
		c := text[i]
		switch {
		case c == quote:
			return b.String(), i + 1
		case c != '\\' || raw || i+1 >= len(text):
			b.WriteByte(c)
		default:
			i++
			switch e := text[i]; {
			case e == 'u' && i+4 < len(text) && isHex(text[i+1:i+5]):
				var r rune
				_, _ = fmt.Sscanf(text[i+1:i+5], "%x", &r)
				b.WriteRune(r)
				i += 4
			case e >= '0' && e <= '1' && i+2 < len(text) && octal(text[i+1]) && octal(text[i+2]):
				b.WriteRune(rune(e-'0')<<6 | rune(text[i+1]-'0')<<3 | rune(text[i+2]-'0'))
				i += 2
			case e == '0':
				b.WriteByte(0)
			case e == 'b':
				b.WriteByte('\b')
			case e == 'n':
				b.WriteByte('\n')
			case e == 'r':
				b.WriteByte('\r')
			case e == 't':
				b.WriteByte('\t')
			case e == 'Z':
				b.WriteByte(26)
			case e == '%' || e == '_':
				b.WriteByte('\\')
				b.WriteByte(e)
			default:
				b.WriteByte(e)
			}
		}
	}
	fail(from, "a string is not closed")
	return "", 0
}

func octal(c byte) bool { return c >= '0' && c <= '7' }

func isHex(s string) bool {
	return strings.Trim(s, "0123456789abcdefABCDEF") == ""
}

func lexQuoted(text string, from int) (string, int) {
	var b strings.Builder
	for i := from + 1; i < len(text); i++ {
		if text[i] == '`' {
			if i+1 >= len(text) || text[i+1] != '`' {
				return b.String(), i + 1
			}
			i++
		}
		b.WriteByte(text[i])
	}
	fail(from, "an identifier in backticks is not closed")
	return "", 0
}

// lexNumber reads digits, a fraction, an exponent and a type suffix.
func lexNumber(text string, from int) (string, int) {
	i := from
	digits := func() {
		for i < len(text) && text[i] >= '0' && text[i] <= '9' {
			i++
		}
	}
	digits()
	if i < len(text) && text[i] == '.' {
		i++
		digits()
	}
	if i < len(text) && (text[i] == 'e' || text[i] == 'E') {
		mark := i
		if i++; i < len(text) && (text[i] == '+' || text[i] == '-') {
			i++
		}
		if i >= len(text) || text[i] < '0' || text[i] > '9' {
			i = mark
		} else {
			digits()
		}
	}
	end := i
	for end < len(text) && (text[end] == '_' || unicode.IsLetter(rune(text[end])) || text[end] >= '0' && text[end] <= '9') {
		end++
	}
	switch strings.ToUpper(text[i:end]) {
	case "", "L", "S", "Y", "D", "F", "BD":
		return text[from:end], end
	}
	fail(from, "%q is no number", text[from:end])
	return "", 0
}
