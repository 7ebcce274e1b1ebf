package basefile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/sluicelake/sluice/storage"
)

const (
	magic          = "PAR1"
	magicEncrypted = "PARE"
	// tailGuess is read first: footers with a bloom filter are some 440 KB.
	tailGuess          = 512 << 10
	defaultFooterLimit = 64 << 20
)

// footer of a file.
type footer struct {
	md        *metadata.FileMetaData // without key-value metadata
	keyValues []byte                 // a Thrift list
	tail      segment                // the end of the file, for small files all of it
}

// readFooter reads and checks the footer.
func readFooter(ctx context.Context, obj storage.Object, o *Options) (f footer, err error) {
	size := obj.Size()
	fail := func(off int64, format string, args ...any) (footer, error) {
		return footer{}, &Error{Offset: off, Err: fmt.Errorf("%w: "+format, append([]any{ErrDamaged}, args...)...)}
	}
	if size < int64(2*len(magic)+4) {
		return fail(-1, "%d bytes are too few for a Parquet file", size)
	}
	if f.tail, err = readTail(ctx, obj, min(size, tailGuess)); err != nil {
		return f, err
	}
	end := f.tail.data[len(f.tail.data)-8:]
	switch string(end[4:]) {
	case magic:
	case magicEncrypted:
		return f, &Error{Offset: size - 4, Err: fmt.Errorf("encrypted Parquet: %w", ErrUnsupported)}
	default:
		return fail(size-4, "it does not end with %s, so it is no Parquet file or was cut off", magic)
	}
	length := int64(binary.LittleEndian.Uint32(end))
	limit := o.FooterLimit
	if limit <= 0 {
		limit = defaultFooterLimit
	}
	if length > size-12 || length > limit {
		return fail(size-8, "footer of %d bytes in a file of %d (limit %d)", length, size, limit)
	}
	if int64(len(f.tail.data)) < length+8 {
		if f.tail, err = readTail(ctx, obj, length+8); err != nil {
			return f, err
		}
	}
	text := f.tail.data[int64(len(f.tail.data))-8-length : len(f.tail.data)-8]
	rest, at, err := f.cut(text)
	if err != nil {
		return fail(size-8-length+int64(at), "footer: %w", err)
	}
	md, err := parseFooter(rest)
	if err != nil {
		return fail(size-8-length, "footer: %w", err)
	}
	md.SetSourceFileSize(size)
	if md.IsSetEncryptionAlgorithm() {
		return f, &Error{Offset: size - 8 - length, Err: fmt.Errorf("encrypted Parquet: %w", ErrUnsupported)}
	}
	if err := checkRowGroups(md, size); err != nil {
		return fail(size-8-length, "footer: %w", err)
	}
	f.md = md
	return f, nil
}

// cut skims the text of a footer and takes the key-value metadata out of it: the bloom filter of Apache Hudi is some hundred
// kilobytes of it, and the library that decodes the rest is slow with those. It gives the byte where it stopped.
func (f *footer) cut(text []byte) (rest []byte, at int, err error) {
	s, from := skimmer{b: text}, 0
	err = s.fields(0, func(id int, kind byte) (bool, error) {
		if id != footerKeyValues || kind != thriftList {
			return false, nil
		}
		from = s.at
		err := s.list(0)
		f.keyValues = text[from:s.at]
		return true, err
	})
	if err != nil || f.keyValues == nil {
		return text, s.at, err
	}
	none := []byte{thriftStruct} // a list of no structures
	return slices.Concat(text[:from], none, text[from+len(f.keyValues):]), s.at, nil
}

// keyValue decodes the key-value metadata; those without a value are left out.
func (f *footer) keyValue() map[string]string {
	out := map[string]string{}
	s := skimmer{b: f.keyValues}
	kind, n, err := s.listHead()
	for ; err == nil && n > 0 && kind == thriftStruct; n-- {
		var pair [2]*string
		err = s.fields(1, func(id int, kind byte) (bool, error) {
			if id < 1 || id > 2 || kind != thriftBinary {
				return false, nil
			}
			n, err := s.varint()
			if err == nil {
				err = s.skip(n)
			}
			if err == nil {
				text := string(s.b[s.at-int(n) : s.at])
				pair[id-1] = &text
			}
			return true, err
		})
		if err == nil && pair[0] != nil && pair[1] != nil {
			out[*pair[0]] = *pair[1]
		}
	}
	return out // the list was skimmed when the file was opened: there is no error
}

func readTail(ctx context.Context, obj storage.Object, n int64) (segment, error) {
	tail := segment{off: obj.Size() - n, data: make([]byte, n)}
	got, err := obj.ReadAt(ctx, tail.data, tail.off)
	if int64(got) == n {
		return tail, nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: read %d of %d bytes", ErrDamaged, got, n)
	}
	return tail, &Error{Offset: tail.off, Err: err}
}

func parseFooter(text []byte) (md *metadata.FileMetaData, err error) {
	defer recovered(&err)
	return metadata.NewFileMetaData(text, nil)
}

// recovered turns a panic of the Parquet library over damaged bytes into an error.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v", ErrDamaged, p)
	}
}

// checkRowGroups: everything that a scan relies on, so that later code can index without asking.
func checkRowGroups(md *metadata.FileMetaData, size int64) error {
	columns := md.Schema.NumColumns()
	total := int64(0)
	for g, rg := range md.RowGroups {
		if rg.NumRows < 0 || rg.NumRows > math.MaxInt64-total {
			return fmt.Errorf("row group %d has %d rows", g, rg.NumRows)
		}
		total += rg.NumRows
		if len(rg.Columns) != columns {
			return fmt.Errorf("row group %d has %d columns, the schema %d", g, len(rg.Columns), columns)
		}
		for c, chunk := range rg.Columns {
			m := chunk.MetaData
			if m == nil {
				return fmt.Errorf("row group %d, column %d has no metadata", g, c)
			}
			if chunk.FilePath != nil && *chunk.FilePath != "" {
				return fmt.Errorf("row group %d, column %d lies in another file (%q)", g, c, *chunk.FilePath)
			}
			col := md.Schema.Column(c)
			if int32(m.Type) != int32(col.PhysicalType()) {
				return fmt.Errorf("row group %d, column %s has type %d, the schema %d", g, col.Path(), m.Type, col.PhysicalType())
			}
			start := m.DataPageOffset
			if m.DictionaryPageOffset != nil && *m.DictionaryPageOffset > 0 && *m.DictionaryPageOffset < start {
				start = *m.DictionaryPageOffset
			}
			if start < 0 || m.TotalCompressedSize < 0 || start > size || m.TotalCompressedSize > size-start || m.NumValues < 0 {
				return fmt.Errorf("row group %d, column %s lies at %d with %d bytes and %d values, in a file of %d bytes", g, col.Path(), start, m.TotalCompressedSize, m.NumValues, size)
			}
			if col.MaxRepetitionLevel() == 0 && m.NumValues != rg.NumRows {
				return fmt.Errorf("row group %d, column %s has %d values for %d rows", g, col.Path(), m.NumValues, rg.NumRows)
			}
		}
	}
	if total != md.NumRows {
		return fmt.Errorf("%d rows in row groups, %d in the footer", total, md.NumRows)
	}
	return nil
}

// skimThrift walks a Thrift compact structure without building anything, and refuses lengths that the bytes can't hold, so
// that the real decoder never allocates for a number that a damaged file claims. It gives the byte where it stopped.
func skimThrift(b []byte) (int, error) {
	s := skimmer{b: b}
	err := s.structure(0)
	return s.at, err
}

type skimmer struct {
	b  []byte
	at int
}

var (
	errCut      = errors.New("it ends too early")
	errTooDeep  = errors.New("nested too deeply")
	errTooLarge = errors.New("a length that reaches beyond the end")
)

func (s *skimmer) varint() (uint64, error) {
	v, n := binary.Uvarint(s.b[s.at:])
	if n <= 0 {
		return 0, errCut
	}
	s.at += n
	return v, nil
}

func (s *skimmer) byte() (byte, error) {
	if s.at >= len(s.b) {
		return 0, errCut
	}
	s.at++
	return s.b[s.at-1], nil
}

func (s *skimmer) skip(n uint64) error {
	if n > uint64(len(s.b)-s.at) {
		return errTooLarge
	}
	s.at += int(n)
	return nil
}

// The Thrift compact types that are looked at by name.
const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftBinary = 8
	thriftList   = 9
	thriftStruct = 12

	footerKeyValues = 5 // field of FileMetaData
)

func (s *skimmer) structure(depth int) error {
	return s.fields(depth, func(int, byte) (bool, error) { return false, nil })
}

// fields walks the fields of a structure. read may take a field's value and then says true; else it is skipped.
func (s *skimmer) fields(depth int, read func(id int, kind byte) (bool, error)) error {
	if depth > 32 {
		return errTooDeep
	}
	id := 0
	for {
		head, err := s.byte()
		if err != nil {
			return err
		}
		if head == 0 {
			return nil
		}
		if delta := int(head >> 4); delta != 0 {
			id += delta
		} else { // long form: the field's number follows
			v, err := s.varint()
			if err != nil {
				return err
			}
			id = int(int16(v>>1) ^ -int16(v&1))
		}
		kind := head & 0x0f
		taken, err := read(id, kind)
		if err != nil {
			return err
		}
		if taken || kind == thriftTrue || kind == thriftFalse {
			continue // a boolean field is its own header
		}
		if err := s.value(kind, depth); err != nil {
			return err
		}
	}
}

// integer takes an i16, i32 or i64.
func (s *skimmer) integer(kind byte, into *int64) (bool, error) {
	if kind < 4 || kind > 6 {
		return false, nil
	}
	v, err := s.varint()
	*into = int64(v>>1) ^ -int64(v&1)
	return true, err
}

func (s *skimmer) value(kind byte, depth int) error {
	switch kind {
	case 1, 2, 3:
		return s.skip(1)
	case 4, 5, 6:
		_, err := s.varint()
		return err
	case 7:
		return s.skip(8)
	case 8:
		n, err := s.varint()
		if err != nil {
			return err
		}
		return s.skip(n)
	case 9, 10:
		return s.list(depth)
	case 12:
		return s.structure(depth + 1)
	}
	return fmt.Errorf("unknown Thrift type %d", kind) // Parquet has no maps
}

func (s *skimmer) listHead() (kind byte, n uint64, err error) {
	head, err := s.byte()
	if err != nil {
		return 0, 0, err
	}
	if n = uint64(head >> 4); n == 15 {
		if n, err = s.varint(); err != nil {
			return 0, 0, err
		}
	}
	if n > uint64(len(s.b)-s.at) {
		return 0, 0, errTooLarge
	}
	return head & 0x0f, n, nil
}

func (s *skimmer) list(depth int) error {
	kind, n, err := s.listHead()
	if err != nil {
		return err
	}
	if depth > 32 {
		return errTooDeep
	}
	for range n {
		if err := s.value(kind, depth+1); err != nil {
			return err
		}
	}
	return nil
}
