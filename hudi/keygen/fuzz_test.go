package keygen

import (
	"strings"
	"testing"
)

// Any pattern and any text: no panic, and what a pattern of full dates prints is read back as what was printed.
func FuzzPattern(f *testing.F) {
	for _, s := range [][2]string{{"yyyy-MM-dd'T'HH:mm:ss.SSSZ", "2020-04-01T13:01:33.428Z"}, {"G yyyy", "BC 0044"}, {"xxxx-'W'ww-e", "2020-W14-7"}, {"ZZZ", "America/New_York"},
		{"yy MMM EEEE a hh", "20 Feb Monday PM 12"}, {"C Y D K k", "20 2020 366 11 24"}, {"SSSSSSSSSSSSSSSSSSSS", "123"}, {"''y'", "'-292275055"}} {
		f.Add(s[0], s[1], int64(1578283932123))
	}
	f.Fuzz(func(t *testing.T, format, text string, ms int64) {
		p, err := compilePattern(format)
		if err != nil {
			return
		}
		var b bucket
		z := &zone{id: "x", fixed: 19800000}
		_, _, _ = formats{p}.parse(&b, text, z, &span{}, 2026)
		out, err := p.print(nil, ms, z, &span{}, &calendar{})
		if err != nil || p.fine != 1 || !strings.HasPrefix(format, "yyyy-MM-dd HH:mm:ss.SSS") || strings.ContainsAny(format[23:], "yYxMdDwWeEaAhHkKmsSCG'0123456789+-") || ms < -62e12 || ms > 250e12 {
			return
		}
		got, _, err := formats{p}.parse(&b, string(out), z, &span{}, 2026)
		if err != nil || got != ms {
			t.Errorf("%d prints %q in %q, which reads as %d %v", ms, out, format, got, err)
		}
	})
}

// Any key: no panic, and the named form of harmless values parses to the values.
func FuzzParseRecordKey(f *testing.F) {
	f.Add("a:1,b:2", "x", "y")
	f.Add("id1:1,,,id2:2024-10-22 14:11:53.023,id3:,,3,id4:::1:2::4::", "a:b", ",,")
	f.Add(":1", "", "__null__")
	f.Fuzz(func(t *testing.T, key, v, w string) {
		for _, r := range []Release{Current, {0, 15, 0}, {0, 9, 0}} {
			_, _ = ParseRecordKey(key, nil, r)
			_, _ = ParseRecordKey(key, []string{"a"}, r)
			if n, err := Bucket(key, []string{"a"}, 7, r); err == nil && (n < 0 || n >= 7) {
				t.Errorf("bucket %d", n)
			}
		}
		if strings.ContainsAny(v+w, ":,") || v == nullPart || w == nullPart || v == emptyPart || w == emptyPart {
			return
		}
		parts, err := ParseRecordKey("a:"+v+",b:"+w, nil, Current)
		if err != nil || len(parts) != 2 || parts[0].Text != v || parts[1].Text != w {
			t.Errorf("%q %q: %v %v", v, w, parts, err)
		}
	})
}

// Escaping is undone by unescaping, and an escaped value is one safe segment.
func FuzzEscape(f *testing.F) {
	f.Add("a/b%2F:")
	f.Add("..\\\x00é😀")
	f.Fuzz(func(t *testing.T, text string) {
		_ = Unescape(text)
		if text == "" || strings.ToValidUTF8(text, "") != text {
			return
		}
		if got := Unescape(Escape(text)); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
		if strings.Contains(Escape(text), "/") {
			t.Errorf("%q has a slash", Escape(text))
		}
	})
}
