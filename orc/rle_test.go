package orc

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// inputOf is a stream of the given bytes, not compressed.
func inputOf(b []byte) *input {
	padded := append(slices.Clone(b), make([]byte, slack)...)
	whole := padded[:len(b)]
	s := &scan{file: &file{}, mem: budget{limit: minMemory}}
	return &input{scan: s, name: "test", end: int64(len(b)), next: int64(len(b)), raw: whole, whole: whole}
}

func outputOf(kind Compression, block int) *output {
	c, err := newCompressor(kind)
	if err != nil {
		panic(err)
	}
	return &output{codec: c, limit: block}
}

// repeated is n times v.
func repeated(v int64, n int) []int64 { return slices.Repeat([]int64{v}, n) }

// The vectors of the ORC specification, section "Run Length Encoding", and of nothing else.
func TestIntegersOfTheSpecification(t *testing.T) {
	falling := make([]int64, 100)
	for i := range falling {
		falling[i] = int64(100 - i)
	}
	for _, c := range []struct {
		name   string
		v2     bool
		bytes  []byte
		values []int64
		// exact says that our writer chooses the same bytes.
		exact bool
	}{
		{"v1 run", false, []byte{0x61, 0x00, 0x07}, repeated(7, 100), false},
		{"v1 falling run", false, []byte{0x61, 0xff, 0x64}, falling, false},
		{"v1 literals", false, []byte{0xfb, 0x02, 0x03, 0x04, 0x07, 0x0b}, []int64{2, 3, 4, 7, 11}, false},
		{"short repeat", true, []byte{0x0a, 0x27, 0x10}, repeated(10000, 5), true},
		{"direct", true, []byte{0x5e, 0x03, 0x5c, 0xa1, 0xab, 0x1e, 0xde, 0xad, 0xbe, 0xef}, []int64{23713, 43806, 57005, 48879}, true},
		{"patched base", true, []byte{0x8e, 0x13, 0x2b, 0x21, 0x07, 0xd0, 0x1e, 0x00, 0x14, 0x70, 0x28, 0x32, 0x3c, 0x46, 0x50, 0x5a, 0x64, 0x6e,
			0x78, 0x82, 0x8c, 0x96, 0xa0, 0xaa, 0xb4, 0xbe, 0xfc, 0xe8},
			[]int64{2030, 2000, 2020, 1000000, 2040, 2050, 2060, 2070, 2080, 2090, 2100, 2110, 2120, 2130, 2140, 2150, 2160, 2170, 2180, 2190}, true},
		{"delta", true, []byte{0xc6, 0x09, 0x02, 0x02, 0x22, 0x42, 0x42, 0x46}, []int64{2, 3, 5, 7, 11, 13, 17, 19, 23, 29}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &intDecoder{in: inputOf(c.bytes), v2: c.v2}
			got := make([]int64, len(c.values))
			if err := d.read(got); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, c.values) {
				t.Fatalf("got %v, want %v", got, c.values)
			}
			if d.in.pos != len(c.bytes) {
				t.Fatalf("%d bytes of %d read", d.in.pos, len(c.bytes))
			}
			if c.exact {
				e := &intEncoder{out: outputOf(None, 0)}
				e.writeAll(c.values)
				if e.flush(); !bytes.Equal(e.out.out, c.bytes) {
					t.Fatalf("written as % x, want % x", e.out.out, c.bytes)
				}
			}
		})
	}
}

func TestBytesAndBooleansOfTheSpecification(t *testing.T) {
	for _, c := range []struct{ encoded, values []byte }{
		{[]byte{0x61, 0x00}, make([]byte, 100)},
		{[]byte{0xfe, 0x44, 0x45}, []byte{0x44, 0x45}},
	} {
		d := &byteDecoder{in: inputOf(c.encoded)}
		got := make([]byte, len(c.values))
		if err := d.read(got); err != nil || !bytes.Equal(got, c.values) {
			t.Errorf("% x: got % x, %v", c.encoded, got, err)
		}
		e := &byteEncoder{out: outputOf(None, 0)}
		for _, b := range c.values {
			e.write(b)
		}
		if e.flush(); !bytes.Equal(e.out.out, c.encoded) {
			t.Errorf("% x written as % x, want % x", c.values, e.out.out, c.encoded)
		}
	}
	// "the byte sequence [0xff, 0x80] would be one true followed by seven false values"
	d := &boolDecoder{bytes: byteDecoder{in: inputOf([]byte{0xff, 0x80})}}
	var got [1]byte
	if ones, err := d.read(got[:], 8); err != nil || ones != 1 || got[0] != 1 {
		t.Errorf("booleans: %08b, %d ones, %v", got[0], ones, err)
	}
}

// The examples of the sections "Compression" and "Timestamp Columns".
func TestChunkHeadersAndNanoseconds(t *testing.T) {
	for _, c := range []struct {
		n        int
		original bool
		want     [3]byte
	}{{100_000, false, [3]byte{0x40, 0x0d, 0x03}}, {5, true, [3]byte{0x0b, 0x00, 0x00}}} {
		var h [3]byte
		putChunkHeader(h[:], c.n, c.original)
		if h != c.want {
			t.Errorf("%d: % x, want % x", c.n, h, c.want)
		}
		if n, original := chunkLength(h[:]); n != c.n || original != c.original {
			t.Errorf("% x: %d, %v", h, n, original)
		}
	}
	for ns, want := range map[int64]int64{1000: 0x0a, 100_000: 0x0c, 0: 0, 1: 8, 10: 80} {
		if got := packNanos(ns); got != want {
			t.Errorf("%d ns packed as %#x, want %#x", ns, got, want)
		}
		if back, ok := unpackNanos(want); !ok || back != ns {
			t.Errorf("%#x unpacked as %d, want %d", want, back, ns)
		}
	}
}

// series are shapes of numbers that lead to every encoding, and to the limits of each.
func series(r *rand.Rand, n int) []int64 {
	v := make([]int64, n)
	at, step := r.Int64N(2000)-1000, r.Int64N(7)-3
	width := r.IntN(64)
	kind := r.IntN(9)
	for i := range v {
		switch kind {
		case 0:
			v[i] = int64(r.Uint64())
		case 1:
			v[i] = at + int64(i)*step
		case 2: // patched base, with gaps beyond 255
			v[i] = r.Int64N(100) - 50
			if r.IntN(300) == 0 {
				v[i] = int64(r.Uint64() >> (r.IntN(40) + 8))
			}
		case 3:
			if r.IntN(12) == 0 {
				at = int64(r.Uint64())
			}
			v[i] = at
		case 4:
			at += r.Int64N(1000)
			v[i] = at
		case 5:
			at -= r.Int64N(3)
			v[i] = at
		case 6:
			v[i] = int64(r.Uint64()>>(63-width)) - 1<<width/2
		case 7:
			v[i] = []int64{math.MinInt64, math.MaxInt64, 0, -1}[r.IntN(4)]
		case 8:
			v[i] = 1<<54 + r.Int64N(1<<30)
			if r.IntN(30) == 0 {
				v[i] += 1 << 56
			}
		}
	}
	return v
}

func TestIntegersRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	kinds := map[byte]int{}
	for i := range 3000 {
		signed := i%2 == 0
		v := series(r, 1+r.IntN(1200))
		if !signed {
			for j := range v {
				v[j] &= math.MaxInt64
			}
		}
		e := &intEncoder{out: outputOf(None, 0), signed: signed}
		e.writeAll(v)
		e.flush()
		kinds[e.out.out[0]>>6]++
		d := &intDecoder{in: inputOf(e.out.out), signed: signed, v2: true}
		got := make([]int64, len(v))
		for at := 0; at < len(v); {
			n := min(1+r.IntN(700), len(v)-at)
			if r.IntN(4) == 0 {
				copy(got[at:], v[at:at+n])
				if err := d.skip(n); err != nil {
					t.Fatal(err)
				}
			} else if err := d.read(got[at : at+n]); err != nil {
				t.Fatal(err)
			}
			at += n
		}
		if !slices.Equal(got, v) {
			t.Fatalf("series %d (signed %v) of %d values came back otherwise", i, signed, len(v))
		}
		if d.in.pos != len(e.out.out) || d.pos != d.n {
			t.Fatalf("series %d: something is left", i)
		}
	}
	if len(kinds) != 4 {
		t.Errorf("the writer used the encodings %v, not all four", kinds)
	}
}

// version1 is a writer of version 1, for the test of its reader alone.
func version1(v []int64, signed bool, r *rand.Rand) (out []byte) {
	put := func(x int64) {
		if signed {
			out = binary.AppendUvarint(out, zigzag(x))
		} else {
			out = binary.AppendUvarint(out, uint64(x))
		}
	}
	for len(v) > 0 {
		n := 1
		for n < len(v) && n < 130 && len(v) > 1 && v[n]-v[n-1] == v[1]-v[0] && v[1]-v[0] >= -128 && v[1]-v[0] <= 127 {
			n++
		}
		if n >= 3 {
			out = append(out, byte(n-3), byte(v[1]-v[0]))
			put(v[0])
		} else {
			n = min(1+r.IntN(128), len(v))
			out = append(out, byte(-n))
			for _, x := range v[:n] {
				put(x)
			}
		}
		v = v[n:]
	}
	return out
}

func TestIntegersOfVersion1(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 500 {
		v := series(r, 1+r.IntN(600))
		d := &intDecoder{in: inputOf(version1(v, true, r)), signed: true}
		got := make([]int64, len(v))
		if err := d.read(got); err != nil || !slices.Equal(got, v) {
			t.Fatalf("series %d: %v", i, err)
		}
	}
}

// Bits are read in pieces of any length, across every offset within a byte.
func TestBooleansInPieces(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for i := range 300 {
		want := make([]bool, 1+r.IntN(3000))
		e := &boolEncoder{bytes: byteEncoder{out: outputOf(None, 0)}}
		for j := 0; j < len(want); {
			if n := r.IntN(40); i%3 == 0 && j+n < len(want) {
				e.ones(n)
				for range n {
					want[j] = true
					j++
				}
			}
			want[j] = r.IntN(3) == 0
			e.write(want[j])
			j++
		}
		e.flush()
		d := &boolDecoder{bytes: byteDecoder{in: inputOf(e.bytes.out.out)}}
		for at := 0; at < len(want); {
			n := min(r.IntN(50), len(want)-at)
			var buf [8]byte
			ones, err := d.read(buf[:], n)
			if err != nil {
				t.Fatal(err)
			}
			count := 0
			for j := range n {
				bit := buf[j/8]>>(j%8)&1 == 1
				if bit != want[at+j] {
					t.Fatalf("run %d: bit %d is %v", i, at+j, bit)
				}
				if bit {
					count++
				}
			}
			if count != ones {
				t.Fatalf("run %d: %d ones counted, %d are there", i, ones, count)
			}
			at += n
		}
	}
}

func TestUnpackEveryWidth(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, width := range widths {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			want := make([]uint64, 1+r.IntN(100))
			for i := range want {
				want[i] = r.Uint64() >> (64 - width)
			}
			b := make([]byte, (len(want)*int(width)+7)/8, len(want)*8+2*slack)
			packBits(b, want, int(width))
			got := make([]int64, len(want))
			unpack(b, int(width), got)
			for i := range want {
				if uint64(got[i]) != want[i] {
					t.Fatalf("value %d: %x, want %x", i, got[i], want[i])
				}
			}
			e := &intEncoder{out: outputOf(None, 0)}
			if alignedWidth(int(width)) == int(width) {
				if e.pack(want, int(width)); !bytes.Equal(e.out.out, b) {
					t.Fatalf("packed differently")
				}
			}
		})
	}
}

func FuzzIntegers(f *testing.F) {
	f.Add([]byte{0x8e, 0x13, 0x2b, 0x21, 0x07, 0xd0, 0x1e, 0x00, 0x14, 0x70, 0x28, 0x32, 0x3c, 0x46}, true, true)
	f.Add([]byte{0xc6, 0x09, 0x02, 0x02, 0x22, 0x42, 0x42, 0x46}, true, false)
	f.Add([]byte{0x61, 0xff, 0x64, 0xfb, 0x02, 0x03, 0x04, 0x07, 0x0b}, false, true)
	f.Fuzz(func(t *testing.T, b []byte, v2, signed bool) {
		d := &intDecoder{in: inputOf(b), v2: v2, signed: signed}
		var got []int64
		for len(got) < 1<<16 {
			if d.fill() != nil {
				break
			}
			got = append(got, d.run[:d.n]...)
		}
		if len(got) == 0 || !signed && slices.Min(got) < 0 {
			return
		}
		// What was read can be written, and is then read again.
		e := &intEncoder{out: outputOf(None, 0), signed: signed}
		e.writeAll(got)
		e.flush()
		again := make([]int64, len(got))
		if err := (&intDecoder{in: inputOf(e.out.out), v2: true, signed: signed}).read(again); err != nil || !slices.Equal(again, got) {
			t.Fatalf("%d values came back otherwise: %v", len(got), err)
		}
	})
}
