package logfile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/sluicelake/sluice/hudi/schema"
)

// OrderingKind is the type of an ordering value in a delete block: the number of its branch in the union.
type OrderingKind uint8

// The kinds, with the field of Ordering that holds the value.
const (
	OrderingNone            OrderingKind = iota
	OrderingBool                         // Int, 0 or 1
	OrderingInt                          // Int; 0 means that there is no ordering, see Ordering.IsNone
	OrderingLong                         // Int
	OrderingFloat                        // Float
	OrderingDouble                       // Float
	OrderingBytes                        // Text
	OrderingString                       // Text
	OrderingDate                         // Int, days since 1970
	OrderingDecimal                      // Decimal, of scale DecimalScale
	OrderingTimeMicros                   // Int
	OrderingTimestampMicros              // Int
	OrderingArray                        // Items: several ordering fields
)

// DecimalScale is the scale of every decimal ordering value.
const DecimalScale = 15

// Ordering is the ordering value that a delete carries.
type Ordering struct {
	Kind    OrderingKind
	Int     int64
	Float   float64
	Text    string
	Decimal decimal128.Num
	Items   []Ordering
}

// IsNone: the delete has no ordering value and removes whatever is there. That is written as Int 0, or as null.
func (o Ordering) IsNone() bool {
	return o.Kind == OrderingNone || o.Kind == OrderingInt && o.Int == 0
}

// DeletedKey is one entry of a delete block, or a removed key of an HFile block (which has the key alone).
type DeletedKey struct {
	Key       string
	Partition string
	Ordering  Ordering
}

// KryoDeletesError refuses a delete block of version 2, or one of version 1 that holds no keys.
type KryoDeletesError struct{ Version int32 }

func (e *KryoDeletesError) Error() string {
	return fmt.Sprintf("delete block of version %d: its entries are Java objects serialized by Kryo, as releases before 0.14 write them, and can't be read without a JVM", e.Version)
}

// Unwrap makes errors.Is(err, ErrUnsupported) true.
func (e *KryoDeletesError) Unwrap() error { return ErrUnsupported }

// NextStep for a person.
func (e *KryoDeletesError) NextStep() string {
	return "compact the table's log files with the Apache Hudi release that writes it, or upgrade that to 0.14 or later and compact; base files need nothing"
}

// Deletes streams the removed keys: the entries of a delete block in their order, or the keys without value of an HFile
// block. Other blocks have none.
func (r Ref) Deletes(ctx context.Context) iter.Seq2[DeletedKey, error] {
	return func(yield func(DeletedKey, error) bool) {
		var err error
		each := func(d DeletedKey) bool { return yield(d, nil) }
		switch r.Type {
		case Delete:
			err = r.deleteBlock(ctx, each)
		case HFileData:
			err = r.hfileDeletes(ctx, each)
		}
		if err != nil {
			yield(DeletedKey{}, r.wrap(err))
		}
	}
}

func (r Ref) hfileDeletes(ctx context.Context, yield func(DeletedKey) bool) error {
	h, closeFile, err := r.HFile(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = closeFile() }()
	for e, err := range h.Scan(ctx) {
		if err != nil {
			return err
		}
		if len(e.Value) == 0 && !yield(DeletedKey{Key: string(e.Key)}) {
			return nil
		}
	}
	return nil
}

// deleteBlock reads int32 version, int32 length and Avro HoodieDeleteRecordList, which is one array of entries.
func (r Ref) deleteBlock(ctx context.Context, yield func(DeletedKey) bool) error {
	obj, err := r.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = obj.Close() }()
	c := r.content(ctx, obj)
	version, err := c.int32()
	if err != nil {
		return err
	}
	switch {
	case version == 1:
		return kryoDeletes(c, yield)
	case version == 2:
		return &KryoDeletesError{version}
	case version != 3:
		return fmt.Errorf("%w: version %d of the content; a newer release wrote it", ErrUnsupported, version)
	}
	length, err := c.int32()
	if err != nil {
		return err
	}
	if int64(length) != c.left() {
		return fmt.Errorf("%w: %d bytes of deletes, %d are there", ErrFormat, length, c.left())
	}
	d := deleteReader{c: c}
	if err := d.list(yield); err != nil {
		return err
	}
	if c.left() > 0 && !d.stopped {
		return fmt.Errorf("%w: %d bytes behind the last delete", ErrFormat, c.left())
	}
	return nil
}

// kryoDeletes reads the int32 length and the serialized keys of a block of version 1. They have no ordering values.
func kryoDeletes(c *content, yield func(DeletedKey) bool) error {
	raw, err := c.sized()
	if err != nil {
		return err
	}
	keys, err := keysOfKryo(raw)
	if err != nil {
		return err
	}
	for _, k := range keys {
		if !yield(k) {
			return nil
		}
	}
	return nil
}

// deleteReader decodes entries from a stream whose entries may straddle the buffer: an entry that runs short is read again
// from its start with more bytes.
type deleteReader struct {
	c       *content
	stopped bool // by the receiver
}

// errShort says that the buffer ended inside a value.
var errShort = fmt.Errorf("%w: entry is cut", ErrFormat)

func (d *deleteReader) list(yield func(DeletedKey) bool) error {
	for n := 0; ; {
		var count int64
		if err := d.retry(func(v *values) error { return v.blockCount(&count) }); err != nil {
			return err
		}
		if count == 0 {
			return nil
		}
		if count > d.c.left()/3 { // an entry has three branch numbers at least
			return fmt.Errorf("%w: %d deletes in %d bytes", ErrFormat, count, d.c.left())
		}
		for ; count > 0; count-- {
			var e DeletedKey
			if err := d.retry(func(v *values) error { return v.entry(&e) }); err != nil {
				return fmt.Errorf("delete %d: %w", n, err)
			}
			if !yield(e) {
				d.stopped = true
				return nil
			}
			n++
		}
	}
}

// retry runs read on the buffer, and again with twice as much while it runs short.
func (d *deleteReader) retry(read func(*values) error) error {
	for {
		v := values{b: d.c.buf}
		err := read(&v)
		if err == nil {
			d.c.buf = v.b
			return nil
		}
		if !errors.Is(err, errShort) || int64(len(d.c.buf)) == d.c.left() {
			return err
		}
		more := min(max(2*int64(len(d.c.buf)), contentRead), d.c.left())
		if err := d.c.fill(int(more)); err != nil {
			return err
		}
	}
}

// values reads Avro values.
type values struct{ b []byte }

func (v *values) long() (int64, error) {
	u, n := binary.Uvarint(v.b)
	if n == 0 {
		return 0, errShort
	}
	if n < 0 {
		return 0, fmt.Errorf("%w: number is too long", ErrFormat)
	}
	v.b = v.b[n:]
	return int64(u>>1) ^ -int64(u&1), nil
}

// maxText bounds a key, a partition path or an ordering value.
const maxText = 1 << 28

func (v *values) bytes() ([]byte, error) {
	n, err := v.long()
	if err != nil {
		return nil, err
	}
	if n < 0 || n > maxText {
		return nil, fmt.Errorf("%w: text of %d bytes", ErrFormat, n)
	}
	return v.take(int(n))
}

func (v *values) take(n int) ([]byte, error) {
	if n > len(v.b) {
		return nil, errShort
	}
	out := v.b[:n]
	v.b = v.b[n:]
	return out, nil
}

// blockCount reads the count of an array block; a negative one is followed by the block's size, which is of no use here.
func (v *values) blockCount(n *int64) (err error) {
	if *n, err = v.long(); err != nil || *n >= 0 {
		return err
	}
	if *n = -*n; *n < 0 {
		return fmt.Errorf("%w: array of %d", ErrFormat, *n)
	}
	_, err = v.long()
	return err
}

// optional reads a union of null and text. present is false for null.
func (v *values) optional() (text string, present bool, err error) {
	branch, err := v.long()
	switch {
	case err != nil:
		return "", false, err
	case branch == 0:
		return "", false, nil
	case branch != 1:
		return "", false, fmt.Errorf("%w: branch %d of a nullable text", ErrFormat, branch)
	}
	b, err := v.bytes()
	return string(b), true, err
}

func (v *values) entry(e *DeletedKey) error {
	var present bool
	var err error
	if e.Key, present, err = v.optional(); err != nil {
		return err
	}
	if !present {
		return fmt.Errorf("%w: delete without a key", ErrFormat)
	}
	if e.Partition, _, err = v.optional(); err != nil {
		return err
	}
	e.Ordering, err = v.ordering(false)
	return err
}

// ordering reads the union of wrapper records. Inside an array the last branch is a local date, not another array.
func (v *values) ordering(inArray bool) (Ordering, error) {
	branch, err := v.long()
	if err != nil {
		return Ordering{}, err
	}
	if branch < 0 || branch > int64(OrderingArray) {
		return Ordering{}, fmt.Errorf("%w: ordering value of unknown type %d", ErrUnsupported, branch)
	}
	o := Ordering{Kind: OrderingKind(branch)}
	switch o.Kind {
	case OrderingNone:
	case OrderingBool:
		var b []byte
		if b, err = v.take(1); err == nil && b[0] > 1 {
			err = fmt.Errorf("%w: boolean %d", ErrFormat, b[0])
		} else if err == nil {
			o.Int = int64(b[0])
		}
	case OrderingInt, OrderingDate:
		if o.Int, err = v.long(); err == nil && o.Int != int64(int32(o.Int)) {
			err = fmt.Errorf("%w: %d is no int", ErrFormat, o.Int)
		}
	case OrderingLong, OrderingTimeMicros, OrderingTimestampMicros:
		o.Int, err = v.long()
	case OrderingFloat:
		var b []byte
		if b, err = v.take(4); err == nil {
			o.Float = float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
		}
	case OrderingDouble:
		var b []byte
		if b, err = v.take(8); err == nil {
			o.Float = math.Float64frombits(binary.LittleEndian.Uint64(b))
		}
	case OrderingBytes, OrderingString:
		var b []byte
		b, err = v.bytes()
		o.Text = string(b)
	case OrderingDecimal:
		var b []byte
		if b, err = v.bytes(); err == nil {
			if len(b) < 1 || len(b) > 16 {
				return o, fmt.Errorf("%w: decimal of %d bytes", ErrFormat, len(b))
			}
			o.Decimal = schema.BigEndianDecimal(b)
		}
	case OrderingArray:
		if inArray {
			o.Kind = OrderingDate
			o.Int, err = v.long()
			break
		}
		o.Items, err = v.items()
	}
	return o, err
}

// maxOrderings bounds the ordering fields of a table.
const maxOrderings = 1 << 10

// items reads null or an array of ordering values.
func (v *values) items() ([]Ordering, error) {
	branch, err := v.long()
	if err != nil || branch == 0 {
		return nil, err
	}
	if branch != 1 {
		return nil, fmt.Errorf("%w: branch %d of a nullable array", ErrFormat, branch)
	}
	var out []Ordering
	for {
		var n int64
		if err := v.blockCount(&n); err != nil || n == 0 {
			return out, err
		}
		if n > int64(maxOrderings-len(out)) {
			return nil, fmt.Errorf("%w: %d ordering values", ErrFormat, n)
		}
		for ; n > 0; n-- {
			o, err := v.ordering(true)
			if err != nil {
				return nil, err
			}
			out = append(out, o)
		}
	}
}
