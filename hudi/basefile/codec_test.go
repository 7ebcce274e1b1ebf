package basefile

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/pierrec/lz4/v4"
)

// Each codec gives back what the library's encoder made, into a buffer of exactly that size; into one byte less or more it
// fails, and damaged input fails, without ever growing the buffer.
func TestCodecs(t *testing.T) {
	text := []byte(strings.Repeat("a page of text ", 1000) + "end")
	c := &codecs{}
	defer c.close()
	for name, codec := range map[string]compress.Compression{"none": compress.Codecs.Uncompressed, "snappy": compress.Codecs.Snappy, "gzip": compress.Codecs.Gzip, "zstd": compress.Codecs.Zstd, "lz4raw": compress.Codecs.Lz4Raw, "brotli": compress.Codecs.Brotli} {
		encoder, err := compress.GetCodec(codec)
		if err != nil {
			t.Fatal(err)
		}
		packed := append([]byte(nil), encoder.Encode(make([]byte, encoder.CompressBound(int64(len(text)))), text)...)
		for range 2 { // decoders are used again
			got := make([]byte, len(text))
			if err := c.decode(codec, got, packed); err != nil || !bytes.Equal(got, text) {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, size := range []int{0, len(text) - 1, len(text) + 1} {
			if err := c.decode(codec, make([]byte, size), packed); err == nil {
				t.Errorf("%s into %d bytes: no error", name, size)
			}
		}
		if err := c.decode(codec, make([]byte, len(text)), packed[:len(packed)/2]); err == nil {
			t.Errorf("%s cut: no error", name)
		}
	}
	if err := c.decode(compress.Codecs.Snappy, make([]byte, 10), binary.AppendUvarint(nil, 1<<32-1)); err == nil {
		t.Error("4 GiB of Snappy: no error")
	}
}

// The deprecated LZ4 has blocks with big-endian lengths, as Hadoop writes them.
func TestHadoopLZ4(t *testing.T) {
	text := []byte(strings.Repeat("block ", 100))
	var packed []byte
	for _, part := range [][]byte{text[:300], text[300:]} {
		block := make([]byte, lz4.CompressBlockBound(len(part)))
		n, err := lz4.CompressBlock(part, block, nil)
		if err != nil || n == 0 {
			t.Fatal(n, err)
		}
		packed = binary.BigEndian.AppendUint32(packed, uint32(len(part)))
		packed = append(binary.BigEndian.AppendUint32(packed, uint32(n)), block[:n]...)
	}
	c := &codecs{}
	got := make([]byte, len(text))
	if err := c.decode(compress.Codecs.Lz4, got, packed); err != nil || !bytes.Equal(got, text) {
		t.Error(err)
	}
	for cut := 1; cut < len(packed); cut += 7 {
		if err := c.decode(compress.Codecs.Lz4, got, packed[:cut]); err == nil {
			t.Errorf("cut at %d: no error", cut)
		}
	}
}
