package logfile

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
)

// Positions gives the row numbers (from 0) in the base file of the block's records or deletes, which then stand in the order
// of their positions; nil when the header has none. They count in the base file of instant Header.PositionsBase alone, and
// only if there are as many as records (table format 6.5).
func (r Ref) Positions() (*roaring64.Bitmap, error) {
	if r.Header.Positions == "" {
		return nil, nil
	}
	b, err := ParsePositions(r.Header.Positions)
	if err != nil {
		return nil, r.wrap(err)
	}
	return b, nil
}

// ParsePositions reads the text of the RECORD_POSITIONS header: Base64 of a 64-bit Roaring bitmap in its portable form.
func ParsePositions(text string) (*roaring64.Bitmap, error) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("%w: record positions: %w", ErrFormat, err)
	}
	if len(raw) < 8 {
		return nil, fmt.Errorf("%w: record positions of %d bytes", ErrFormat, len(raw))
	}
	// Each 32-bit bitmap takes 12 bytes at least: its upper half, a cookie and a size.
	if n := binary.LittleEndian.Uint64(raw); n > uint64(len(raw)-8)/12 {
		return nil, fmt.Errorf("%w: record positions: %d bitmaps in %d bytes", ErrFormat, n, len(raw))
	}
	b := roaring64.New()
	in := bytes.NewReader(raw)
	if _, err := b.ReadFrom(in); err != nil {
		return nil, fmt.Errorf("%w: record positions: %w", ErrFormat, err)
	}
	if in.Len() > 0 {
		return nil, fmt.Errorf("%w: record positions: %d bytes too many", ErrFormat, in.Len())
	}
	if !b.IsEmpty() {
		if err := b.Validate(); err != nil {
			return nil, fmt.Errorf("%w: record positions: %w", ErrFormat, err)
		}
	}
	return b, nil
}

// FormatPositions is the header text of positions. It changes the form of b, not its values.
func FormatPositions(b *roaring64.Bitmap) (string, error) {
	b.RunOptimize()
	raw, err := b.ToBytes()
	if err != nil {
		return "", fmt.Errorf("record positions: %w", err)
	}
	return base64.StdEncoding.EncodeToString(raw), nil
}
