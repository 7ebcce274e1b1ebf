package logfile

import (
	"encoding/binary"
	"fmt"
	"math"
)

// AppendBlock appends a whole block to b: magic, sizes, headers in the order of their ordinals, content, an empty footer and
// the trailing length. A reader takes the pieces of several calls one after the other as one file.
func AppendBlock(b []byte, t Type, h Header, content []byte) ([]byte, error) {
	if len(h.Unknown) > 0 || t == Corrupt || t < Command || t > CDCData {
		return nil, fmt.Errorf("%w: %s block with header keys %d can't be written", ErrUnsupported, t, h.Unknown)
	}
	start := len(b)
	b = append(b, magic...)
	b = binary.BigEndian.AppendUint64(b, 0) // the size, below
	b = binary.BigEndian.AppendUint32(b, 1)
	b = binary.BigEndian.AppendUint32(b, uint32(t))
	count := len(b)
	b = binary.BigEndian.AppendUint32(b, 0)
	entries := uint32(0)
	for key, text := range h.fields() {
		if *text == "" {
			continue
		}
		entries++
		b = binary.BigEndian.AppendUint32(b, uint32(key))
		b = binary.BigEndian.AppendUint32(b, uint32(len(*text)))
		b = append(b, *text...)
	}
	binary.BigEndian.PutUint32(b[count:], entries)
	b = binary.BigEndian.AppendUint64(b, uint64(len(content)))
	b = append(b, content...)
	b = binary.BigEndian.AppendUint32(b, 0)
	trailing := len(b) - start
	if trailing > math.MaxInt32-8 {
		return nil, fmt.Errorf("%w: a block of %d bytes is more than readers take", ErrUnsupported, trailing)
	}
	b = binary.BigEndian.AppendUint64(b, uint64(trailing))
	binary.BigEndian.PutUint64(b[start+len(magic):], uint64(len(b)-start-len(magic)-8))
	return b, nil
}

// AppendAvroContent appends the content of an AVRO_DATA or CDC_DATA block: records encoded in the header's schema.
func AppendAvroContent(b []byte, records [][]byte) []byte {
	b = binary.BigEndian.AppendUint32(b, 3)
	b = binary.BigEndian.AppendUint32(b, uint32(len(records)))
	for _, r := range records {
		b = binary.BigEndian.AppendUint32(b, uint32(len(r)))
		b = append(b, r...)
	}
	return b
}

// AppendDeleteContent appends the content of a delete block, version 3. A delete without ordering value is written as Java
// does, with Int 0.
func AppendDeleteContent(b []byte, deletes []DeletedKey) []byte {
	b = binary.BigEndian.AppendUint32(b, 3)
	at := len(b)
	b = binary.BigEndian.AppendUint32(b, 0)
	if len(deletes) > 0 {
		b = appendLong(b, int64(len(deletes)))
		for _, d := range deletes {
			b = appendText(append(b, 2), d.Key)
			b = appendText(append(b, 2), d.Partition)
			o := d.Ordering
			if o.Kind == OrderingNone {
				o = Ordering{Kind: OrderingInt}
			}
			b = o.append(b)
		}
	}
	b = append(b, 0)
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	return b
}

func (o Ordering) append(b []byte) []byte {
	b = appendLong(b, int64(o.Kind))
	switch o.Kind {
	case OrderingBool:
		return append(b, byte(o.Int&1))
	case OrderingInt, OrderingLong, OrderingDate, OrderingTimeMicros, OrderingTimestampMicros:
		return appendLong(b, o.Int)
	case OrderingFloat:
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(o.Float)))
	case OrderingDouble:
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(o.Float))
	case OrderingBytes, OrderingString:
		return appendText(b, o.Text)
	case OrderingDecimal:
		return appendText(b, string(twosComplement(o.Decimal.HighBits(), o.Decimal.LowBits())))
	case OrderingArray:
		if b = append(b, 2); len(o.Items) > 0 {
			b = appendLong(b, int64(len(o.Items)))
			for _, item := range o.Items {
				b = item.append(b)
			}
		}
		return append(b, 0)
	}
	return b
}

// twosComplement gives the shortest big-endian form, as Java's BigInteger writes it.
func twosComplement(high int64, low uint64) []byte {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], uint64(high))
	binary.BigEndian.PutUint64(b[8:], low)
	at := 0
	for at < 15 && (b[at] == 0 && b[at+1] < 0x80 || b[at] == 0xff && b[at+1] >= 0x80) {
		at++
	}
	return b[at:]
}

func appendLong(b []byte, v int64) []byte {
	return binary.AppendUvarint(b, uint64(v)<<1^uint64(v>>63))
}

func appendText(b []byte, s string) []byte {
	return append(appendLong(b, int64(len(s))), s...)
}
