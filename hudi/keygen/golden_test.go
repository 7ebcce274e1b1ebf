package keygen

import (
	"bufio"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestJoda holds patterns against Joda-Time 2.12.5: printing (P), reading (R: ms, or the exception), and texts of
// java.sql.Timestamp of Java 17 (T).
func TestJoda(t *testing.T) {
	f, err := os.Open("testdata/joda.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	plain := strings.NewReplacer(`\\`, `\`, `\t`, "\t", `\n`, "\n")
	lines := 0
	for s := bufio.NewScanner(f); s.Scan(); lines++ {
		w := strings.Split(s.Text(), "\t")
		want := plain.Replace(w[len(w)-1])
		got := ""
		switch w[0] {
		case "P":
			ms, _ := strconv.ParseInt(w[3], 10, 64)
			got = printed(t, w[1], w[2], ms)
		case "R":
			got = readBack(t, w[1], w[2], plain.Replace(w[3]))
		case "T":
			ms, _ := strconv.ParseInt(w[2], 10, 64)
			z, err := resolveJavaZone(w[1])
			if err != nil {
				t.Fatal(err)
			}
			text, fail := (&texts{consistent: true, zone: z}).append(nil, &Datum{Kind: TimestampMillis, I: ms})
			if got = string(text); fail != nil {
				got = fail.Message
			}
		}
		if got != want {
			t.Errorf("%q: got %q", w, got)
		}
	}
	if lines < 1000 {
		t.Errorf("%d lines", lines)
	}
}

func zoneOf(t *testing.T, id string) *zone {
	t.Helper()
	z, known, err := resolveZone(id)
	if err != nil || !known {
		t.Fatal(id, err)
	}
	return z
}

func printed(t *testing.T, format, id string, ms int64) string {
	t.Helper()
	p, err := compilePattern(format)
	if err != nil {
		return "!IllegalArgumentException"
	}
	text, err := p.print(nil, ms, zoneOf(t, id), &span{}, &calendar{})
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func readBack(t *testing.T, format, id, text string) string {
	t.Helper()
	p, err := compilePattern(format)
	if err != nil {
		return "!IllegalArgumentException"
	}
	ms, _, err := formats{p}.parse(&bucket{}, text, zoneOf(t, id), &span{}, currentYear(utcZone))
	var fail *parseError
	if errors.As(err, &fail) {
		return "!" + fail.class
	}
	return strconv.FormatInt(ms, 10)
}
