package basefile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/storage"
)

// pageStep is how many entries are decoded at once: their scratch stays in the processor's cache.
const pageStep = 2048

// leafReader reads one leaf of one row group after the other into arrays of whole rows.
type leafReader struct {
	node    *node
	mem     memory.Allocator
	maxDef  int16
	maxRep  int16
	keep    bool // levels are needed to build what encloses the leaf
	chunk   file.ColumnChunkReader
	pages   *pages
	decoder decoder

	// What has been read and not yet handed out: levels of every entry (if kept), and validity of every slot.
	defs, reps []int16
	entries    int
	taken      int // entries of the batch that was handed out last
	slots      int
	nulls      int
	valid      *memory.Buffer // nil while no slot is null

	scratchDefs, scratchReps []int16
}

// decoder turns the physical values of a column chunk into slots of Arrow buffers.
type decoder interface {
	// open makes the decoder read the chunk.
	open(chunk file.ColumnChunkReader) error
	// reserve makes room for n slots more.
	reserve(n int)
	// read decodes up to n entries of the current page, putting each value into its slot from slot at on.
	read(l *leafReader, n, at int) (entries, values, slots int, err error)
	// take gives the buffers (after validity) of the first n slots and keeps the others, of total, for the next batch.
	take(n, total int) []*memory.Buffer
	release()
}

func newLeafReader(n *node, mem memory.Allocator, maxDef, maxRep int16, physical parquet.Type, keep bool) (*leafReader, error) {
	l := &leafReader{node: n, mem: mem, maxDef: maxDef, maxRep: maxRep, keep: keep}
	if maxDef > 0 {
		l.scratchDefs = make([]int16, pageStep)
	}
	if maxRep > 0 {
		l.scratchReps = make([]int16, pageStep)
	}
	if l.decoder = newDecoder(n.leaf, physical, mem); l.decoder == nil {
		return nil, fmt.Errorf("%w: %s stored as %s", ErrUnsupported, n.typ, physical)
	}
	return l, nil
}

// open starts a row group. What was read of the one before has been handed out.
func (l *leafReader) open(chunk file.ColumnChunkReader) error {
	l.close()
	l.chunk = chunk
	l.defs, l.reps, l.entries, l.taken = l.defs[:0], l.reps[:0], 0, 0
	return l.decoder.open(chunk)
}

func (l *leafReader) close() {
	if l.chunk != nil {
		_ = l.chunk.Close() // frees buffers; nothing was written
		l.chunk = nil
	}
}

func (l *leafReader) release() {
	l.close()
	l.decoder.release()
	if l.valid != nil {
		l.valid.Release()
		l.valid = nil
	}
}

// readRows reads rows whole rows and gives the array of their slots, with their levels (if kept). Levels are good until the
// next call.
func (l *leafReader) readRows(rows int) (data arrow.ArrayData, defs, reps []int16, err error) {
	defer recovered(&err)
	entries, slots := 0, 0
	if l.maxRep == 0 {
		if err = l.readFlat(rows); err != nil {
			return nil, nil, nil, err
		}
		entries, slots = l.entries, l.slots
	} else if entries, slots, err = l.readNested(rows); err != nil {
		return nil, nil, nil, err
	}
	data = l.take(slots)
	l.taken = entries
	if l.keep {
		if l.maxDef > 0 {
			defs = l.defs[:entries]
		}
		if l.maxRep > 0 {
			reps = l.reps[:entries]
		}
	}
	return data, defs, reps, nil
}

// readFlat reads exactly rows entries; each is a row.
func (l *leafReader) readFlat(rows int) error {
	l.defs, l.entries, l.taken = l.defs[:0], 0, 0
	l.decoder.reserve(rows)
	for l.entries < rows {
		if err := l.step(min(rows-l.entries, pageStep)); err != nil {
			return l.ended(err, l.entries, rows)
		}
	}
	return nil
}

// readNested reads until the entry after the last wanted row is known, or the column chunk ends.
func (l *leafReader) readNested(rows int) (entries, slots int, err error) {
	l.dropTaken()
	l.decoder.reserve(max(rows-l.slots, 0))
	started, at := 0, 0
	for {
		for ; at < l.entries; at++ {
			if l.reps[at] == 0 {
				if started == rows {
					return at, countSlots(l.defs[:at], l.node.slotDef), nil
				}
				started++
			}
		}
		err := l.step(pageStep)
		if errors.Is(err, io.EOF) && started == rows {
			return l.entries, l.slots, nil
		}
		if err != nil {
			return 0, 0, l.ended(err, started, rows)
		}
	}
}

func (l *leafReader) ended(err error, got, want int) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: the column chunk ends after %d of %d rows of a batch", ErrDamaged, got, want)
	}
	return err
}

func countSlots(defs []int16, slotDef int16) int {
	n := 0
	for _, d := range defs {
		if d >= slotDef {
			n++
		}
	}
	return n
}

// step decodes up to n entries; io.EOF at the end of the chunk.
func (l *leafReader) step(n int) error {
	if !l.chunk.HasNext() {
		if err := l.chunk.Err(); err != nil {
			return damaged(err)
		}
		return io.EOF
	}
	entries, values, slots, err := l.decoder.read(l, n, l.slots)
	if err != nil {
		return err
	}
	if entries <= 0 || entries > n || values > slots || slots > entries {
		return fmt.Errorf("%w: a page gave %d entries and %d values where %d were asked for", ErrDamaged, entries, values, n)
	}
	l.validity(l.scratchDefs, entries, values, slots)
	if l.keep || l.maxRep > 0 {
		if l.maxDef > 0 {
			l.defs = append(l.defs, l.scratchDefs[:entries]...)
		}
		if l.maxRep > 0 {
			l.reps = append(l.reps, l.scratchReps[:entries]...)
		}
	}
	l.entries += entries
	l.slots += slots
	return nil
}

// defsFor and repsFor are the scratch for n entries, nil where the column has no such levels.
func (l *leafReader) defsFor(n int) []int16 {
	if l.maxDef == 0 {
		return nil
	}
	return l.scratchDefs[:n]
}

func (l *leafReader) repsFor(n int) []int16 {
	if l.maxRep == 0 {
		return nil
	}
	return l.scratchReps[:n]
}

// slotsOf counts the slots among the entries that were just read.
func (l *leafReader) slotsOf(entries int) int {
	if l.node.slotDef == 0 || l.maxDef == 0 {
		return entries
	}
	return countSlots(l.scratchDefs[:entries], l.node.slotDef)
}

// validity notes which of the new slots are null.
func (l *leafReader) validity(defs []int16, entries, values, slots int) {
	if values == slots && l.valid == nil {
		return
	}
	if l.valid == nil {
		l.valid = memory.NewResizableBuffer(l.mem)
	}
	before := l.valid.Len()
	need := int(bitutil.BytesForBits(int64(l.slots + slots)))
	if need > before {
		l.valid.Reserve(max(need, 2*before))
		l.valid.ResizeNoShrink(need)
		clear(l.valid.Bytes()[before:])
	}
	bits := l.valid.Bytes()
	if before == 0 {
		bitutil.SetBitsTo(bits, 0, int64(l.slots), true)
	}
	if values == slots {
		bitutil.SetBitsTo(bits, int64(l.slots), int64(slots), true)
		return
	}
	l.nulls += slots - values
	at := l.slots
	slotDef := l.node.slotDef
	for _, d := range defs[:entries] {
		if d == l.maxDef {
			bits[at>>3] |= 1 << (at & 7)
			at++
		} else if d >= slotDef {
			at++
		}
	}
}

// take makes the array of the first n slots. For nested columns what is left moves to the front of new buffers.
func (l *leafReader) take(n int) arrow.ArrayData {
	total := l.slots
	buffers := append([]*memory.Buffer{nil}, l.decoder.take(n, total)...)
	nulls := l.nulls
	var rest *memory.Buffer
	restNulls := 0
	if l.valid != nil {
		if left := total - n; left > 0 {
			rest = memory.NewResizableBuffer(l.mem)
			rest.Resize(int(bitutil.BytesForBits(int64(left))))
			clear(rest.Bytes())
			bitutil.CopyBitmap(l.valid.Bytes(), n, left, rest.Bytes(), 0)
			restNulls = left - bitutil.CountSetBits(rest.Bytes(), 0, left)
		}
		nulls -= restNulls
		buffers[0] = l.valid
	}
	var data arrow.ArrayData
	if l.node.typ.ID() == arrow.NULL {
		data = array.NewData(arrow.Null, n, []*memory.Buffer{nil}, nil, n, 0)
	} else {
		data = array.NewData(l.node.typ, n, buffers, nil, nulls, 0)
	}
	for _, b := range buffers {
		if b != nil {
			b.Release()
		}
	}
	l.valid, l.nulls, l.slots = rest, restNulls, total-n
	return data
}

// dropTaken removes the levels of the entries that the batch before took.
func (l *leafReader) dropTaken() {
	if l.taken == 0 {
		return
	}
	left := l.entries - l.taken
	copy(l.defs, l.defs[l.taken:])
	copy(l.reps, l.reps[l.taken:])
	l.defs, l.reps, l.entries, l.taken = l.defs[:left], l.reps[:left], left, 0
}

// spread moves values that stand one after the other, for the entries of defs, to their slots, from the back on.
func spread[T any](v []T, values, slots int, defs []int16, maxDef, slotDef int16) {
	if values == slots {
		return
	}
	var zero T
	from, to := values-1, slots-1
	for i := len(defs) - 1; i >= 0 && to > from; i-- {
		switch d := defs[i]; {
		case d == maxDef:
			v[to] = v[from]
			from--
			to--
		case d >= slotDef:
			v[to] = zero
			to--
		}
	}
}

func newDecoder(t leafType, physical parquet.Type, mem memory.Allocator) decoder {
	switch t.form {
	case asIs:
		switch physical {
		case parquet.Types.Int32:
			return newFixed[int32, int32](mem, nil)
		case parquet.Types.Int64:
			return newFixed[int64, int64](mem, nil)
		case parquet.Types.Float:
			return newFixed[float32, float32](mem, nil)
		case parquet.Types.Double:
			return newFixed[float64, float64](mem, nil)
		case parquet.Types.ByteArray:
			return newVar[parquet.ByteArray](mem, nil)
		}
	case asBool:
		return &boolDecoder{mem: mem}
	case asDecimal:
		return decimalDecoder(t, physical, mem)
	case asFixed:
		return &wideDecoder{mem: mem, width: t.length}
	case asInt96:
		return newFixed(mem, func(dst []int64, src []parquet.Int96) error {
			for i, v := range src {
				var err error
				if dst[i], err = int96Micros(v); err != nil {
					return err
				}
			}
			return nil
		})
	case asUint32:
		return newFixed(mem, func(dst []int64, src []int32) error {
			for i, v := range src {
				dst[i] = int64(uint32(v))
			}
			return nil
		})
	case asUint64:
		return newFixed(mem, func(dst []decimal128.Num, src []int64) error {
			for i, v := range src {
				dst[i] = decimal128.FromU64(uint64(v))
			}
			return nil
		})
	case asHalf:
		return newFixed(mem, func(dst []float32, src []parquet.FixedLenByteArray) error {
			for i, v := range src {
				dst[i] = float16.FromLEBytes(v).Float32()
			}
			return nil
		})
	case asUUID:
		return newVar(mem, func(dst []byte, v parquet.FixedLenByteArray) []byte { return appendUUID(dst, v) })
	case asNothing:
		return nothingDecoder(physical, mem)
	}
	return nil
}

func nothingDecoder(physical parquet.Type, mem memory.Allocator) decoder {
	switch physical {
	case parquet.Types.Boolean:
		return &boolDecoder{mem: mem}
	case parquet.Types.Int32:
		return newFixed[int32, int32](mem, nil)
	case parquet.Types.Int64:
		return newFixed[int64, int64](mem, nil)
	case parquet.Types.Float:
		return newFixed[float32, float32](mem, nil)
	case parquet.Types.Double:
		return newFixed[float64, float64](mem, nil)
	case parquet.Types.Int96:
		return newFixed(mem, func([]int64, []parquet.Int96) error { return nil })
	case parquet.Types.FixedLenByteArray:
		return newVar[parquet.FixedLenByteArray](mem, nil)
	}
	return newVar[parquet.ByteArray](mem, nil)
}

func decimalDecoder(t leafType, physical parquet.Type, mem memory.Allocator) decoder {
	if t.arrow.ID() == arrow.DECIMAL256 {
		switch physical {
		case parquet.Types.Int32:
			return newFixed(mem, from64[int32, decimal256.Num](decimal256.FromI64))
		case parquet.Types.Int64:
			return newFixed(mem, from64[int64, decimal256.Num](decimal256.FromI64))
		case parquet.Types.ByteArray:
			return newFixed(mem, fromBytes[parquet.ByteArray](32, bigEndian256))
		}
		return newFixed(mem, fromBytes[parquet.FixedLenByteArray](32, bigEndian256))
	}
	switch physical {
	case parquet.Types.Int32:
		return newFixed(mem, from64[int32, decimal128.Num](decimal128.FromI64))
	case parquet.Types.Int64:
		return newFixed(mem, from64[int64, decimal128.Num](decimal128.FromI64))
	case parquet.Types.ByteArray:
		return newFixed(mem, fromBytes[parquet.ByteArray](16, schema.BigEndianDecimal))
	}
	return newFixed(mem, fromBytes[parquet.FixedLenByteArray](16, schema.BigEndianDecimal))
}

func from64[T int32 | int64, U any](convert func(int64) U) func([]U, []T) error {
	return func(dst []U, src []T) error {
		for i, v := range src {
			dst[i] = convert(int64(v))
		}
		return nil
	}
}

// fromBytes reads big-endian two's complement. Longer values than the width needs are taken while the bytes before are
// only sign; no bytes at all are zero, as Java's BigInteger refuses them but some writers make them.
func fromBytes[T ~[]byte, U any](width int, convert func([]byte) U) func([]U, []T) error {
	return func(dst []U, src []T) error {
		var zero U
		for i, v := range src {
			b := []byte(v)
			if len(b) == 0 {
				dst[i] = zero
				continue
			}
			for len(b) > width {
				if sign := byte(int8(b[1]) >> 7); b[0] != sign {
					return fmt.Errorf("%w: a decimal of %d bytes", ErrDamaged, len(v))
				}
				b = b[1:]
			}
			dst[i] = convert(b)
		}
		return nil
	}
}

func bigEndian256(b []byte) decimal256.Num {
	v := new(big.Int).SetBytes(b)
	if b[0]&0x80 != 0 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return decimal256.FromBigInt(v)
}

// julianEpoch is the Julian day of 1970-01-01.
const julianEpoch = 2440588

// int96Micros: microseconds since 1970-01-01 UTC, cut down like Spark does it; days reach from 292,000 years before to after.
func int96Micros(v parquet.Int96) (int64, error) {
	nanos := int64(leUint64(v[:8]))
	day := int64(int32(leUint32(v[8:])))
	days := day - julianEpoch
	const dayMicros = 86400 * 1000000
	micros := nanos / 1000
	if nanos%1000 < 0 {
		micros--
	}
	if days > math.MaxInt64/dayMicros-2 || days < math.MinInt64/dayMicros+2 {
		return 0, fmt.Errorf("%w: INT96 timestamp of Julian day %d", ErrDamaged, day)
	}
	total := days * dayMicros
	if micros > 0 && total > math.MaxInt64-micros || micros < 0 && total < math.MinInt64-micros {
		return 0, fmt.Errorf("%w: INT96 timestamp of Julian day %d and %d ns", ErrDamaged, day, nanos)
	}
	return total + micros, nil
}

func leUint32(b []byte) uint32 {
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}
func leUint64(b []byte) uint64 { return uint64(leUint32(b)) | uint64(leUint32(b[4:]))<<32 }

const hexDigits = "0123456789abcdef"

func appendUUID(dst, v []byte) []byte {
	for i, c := range v {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			dst = append(dst, '-')
		}
		dst = append(dst, hexDigits[c>>4], hexDigits[c&15])
	}
	return dst
}

// seek brings the reader to a row of the open row group, by way of the page that holds it.
func (l *leafReader) seek(locations []pageLocation, row int64) error {
	l.defs, l.reps, l.entries, l.taken = l.defs[:0], l.reps[:0], 0, 0
	if l.slots > 0 { // read ahead and not handed out
		l.take(l.slots).Release()
	}
	first := int64(0)
	for _, p := range locations {
		if p.first <= row {
			first = p.first
		}
	}
	l.pages.locations = locations
	if err := l.seekPage(first); err != nil {
		return err
	}
	for at := first; at < row; {
		n := min(row-at, DefaultBatchRows)
		data, _, _, err := l.readRows(int(n))
		if err != nil {
			return err
		}
		data.Release()
		at += n
	}
	return nil
}

func (l *leafReader) seekPage(row int64) (err error) {
	defer recovered(&err)
	if err := l.chunk.SeekToRow(row); err != nil {
		return fmt.Errorf("row %d: %w", row, damaged(err))
	}
	return nil
}

// damaged marks an error of the library, unless it has a kind already.
func damaged(err error) error {
	if errors.Is(err, ErrDamaged) || errors.Is(err, ErrUnsupported) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, storage.ErrChanged) {
		return err
	}
	var store *storage.Error
	if errors.As(err, &store) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}
