package keygen

import (
	"math"
	"math/big"
	"math/bits"
	"strconv"
)

// AppendFloat writes a double (bits 64) or float (32) as toString does in Java up to 18, which Spark 3 runs on: 4.9E-324,
// 2.0E-3 and now and then a digit more than the shortest. schema.AppendJavaFloat writes it as later ones do.
func AppendFloat(dst []byte, v float64, bits int) []byte { return appendFloat(dst, v, bits, true) }

// appendFloat is Java's Double.toString or Float.toString (key generation 5.2). Runtimes up to Java 18, under which nearly
// all tables were written, don't always give the shortest digits; old asks for theirs.
func appendFloat(dst []byte, v float64, width int, old bool) []byte {
	switch {
	case math.IsNaN(v):
		return append(dst, "NaN"...)
	case math.IsInf(v, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(v, -1):
		return append(dst, "-Infinity"...)
	}
	if math.Signbit(v) {
		dst = append(dst, '-')
		v = -v
	}
	if v == 0 {
		return append(dst, "0.0"...)
	}
	var room [32]byte
	var digits []byte
	var point int // place of the decimal point, counted from the first digit
	if old {
		digits, point = oldDigits(room[:0], v, width)
	} else {
		digits, point = shortestDigits(room[:0], v, width)
	}
	switch {
	case point > 0 && point < 8:
		if len(digits) <= point {
			dst = append(dst, digits...)
			for range point - len(digits) {
				dst = append(dst, '0')
			}
			return append(dst, ".0"...)
		}
		dst = append(dst, digits[:point]...)
		dst = append(dst, '.')
		return append(dst, digits[point:]...)
	case point <= 0 && point > -3:
		dst = append(dst, "0."...)
		for range -point {
			dst = append(dst, '0')
		}
		return append(dst, digits...)
	}
	dst = append(dst, digits[0], '.')
	if len(digits) == 1 {
		dst = append(dst, '0')
	}
	dst = append(dst, digits[1:]...)
	dst = append(dst, 'E')
	return strconv.AppendInt(dst, int64(point-1), 10)
}

// shortestDigits gives the digits of Java 19 and later: the shortest that read back to v, but never one digit where two
// come closer to it (4.9E-324, not 5E-324).
func shortestDigits(dst []byte, v float64, width int) ([]byte, int) {
	text := strconv.AppendFloat(dst, v, 'e', -1, width)
	if text[1] == 'e' {
		if two := strconv.AppendFloat(nil, v, 'e', 1, width); readsBack(two, v, width) {
			text = two
		}
	}
	e := 0
	for e < len(text) && text[e] != 'e' {
		e++
	}
	exponent, _ := strconv.Atoi(string(text[e+1:]))
	digits := text[:1]
	if e > 2 {
		digits = append(digits, text[2:e]...)
	}
	for len(digits) > 1 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	return digits, exponent + 1
}

func readsBack(text []byte, v float64, width int) bool {
	got, err := strconv.ParseFloat(string(text), width)
	return err == nil && got == v
}

// oldDigits gives the digits of Java 18 and before: generation of digits by long division until the rest is within half a
// unit in the last place, with that algorithm's own view of the rest and of powers of two. Decimal numbers that fit into
// 63 bits take a shorter way that rounds by its own rule.
func oldDigits(dst []byte, v float64, width int) ([]byte, int) {
	const fractionBits = 52
	var mantissa uint64
	var exponent, significant int
	if width == 32 {
		b := math.Float32bits(float32(v))
		mantissa, exponent = uint64(b&(1<<23-1)), int(b>>23)
		significant = 24
		if exponent == 0 {
			lead := bits.LeadingZeros32(uint32(mantissa))
			significant = 32 - lead
			mantissa <<= lead - 8
			exponent = 1 - (lead - 8)
		} else {
			mantissa |= 1 << 23
		}
		exponent -= 127
		mantissa <<= fractionBits - 23
	} else {
		b := math.Float64bits(v)
		mantissa, exponent = b&(1<<52-1), int(b>>52)
		significant = 53
		if exponent == 0 {
			lead := bits.LeadingZeros64(mantissa)
			significant = 64 - lead
			mantissa <<= lead - 11
			exponent = 1 - (lead - 11)
		} else {
			mantissa |= 1 << 52
		}
		exponent -= 1023
	}
	zeros := bits.TrailingZeros64(mantissa)
	kept := fractionBits + 1 - zeros // bits that count
	below := max(0, kept-exponent-1) // of these, right of the binary point
	if exponent <= 62 && exponent >= -21 && below == 0 {
		return oldWhole(dst, mantissa, exponent, significant)
	}

	// v = b/s * 10^decimal with powers of two and five kept apart; m is half a unit in the last place.
	decimal := int(math.Floor((math.Float64frombits(1023<<52|mantissa&(1<<52-1))-1.5)*0.289529654 + 0.176091259 + float64(exponent)*0.301029995663981))
	b5 := max(0, -decimal)
	b2 := b5 + below + exponent
	s5 := max(0, decimal)
	s2 := s5 + below
	m5, m2 := b5, b2-significant
	mantissa >>= zeros
	b2 -= kept - 1
	common := min(b2, s2)
	b2, s2, m2 = b2-common, s2-common, m2-common
	if kept == 1 {
		m2-- // below a power of two the neighbour is half as far
	}
	if m2 < 0 {
		b2, s2, m2 = b2-m2, s2-m2, 0
	}
	bBits := kept + b2 + bitsOf5(b5)
	sBits := s2 + 1 + bitsOf5(s5+1)
	switch {
	case bBits < 32 && sBits < 32:
		return oldSmall(dst, int32(mantissa*pow5(b5))<<b2, int32(pow5(s5))<<s2, int32(pow5(m5))<<m2, decimal)
	case bBits < 64 && sBits < 64:
		return oldSmall(dst, int64(mantissa*pow5(b5))<<b2, int64(pow5(s5))<<s2, int64(pow5(m5))<<m2, decimal)
	}
	return oldBig(dst, bigTerm(mantissa, b5, b2), bigTerm(1, s5, s2), bigTerm(1, m5, m2), decimal)
}

// bitsOf5 is how many bits the old algorithm reckons for 5^n.
func bitsOf5(n int) int {
	if n == 0 {
		return 0
	}
	if n < 27 {
		return bits.Len64(pow5(n))
	}
	return n * 3
}

func pow5(n int) uint64 {
	p := uint64(1)
	for range n {
		p *= 5
	}
	return p
}

func bigTerm(v uint64, five, two int) *big.Int {
	t := new(big.Int).Exp(big.NewInt(5), big.NewInt(int64(five)), nil)
	t.Mul(t, new(big.Int).SetUint64(v))
	return t.Lsh(t, uint(two))
}

// oldWhole prints whole numbers below 2^63; digits beyond the precision of the type are rounded away first.
func oldWhole(dst []byte, mantissa uint64, exponent, significant int) ([]byte, int) {
	drop := 0
	if exponent > significant {
		if p := exponent - significant - 1; p > 1 {
			drop = int(float64(p) * math.Log10(2))
		}
	}
	if exponent >= 52 {
		mantissa <<= exponent - 52
	} else {
		mantissa >>= 52 - exponent
	}
	point := drop
	if drop != 0 {
		p := uint64(1)
		for range drop {
			p *= 10
		}
		rest := mantissa % p
		mantissa /= p
		if rest >= p/2 {
			mantissa++
		}
	}
	dst = strconv.AppendUint(dst, mantissa, 10)
	point += len(dst)
	for len(dst) > 1 && dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
	}
	return dst, point
}

// oldSmall divides in 32 or 64 bits. That sums may overflow is part of the old result.
func oldSmall[T int32 | int64](dst []byte, b, s, m T, decimal int) ([]byte, int) {
	tens := s * 10
	q := b / s
	b = b % s * 10
	m *= 10
	low, high := b < m, b+m > tens
	if q == 0 && !high {
		decimal--
	} else {
		dst = append(dst, byte('0'+q))
	}
	if decimal < -3 || decimal >= 8 {
		low, high = false, false // the form with an exponent has two digits at least
	}
	for !low && !high {
		q = b / s
		b = b % s * 10
		m *= 10
		if m > 0 {
			low, high = b < m, b+m > tens
		} else {
			low, high = true, true
		}
		dst = append(dst, byte('0'+q))
	}
	return roundOld(dst, decimal, low, high, int64(b<<1-tens))
}

// oldBig divides in as many bits as it takes; here a tie with the upper neighbour counts as reached.
func oldBig(dst []byte, b, s, m *big.Int, decimal int) ([]byte, int) {
	ten := big.NewInt(10)
	tens := new(big.Int).Mul(s, ten)
	q, sum := new(big.Int), new(big.Int)
	step := func() (low, high bool) {
		q.QuoRem(b, s, b)
		b.Mul(b, ten)
		m.Mul(m, ten)
		return b.Cmp(m) < 0, tens.Cmp(sum.Add(b, m)) <= 0
	}
	low, high := step()
	if q.Sign() == 0 && !high {
		decimal--
	} else {
		dst = append(dst, byte('0'+q.Uint64()))
	}
	if decimal < -3 || decimal >= 8 {
		low, high = false, false
	}
	for !low && !high {
		low, high = step()
		dst = append(dst, byte('0'+q.Uint64()))
	}
	half := int64(0)
	if low && high {
		half = int64(b.Lsh(b, 1).Cmp(tens))
	}
	return roundOld(dst, decimal, low, high, half)
}

func roundOld(digits []byte, decimal int, low, high bool, half int64) ([]byte, int) {
	up := high
	if high && low {
		up = half > 0 || half == 0 && digits[len(digits)-1]&1 != 0
	}
	if !up {
		return digits, decimal + 1
	}
	i := len(digits) - 1
	for i >= 0 && digits[i] == '9' {
		digits[i] = '0'
		i--
	}
	if i < 0 {
		digits[0] = '1' // 999… became 1000…
		return digits, decimal + 2
	}
	digits[i]++
	return digits, decimal + 1
}
