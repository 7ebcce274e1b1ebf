package orc

import (
	"bytes"
	"math"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// collector gathers the statistics of one column over a row group, a stripe or the file.
type collector struct {
	count   uint64
	hasNull bool

	seen     bool // a value gave bounds
	imin     int64
	imax     int64
	isum     int64
	overflow bool // isum is past 64 bits

	fmin, fmax, fsum float64
	nan              bool

	smin, smax []byte
	bytes      int64

	dmin, dmax, dsum decimal128.Num

	trues uint64
}

func (c *collector) integer(v int64) {
	if !c.seen {
		c.seen, c.imin, c.imax = true, v, v
	}
	c.imin, c.imax = min(c.imin, v), max(c.imax, v)
	sum := c.isum + v
	if (sum < c.isum) != (v < 0) {
		c.overflow = true
	}
	c.isum = sum
}

func (c *collector) bound(v int64) {
	if !c.seen {
		c.seen, c.imin, c.imax = true, v, v
	}
	c.imin, c.imax = min(c.imin, v), max(c.imax, v)
}

func (c *collector) float(v float64) {
	c.fsum += v
	if v != v {
		c.nan = true
		return
	}
	if !c.seen {
		c.seen, c.fmin, c.fmax = true, v, v
	}
	// Comparisons rather than min and max: they keep the first of 0 and -0, which are equal to readers.
	if v < c.fmin {
		c.fmin = v
	}
	if v > c.fmax {
		c.fmax = v
	}
}

func (c *collector) text(v []byte) {
	c.bytes += int64(len(v))
	if !c.seen {
		c.seen = true
		c.smin, c.smax = append(c.smin[:0], v...), append(c.smax[:0], v...)
		return
	}
	if bytes.Compare(v, c.smin) < 0 {
		c.smin = append(c.smin[:0], v...)
	} else if bytes.Compare(v, c.smax) > 0 {
		c.smax = append(c.smax[:0], v...)
	}
}

func (c *collector) decimal(v decimal128.Num) {
	if !c.seen {
		c.seen, c.dmin, c.dmax = true, v, v
	}
	if v.Less(c.dmin) {
		c.dmin = v
	}
	if v.Greater(c.dmax) {
		c.dmax = v
	}
	c.addDecimal(v)
}

func (c *collector) addDecimal(v decimal128.Num) {
	c.dsum = c.dsum.Add(v)
	if !c.overflow && !c.dsum.FitsInPrecision(maxPrecision) {
		c.overflow = true
	}
}

// merge adds what o gathered.
func (c *collector) merge(o *collector) {
	first := !c.seen
	c.count += o.count
	c.hasNull = c.hasNull || o.hasNull
	c.nan = c.nan || o.nan
	c.overflow = c.overflow || o.overflow
	c.trues += o.trues
	c.bytes += o.bytes
	c.fsum += o.fsum
	if sum := c.isum + o.isum; (sum < c.isum) != (o.isum < 0) {
		c.overflow = true
	} else {
		c.isum = sum
	}
	if !c.overflow {
		c.addDecimal(o.dsum)
	}
	if !o.seen {
		return
	}
	c.seen = true
	if first {
		c.imin, c.imax, c.fmin, c.fmax, c.dmin, c.dmax = o.imin, o.imax, o.fmin, o.fmax, o.dmin, o.dmax
		c.smin, c.smax = append(c.smin[:0], o.smin...), append(c.smax[:0], o.smax...)
		return
	}
	c.imin, c.imax = min(c.imin, o.imin), max(c.imax, o.imax)
	if o.fmin < c.fmin {
		c.fmin = o.fmin
	}
	if o.fmax > c.fmax {
		c.fmax = o.fmax
	}
	if o.dmin.Less(c.dmin) {
		c.dmin = o.dmin
	}
	if o.dmax.Greater(c.dmax) {
		c.dmax = o.dmax
	}
	if bytes.Compare(o.smin, c.smin) < 0 {
		c.smin = append(c.smin[:0], o.smin...)
	}
	if bytes.Compare(o.smax, c.smax) > 0 {
		c.smax = append(c.smax[:0], o.smax...)
	}
}

func (c *collector) reset() { *c = collector{smin: c.smin[:0], smax: c.smax[:0]} }

// maxBound is the longest text that statistics hold; longer ones would make the indexes larger than the data.
const maxBound = 1024

// marshal makes the ColumnStatistics message.
func (c *collector) marshal(n *node) []byte {
	var m, s message
	m.uint(1, c.count)
	kind := 0
	switch n.kind {
	case kindByte, kindShort, kindInt, kindLong:
		if kind = 2; c.seen {
			s.sint(1, c.imin)
			s.sint(2, c.imax)
			if !c.overflow {
				s.sint(3, c.isum)
			}
		}
	case kindFloat, kindDouble:
		kind = 3
		c.marshalFloat(&s)
	case kindString:
		kind = 4
		if c.seen && len(c.smin) <= maxBound && len(c.smax) <= maxBound && utf8.Valid(c.smin) && utf8.Valid(c.smax) {
			s.bytes(1, c.smin)
			s.bytes(2, c.smax)
		}
		s.sint(3, c.bytes)
	case kindBoolean:
		kind = 5
		s.packed(1, []uint64{c.trues})
	case kindDecimal:
		if kind = 6; c.seen {
			s.text(1, c.dmin.ToString(n.scale))
			s.text(2, c.dmax.ToString(n.scale))
			if !c.overflow {
				s.text(3, c.dsum.ToString(n.scale))
			}
		}
	case kindDate:
		if kind = 7; c.seen {
			s.sint(1, c.imin)
			s.sint(2, c.imax)
		}
	case kindBinary:
		kind = 8
		s.sint(1, c.bytes)
	case kindTimestamp, kindTimestampInstant:
		if kind = 9; c.seen {
			s.sint(3, floorDiv(c.imin, 1000))
			s.sint(4, floorDiv(c.imax, 1000))
		}
	}
	if kind != 0 && c.count > 0 {
		m.bytes(kind, s)
	}
	has := uint64(0)
	if c.hasNull {
		has = 1
	}
	m.uint(10, has)
	return m
}

// marshalFloat writes bounds and sum. A sum that is no number tells readers that some value is none, and that the bounds do
// not hold for it.
func (c *collector) marshalFloat(s *message) {
	sum := c.fsum
	if c.nan || sum != sum {
		sum = math.NaN()
	}
	if !c.seen {
		c.fmin, c.fmax = sum, sum
	}
	if c.count > 0 {
		s.double(1, c.fmin)
		s.double(2, c.fmax)
		s.double(3, sum)
	}
}
