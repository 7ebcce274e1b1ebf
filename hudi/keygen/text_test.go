package keygen

import (
	"bufio"
	"compress/gzip"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
)

// The texts are those that Java 17 printed: random bit patterns, short decimals, whole numbers, powers of ten.
func TestFloatsOfJava17(t *testing.T) {
	f, err := os.Open("testdata/floats.txt.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines, bad := 0, 0
	for s := bufio.NewScanner(z); s.Scan(); lines++ {
		word := strings.Fields(s.Text())
		bits, err := strconv.ParseUint(word[1], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		var got string
		if word[0] == "d" {
			got = string(appendFloat(nil, math.Float64frombits(bits), 64, true))
		} else {
			got = string(appendFloat(nil, float64(math.Float32frombits(uint32(bits))), 32, true))
		}
		if got != word[2] {
			if bad++; bad < 20 {
				t.Errorf("%s %s: want %s, got %s", word[0], word[1], word[2], got)
			}
		}
	}
	if bad > 0 || lines < 5000 {
		t.Errorf("%d of %d differ", bad, lines)
	}
}
