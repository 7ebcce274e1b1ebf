package orc

import (
	"bytes"
	"compress/flate"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
)

// texts are inputs that compress well, badly and not at all.
func texts(r *rand.Rand) [][]byte {
	random := make([]byte, 70_000)
	words := &strings.Builder{}
	skewed := make([]byte, 100_000)
	for i := range random {
		random[i] = byte(r.Uint32())
	}
	for words.Len() < 90_000 {
		words.WriteString([]string{"europe", "customer-", "0000", "x", "1.25", "\n"}[r.IntN(6)])
	}
	for i := range skewed { // long codes
		skewed[i] = byte(min(r.ExpFloat64()*12, 255))
	}
	return [][]byte{{}, {1}, random, []byte(words.String()), skewed, make([]byte, 200_000), bytes.Repeat([]byte("ab"), 1000), bytes.Repeat([]byte("abcdefghijklmnopq"), 900)}
}

func TestInflateAgreesWithTheStandardLibrary(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	f := new(inflater)
	for i, text := range texts(r) {
		for _, level := range []int{flate.HuffmanOnly, flate.NoCompression, 1, 5, 9} {
			var packed bytes.Buffer
			w, err := flate.NewWriter(&packed, level)
			if err != nil {
				t.Fatal(err)
			}
			for at := 0; at < len(text); at += 30_000 { // several blocks
				_, _ = w.Write(text[at:min(at+30_000, len(text))])
				_ = w.Flush()
			}
			_ = w.Close()
			dst := make([]byte, len(text))
			n, err := f.decode(dst, packed.Bytes())
			if err != nil || n != len(text) || !bytes.Equal(dst, text) {
				t.Fatalf("text %d, level %d: %d bytes of %d, %v", i, level, n, len(text), err)
			}
			if len(text) > 0 {
				if _, err := f.decode(dst[:len(text)-1], packed.Bytes()); err == nil {
					t.Errorf("text %d, level %d: one byte too few was enough", i, level)
				}
			}
			if _, err := f.decode(dst, packed.Bytes()[:packed.Len()-1]); err == nil {
				t.Errorf("text %d, level %d: a cut stream is read without error", i, level)
			}
		}
	}
}

func FuzzInflate(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 9))
	for _, text := range texts(r) {
		var packed bytes.Buffer
		w, _ := flate.NewWriter(&packed, 6)
		_, _ = w.Write(text[:min(len(text), 3000)])
		_ = w.Close()
		f.Add(packed.Bytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		dst := make([]byte, 1<<16)
		n, err := new(inflater).decode(dst, b)
		want := make([]byte, 1<<16+1)
		k, wantErr := io.ReadFull(flate.NewReader(bytes.NewReader(b)), want)
		good := wantErr == io.EOF || wantErr == io.ErrUnexpectedEOF && stdlibEnds(b)
		if k > len(dst) || wantErr == nil {
			good = false // longer than a chunk
		}
		if good != (err == nil) {
			t.Fatalf("ours: %d bytes, %v; the standard library: %d bytes, %v", n, err, k, wantErr)
		}
		if good && !bytes.Equal(dst[:n], want[:k]) {
			t.Fatal("other bytes")
		}
	})
}

// stdlibEnds tells a stream that ends properly from one that was cut.
func stdlibEnds(b []byte) bool {
	_, err := io.Copy(io.Discard, flate.NewReader(bytes.NewReader(b)))
	return err == nil
}

func TestEveryCodecRoundTrips(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 9))
	for _, kind := range codecs[1:] {
		c, err := newCompressor(kind)
		if err != nil {
			t.Fatal(err)
		}
		d := &decompressor{kind: kind}
		for i, text := range texts(r) {
			packed, err := c.encode(text)
			if err != nil || len(packed) == 0 {
				continue // stored as it is
			}
			dst := make([]byte, len(text))
			if n, err := d.decode(dst, packed); err != nil || !bytes.Equal(dst[:n], text) {
				t.Errorf("%s, text %d: %d bytes of %d, %v", kind, i, n, len(text), err)
			}
			if len(text) > 20 {
				if n, err := d.decode(dst[:len(text)-1], packed); err == nil {
					t.Errorf("%s, text %d: %d bytes in a chunk of %d", kind, i, n, len(text)-1)
				}
			}
		}
		d.close()
	}
}
