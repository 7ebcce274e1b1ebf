package basefile

import (
	"encoding/binary"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
)

// leafValues gathers the values of one leaf that are not null, and hands them with their levels to the Parquet library. Texts
// and bytes are not copied: they stay in the arrays, which outlive the slice.
type leafValues interface {
	reset()
	bind(arr arrow.Array) error
	addRange(from, to int)
	distinct() (all, different int)
	flush(to file.ColumnChunkWriter, def, rep []int16) error
}

// number is a value that Arrow and Parquet store alike.
type number interface {
	int32 | int64 | float32 | float64
}

type fixedWidth[T number] struct {
	from []T
	out  []T
}

func (v *fixedWidth[T]) reset() { v.out, v.from = v.out[:0], nil }

func (v *fixedWidth[T]) bind(arr arrow.Array) error {
	v.from = nil
	if arr.Len() > 0 {
		v.from = arrow.GetData[T](arr.Data().Buffers()[1].Bytes())[arr.Data().Offset():][:arr.Len()]
	}
	return nil
}

func (v *fixedWidth[T]) addRange(from, to int) { v.out = append(v.out, v.from[from:to]...) }

func (v *fixedWidth[T]) distinct() (all, different int) {
	seen := make(map[T]struct{}, len(v.out))
	for _, x := range v.out {
		seen[x] = struct{}{}
	}
	return len(v.out), len(seen)
}

func (v *fixedWidth[T]) flush(to file.ColumnChunkWriter, def, rep []int16) error {
	w, ok := to.(interface {
		WriteBatch(values []T, defLevels, repLevels []int16) (int64, error)
	})
	if !ok {
		return fmt.Errorf("a column writer of %s for other values", to.Type())
	}
	_, err := w.WriteBatch(v.out, def, rep)
	return err
}

type boolValues struct {
	from *array.Boolean
	out  []bool
}

func (v *boolValues) reset()                     { v.out, v.from = v.out[:0], nil }
func (v *boolValues) bind(arr arrow.Array) error { return bindTo(&v.from, arr) }
func (v *boolValues) addRange(from, to int) {
	for i := from; i < to; i++ {
		v.out = append(v.out, v.from.Value(i))
	}
}

func (v *boolValues) distinct() (all, different int) { return len(v.out), 2 }

func (v *boolValues) flush(to file.ColumnChunkWriter, def, rep []int16) error {
	_, err := to.(*file.BooleanColumnChunkWriter).WriteBatch(v.out, def, rep)
	return err
}

// textValues are texts and bytes of any length.
type textValues struct {
	offsets []int32
	bytes   []byte
	out     []parquet.ByteArray
}

func (v *textValues) reset() {
	clear(v.out) // let go of the arrays
	v.out, v.offsets, v.bytes = v.out[:0], nil, nil
}

func (v *textValues) bind(arr arrow.Array) error {
	if v.offsets, v.bytes = nil, nil; arr.Len() == 0 {
		return nil
	}
	switch a := arr.(type) {
	case *array.String:
		v.offsets = a.ValueOffsets()
	case *array.Binary:
		v.offsets = a.ValueOffsets()
	default:
		return fmt.Errorf("an array of %s for text or bytes", arr.DataType())
	}
	if b := arr.Data().Buffers()[2]; b != nil {
		v.bytes = b.Bytes()
	}
	return nil
}

func (v *textValues) addRange(from, to int) {
	for i := from; i < to; i++ {
		v.out = append(v.out, v.bytes[v.offsets[i]:v.offsets[i+1]:v.offsets[i+1]])
	}
}

func (v *textValues) distinct() (all, different int) { return len(v.out), distinctBytes(v.out) }

func distinctBytes[T ~[]byte](values []T) int {
	seen := make(map[string]struct{}, len(values))
	for _, x := range values {
		seen[string(x)] = struct{}{}
	}
	return len(seen)
}

func (v *textValues) flush(to file.ColumnChunkWriter, def, rep []int16) error {
	_, err := to.(*file.ByteArrayColumnChunkWriter).WriteBatch(v.out, def, rep)
	return err
}

type fixedValues struct {
	from *array.FixedSizeBinary
	out  []parquet.FixedLenByteArray
}

func (v *fixedValues) reset() {
	clear(v.out)
	v.out, v.from = v.out[:0], nil
}
func (v *fixedValues) bind(arr arrow.Array) error { return bindTo(&v.from, arr) }
func (v *fixedValues) addRange(from, to int) {
	for i := from; i < to; i++ {
		v.out = append(v.out, v.from.Value(i))
	}
}

func (v *fixedValues) distinct() (all, different int) { return len(v.out), distinctBytes(v.out) }

func (v *fixedValues) flush(to file.ColumnChunkWriter, def, rep []int16) error {
	_, err := to.(*file.FixedLenByteArrayColumnChunkWriter).WriteBatch(v.out, def, rep)
	return err
}

// decimalValues are decimals as big-endian two's complement: of size bytes, or, where size is 0, as many as each needs.
type decimalValues struct {
	precision int32
	size      int
	narrow    *array.Decimal128
	wide      *array.Decimal256
	space     []byte
	ends      []int
	err       error
}

func (v *decimalValues) reset() {
	v.space, v.ends, v.err, v.narrow, v.wide = v.space[:0], v.ends[:0], nil, nil, nil
}

func (v *decimalValues) bind(arr arrow.Array) error {
	v.narrow, v.wide = nil, nil
	if _, ok := arr.(*array.Decimal128); ok {
		return bindTo(&v.narrow, arr)
	}
	return bindTo(&v.wide, arr)
}

func (v *decimalValues) addRange(from, to int) {
	for i := from; i < to && v.err == nil; i++ {
		var digits [32]byte
		text := ""
		if v.narrow != nil {
			n := v.narrow.Value(i)
			if !fits(n, v.precision) {
				text = n.ToString(0)
			}
			putDecimal(&digits, uint64(n.HighBits()>>63), uint64(n.HighBits()>>63), uint64(n.HighBits()), n.LowBits())
		} else {
			n := v.wide.Value(i)
			if !n.FitsInPrecision(v.precision) {
				text = n.ToString(0)
			}
			a := n.Array()
			putDecimal(&digits, a[3], a[2], a[1], a[0])
		}
		if text != "" {
			v.err = fmt.Errorf("the decimal with the digits %s has more than %d", text, v.precision)
			return
		}
		v.space = append(v.space, digits[len(digits)-v.width(&digits):]...)
		v.ends = append(v.ends, len(v.space))
	}
}

// fits is false for the smallest number of all, whose absolute value has no place either.
func fits(n decimal128.Num, precision int32) bool {
	if n.HighBits() == -1<<63 && n.LowBits() == 0 {
		return false
	}
	return n.FitsInPrecision(precision)
}

func putDecimal(to *[32]byte, words ...uint64) {
	for i, w := range words {
		binary.BigEndian.PutUint64(to[8*i:], w)
	}
}

func (v *decimalValues) width(digits *[32]byte) int {
	if v.size > 0 {
		return v.size
	}
	n := len(digits)
	for n > 1 { // drop bytes that repeat the sign
		at := len(digits) - n
		if sign := byte(int8(digits[at+1]) >> 7); digits[at] != sign {
			break
		}
		n--
	}
	return n
}

func (v *decimalValues) distinct() (all, different int) {
	out := make([][]byte, len(v.ends))
	start := 0
	for i, end := range v.ends {
		out[i], start = v.space[start:end], end
	}
	return len(out), distinctBytes(out)
}

func (v *decimalValues) flush(to file.ColumnChunkWriter, def, rep []int16) error {
	if v.err != nil {
		return v.err
	}
	start := 0
	if w, ok := to.(*file.FixedLenByteArrayColumnChunkWriter); ok {
		out := make([]parquet.FixedLenByteArray, len(v.ends))
		for i, end := range v.ends {
			out[i], start = v.space[start:end:end], end
		}
		_, err := w.WriteBatch(out, def, rep)
		return err
	}
	out := make([]parquet.ByteArray, len(v.ends))
	for i, end := range v.ends {
		out[i], start = v.space[start:end:end], end
	}
	_, err := to.(*file.ByteArrayColumnChunkWriter).WriteBatch(out, def, rep)
	return err
}

func bindTo[T arrow.Array](to *T, arr arrow.Array) error {
	a, ok := arr.(T)
	if !ok {
		return fmt.Errorf("an array of %s for other values", arr.DataType())
	}
	*to = a
	return nil
}
