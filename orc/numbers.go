package orc

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// decimals sees a buffer as decimals.
func decimals(b *memory.Buffer) []decimal128.Num {
	return arrow.Decimal128Traits.CastFromBytes(b.Bytes())
}

// decode reads the values and brings them to the column's scale: old writers left each value the scale that it came with.
func (c *decimalColumn) decode(out []decimal128.Num, set int) error {
	out = out[:set]
	if c.short != nil {
		for len(out) > 0 {
			if c.short.pos == c.short.n {
				if err := c.short.fill(); err != nil {
					return err
				}
			}
			k := min(len(out), c.short.n-c.short.pos)
			for i, v := range c.short.run[c.short.pos : c.short.pos+k] {
				out[i] = decimal128.FromI64(v)
			}
			out, c.short.pos = out[k:], c.short.pos+k
		}
		return nil
	}
	for i := range out {
		hi, lo, err := c.value()
		if err != nil {
			return err
		}
		out[i] = decimal128.New(hi, lo)
	}
	return c.rescale(out)
}

// value reads one unscaled value.
func (c *decimalColumn) value() (hi int64, lo uint64, err error) {
	in := c.values
	// Nine bytes at hand are enough for 63 bits.
	if b := in.buf[in.pos:]; len(b) >= 10 {
		if u, n := binary.Uvarint(b[:9]); n > 0 {
			in.pos += n
			v := unzigzag(u)
			return v >> 63, uint64(v), nil
		}
	}
	h, l, err := in.uvarint128()
	if err != nil {
		return 0, 0, err
	}
	negative := -(l & 1)
	return int64(h>>1 ^ negative), (l>>1 | h<<63) ^ negative, nil
}

func (c *decimalColumn) rescale(out []decimal128.Num) error {
	scale := int64(c.node.scale)
	d := c.scales
	for len(out) > 0 {
		if d.pos == d.n {
			if err := d.fill(); err != nil {
				return err
			}
		}
		k := min(len(out), d.n-d.pos)
		for i, s := range d.run[d.pos : d.pos+k] {
			if s == scale {
				continue
			}
			v, err := rescale(out[i], scale-s)
			if err != nil {
				return d.in.damaged("a decimal of scale %d in a column of scale %d: %v", s, scale, err)
			}
			out[i] = v
		}
		out, d.pos = out[k:], d.pos+k
	}
	return nil
}

// rescale multiplies v by ten to the power up; where up is negative it divides, rounding half away from zero as Hive does.
func rescale(v decimal128.Num, up int64) (decimal128.Num, error) {
	if up > maxPrecision || up < -maxPrecision {
		return v, fmt.Errorf("%d digits apart", up)
	}
	if up < 0 {
		return v.ReduceScaleBy(int32(-up), true), nil
	}
	out := v.IncreaseScaleBy(int32(up))
	if !v.FitsInPrecision(int32(maxPrecision-up)) && v != (decimal128.Num{}) {
		return v, fmt.Errorf("the value has more than %d digits", maxPrecision)
	}
	return out, nil
}

// timestampColumn is both kinds of timestamp: seconds since 2015 and nanoseconds.
type timestampColumn struct {
	base
	seconds *intDecoder
	nanos   *intDecoder
	rule    timestampRule
}

// timestampRule is how the stored seconds of one stripe become values.
type timestampRule struct {
	writer *zone // of the wall clock; UTC for instants
	hybrid bool  // days before 1582 are of the Julian calendar
	// instant is set where the value is a moment and the file has wall clocks: the zone to read the clock in.
	instant *zone
	base    int64
	nanos   bool // the unit is nanoseconds, not microseconds
}

func (c *timestampColumn) read(n int, where *bitmap) (*array.Data, error) {
	v, set, err := c.validity(n, where)
	if err != nil {
		return nil, err
	}
	buf, err := c.buffer(n * 8)
	if err == nil {
		if err = c.decode(arrow.Int64Traits.CastFromBytes(buf.Bytes())[:set]); err != nil {
			buf.Release()
		}
	}
	if err != nil {
		v.release()
		return nil, err
	}
	expand(arrow.Int64Traits.CastFromBytes(buf.Bytes()), v)
	return c.data(n, v, set, buf), nil
}

func (c *timestampColumn) decode(out []int64) error {
	if err := c.seconds.read(out); err != nil {
		return err
	}
	d := c.nanos
	for len(out) > 0 {
		if d.pos == d.n {
			if err := d.fill(); err != nil {
				return err
			}
		}
		k := min(len(out), d.n-d.pos)
		for i, packed := range d.run[d.pos : d.pos+k] {
			ns, ok := unpackNanos(packed)
			if !ok {
				return d.in.damaged("%d nanoseconds", packed>>3)
			}
			v, ok := c.rule.value(out[i], ns)
			if !ok {
				return c.seconds.in.fail(fmt.Errorf("%w: a timestamp %d seconds from 1970 does not fit 64 bits of the unit; read it without Nanoseconds",
					ErrUnsupported, out[i]+c.rule.base))
			}
			out[i] = v
		}
		out, d.pos = out[k:], d.pos+k
	}
	return nil
}

var pow10 = [...]int64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9}

// unpackNanos undoes the packing of nanoseconds: the three low bits say how many zeros, less one, were cut off the end. They
// are negative in what Arrow's C++ writes for moments before 1970.
func unpackNanos(packed int64) (int64, bool) {
	zeros, ns := packed&7, packed>>3
	if ns >= 1e9 || ns <= -1e9 {
		return 0, false
	}
	if zeros != 0 {
		ns *= pow10[zeros+1]
	}
	return ns, ns < 1e9 && ns > -1e9
}

// value turns stored seconds and nanoseconds into a count of the unit since 1970; false where 64 bits cannot hold it.
func (r *timestampRule) value(s, ns int64) (int64, bool) {
	if s > math.MaxInt64/2 || s < math.MinInt64/2 {
		return 0, false
	}
	s += r.base
	// Java's writers divide negative milliseconds towards zero, so a moment before 1970 is stored one second late where its
	// fraction is a millisecond or more. Readers undo that, on the moment in UTC.
	switch {
	case s < 0 && ns > 999_999:
		s--
	case ns < 0:
		s--
		ns += 1e9
	}
	moment, wall := s, s+r.writer.at(s)
	s = wall
	if r.hybrid {
		s = rebaseSeconds(s)
	}
	if r.instant != nil {
		switch {
		case s == wall && r.instant.loc == r.writer.loc && r.instant.at(moment) == wall-moment:
			s = moment // where the clock reads the same twice, this tells which one it was
		default:
			s = r.instant.utc(s)
		}
	}
	per, part := int64(1e6), ns/1000
	if r.nanos {
		per, part = 1e9, ns
	}
	if s < 0 { // both parts of one sign, so that the first does not overflow where the sum does not
		s, part = s+1, part-per
	}
	hi, lo := bits.Mul64(uint64(abs(s)), uint64(per))
	if hi != 0 || lo > math.MaxInt64 {
		return 0, false
	}
	whole := s * per
	return whole + part, (whole+part < whole) == (part < 0)
}

func abs(v int64) int64 {
	if v < 0 {
		return -v
	}
	return v
}

func (c *timestampColumn) skip(n int) error {
	n, err := c.skipPresent(n)
	if err != nil {
		return err
	}
	if err := c.seconds.skip(n); err != nil {
		return err
	}
	return c.nanos.skip(n)
}

func (c *timestampColumn) seek(p *positions) error {
	if err := c.seekPresent(p); err != nil {
		return err
	}
	if err := p.ints(c.seconds); err != nil {
		return err
	}
	return p.ints(c.nanos)
}
