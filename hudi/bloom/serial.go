package bloom

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"
)

// The footer keys of a base file (table format 5.2).
const (
	FooterFilter    = "org.apache.hudi.bloomfilter"
	FooterFilterOld = "com.uber.hoodie.bloomfilter"
	FooterKind      = "hoodie_bloom_filter_type_code"
)

// serialVersion is the number that a filter with a named hash function starts with. Before there was a choice, the number
// of hashes stood in its place and the hash was Jenkins'.
const serialVersion = -1

// headerSize of a row: version, number of hashes, hash function, number of bits.
const headerSize = 4 + 4 + 1 + 4

// Text is the filter as a footer holds it: Base64 with padding.
func (f *Filter) Text() string {
	size := len(f.rows) * (headerSize + len(f.rows[0]))
	if f.kind == DynamicV0 {
		size += headerSize + 12
	}
	out := make([]byte, 0, size)
	if f.kind == DynamicV0 {
		out = f.appendHeader(out)
		out = binary.BigEndian.AppendUint32(out, uint32(f.perRow))
		out = binary.BigEndian.AppendUint32(out, uint32(f.inRow))
		out = binary.BigEndian.AppendUint32(out, uint32(len(f.rows)))
	}
	for _, row := range f.rows {
		out = append(f.appendHeader(out), row...)
	}
	return base64.StdEncoding.EncodeToString(out)
}

func (f *Filter) appendHeader(b []byte) []byte {
	version := int32(serialVersion)
	b = binary.BigEndian.AppendUint32(b, uint32(version))
	b = binary.BigEndian.AppendUint32(b, uint32(f.hashes))
	b = append(b, byte(f.hash))
	return binary.BigEndian.AppendUint32(b, f.bits)
}

// Parse reads the text of a filter. Its memory is that of the text; nothing in it is believed before it is checked.
//
// A filter that was read takes further keys like one that has reached its limit, as the text does not tell the limit.
func Parse(kind Kind, text string) (*Filter, error) {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFilter, err)
	}
	r := reader{data: data}
	f := &Filter{kind: kind, next: -1}
	rows := int64(1)
	if kind == DynamicV0 {
		if err := r.header(f); err != nil {
			return nil, err
		}
		head, err := r.take(12)
		if err != nil {
			return nil, err
		}
		f.perRow = int64(int32(binary.BigEndian.Uint32(head)))
		f.inRow = int64(int32(binary.BigEndian.Uint32(head[4:])))
		rows = int64(int32(binary.BigEndian.Uint32(head[8:])))
		if left := int64(len(data) - r.at); rows < 1 || rows > left/headerSize || f.inRow < 0 {
			return nil, fmt.Errorf("%w: byte %d: %d rows with %d keys in the last, in %d bytes", ErrFilter, r.at-12, rows, f.inRow, left)
		}
		f.rows = make([][]byte, 0, rows)
	}
	for range rows {
		if err := r.row(f); err != nil {
			return nil, err
		}
	}
	if r.at != len(data) {
		return nil, fmt.Errorf("%w: %d bytes behind its end at byte %d", ErrFilter, len(data)-r.at, r.at)
	}
	return f, nil
}

// FromFooter reads the filter of a base file from its footer, if it has one.
func FromFooter(footer map[string]string) (f *Filter, ok bool, err error) {
	text, ok := footer[FooterFilter]
	if !ok {
		text, ok = footer[FooterFilterOld]
	}
	if !ok {
		return nil, false, nil
	}
	kind, err := ParseKind(footer[FooterKind])
	if err != nil {
		return nil, true, err
	}
	f, err = Parse(kind, text)
	return f, true, err
}

type reader struct {
	data []byte
	at   int
}

func (r *reader) take(n int) ([]byte, error) {
	if n > len(r.data)-r.at {
		return nil, fmt.Errorf("%w: byte %d: it ends where %d bytes are due", ErrFilter, len(r.data), n)
	}
	r.at += n
	return r.data[r.at-n : r.at : r.at], nil
}

// header reads into f, and checks every header against the first.
func (r *reader) header(f *Filter) error {
	at := r.at
	head, err := r.take(8)
	if err != nil {
		return err
	}
	version := int32(binary.BigEndian.Uint32(head))
	hashes, hash, size := version, Jenkins, binary.BigEndian.Uint32(head[4:])
	switch {
	case version == serialVersion:
		rest, err := r.take(headerSize - 8)
		if err != nil {
			return err
		}
		hashes, hash, size = int32(size), Hash(rest[0]), binary.BigEndian.Uint32(rest[1:])
	case version < serialVersion:
		return fmt.Errorf("%w: byte %d: version %d is not known", ErrFilter, at, version)
	}
	if hashes < 1 || hashes > maxHashes || hash > Murmur || size < 1 || size > math.MaxInt32 {
		return fmt.Errorf("%w: byte %d: %d hashes of function %d over %d bits", ErrFilter, at, hashes, hash, size)
	}
	if f.bits == 0 {
		f.hashes, f.hash, f.bits = int(hashes), hash, size
	}
	if f.hashes != int(hashes) || f.hash != hash || f.bits != size {
		return fmt.Errorf("%w: byte %d: a row of another shape than the filter", ErrFilter, at)
	}
	return nil
}

func (r *reader) row(f *Filter) error {
	if err := r.header(f); err != nil {
		return err
	}
	row, err := r.take(int((int64(f.bits) + 7) / 8))
	if err != nil {
		return err
	}
	f.rows = append(f.rows, row)
	return nil
}

// setString is set without a copy of the key; nothing writes to the bytes.
func (h *hasher) setString(key string) { h.set(unsafe.Slice(unsafe.StringData(key), len(key))) }
