// Package logfile reads and writes Hudi log files: the changes that wait in a merge-on-read table to be merged over a base
// file (table format 6).
//
// [Blocks] walks over the frames of one file without reading their contents. [Scan] walks over the log files of a slice and
// decides which blocks count: it applies rollbacks, drops blocks of failed or too new instants and of repeated attempts, and
// puts log-compacted blocks in the place of their sources. What it gives, oldest first, are [Ref] values, whose rows
// ([Ref.Records]) and deletes ([Ref.Deletes]) are streamed.
package logfile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/sluicelake/sluice/storage"
)

// ErrFormat is wrapped by every error about bytes that are no log file, or a damaged one.
var ErrFormat = errors.New("invalid log file")

// ErrUnsupported is wrapped by every error about a block that is sound but of a kind that can't be read.
var ErrUnsupported = errors.New("unsupported log block")

// Type is a block type, by its number in the file.
type Type int32

// The block types. Corrupt never stands in a file.
const (
	Command     Type = 0
	Delete      Type = 1
	Corrupt     Type = 2
	AvroData    Type = 3
	HFileData   Type = 4
	ParquetData Type = 5
	CDCData     Type = 6
)

func (t Type) String() string {
	names := [...]string{"COMMAND", "DELETE", "CORRUPT", "AVRO_DATA", "HFILE_DATA", "PARQUET_DATA", "CDC_DATA"}
	if t >= 0 && int(t) < len(names) {
		return names[t]
	}
	return fmt.Sprintf("UNKNOWN_%d", int32(t))
}

// MarshalText is the name in JSON.
func (t Type) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// Header of a block. Texts that a block does not have are empty.
type Header struct {
	InstantTime    string `json:"instantTime,omitempty"`
	TargetInstant  string `json:"targetInstantTime,omitempty"`                    // of a rollback
	Schema         string `json:"schema,omitempty"`                               // Avro JSON, with meta fields
	Command        string `json:"commandBlockType,omitempty"`                     // "0": rollback
	CompactedTimes string `json:"compactedBlockTimes,omitempty"`                  // instants whose blocks this one replaces, comma list
	Positions      string `json:"recordPositions,omitempty"`                      // see Ref.Positions
	BlockID        string `json:"blockIdentifier,omitempty"`                      // "<attempt>,<sequence>"
	Partial        string `json:"isPartial,omitempty"`                            // "true"
	PositionsBase  string `json:"baseFileInstantTimeOfRecordPositions,omitempty"` // instant of the base file that Positions count in
	Unknown        []int  `json:"unknownKeys,omitempty"`                          // ordinals of keys that this version does not know
}

// fields in the order of their ordinals in the file.
func (h *Header) fields() []*string {
	return []*string{&h.InstantTime, &h.TargetInstant, &h.Schema, &h.Command, &h.CompactedTimes, &h.Positions, &h.BlockID, &h.Partial, &h.PositionsBase}
}

// IsPartial: the records hold only some of the columns.
func (h *Header) IsPartial() bool { return strings.EqualFold(h.Partial, "true") }

// Compacted lists the instants whose blocks this one replaces.
func (h *Header) Compacted() []string {
	var out []string
	for t := range strings.SplitSeq(h.CompactedTimes, ",") {
		if t = strings.TrimSpace(t); t != "" {
			out = append(out, t)
		}
	}
	return out
}

// Block is the frame of one block. All offsets and lengths are bytes.
type Block struct {
	Type          Type   `json:"type"`
	FormatVersion int32  `json:"formatVersion"`
	Header        Header `json:"header"`
	Offset        int64  `json:"offset"` // of the magic
	ContentOffset int64  `json:"contentOffset"`
	ContentLength int64  `json:"contentLength"`
	End           int64  `json:"end"` // offset of what follows
	FooterEntries int    `json:"footerEntries,omitempty"`
	// Reason says what is wrong with a corrupt block.
	Reason string `json:"reason,omitempty"`
	// Condemned is the block that a corrupt one would be, had no rubbish followed it: its own lengths agree.
	Condemned *Block `json:"condemned,omitempty"`
}

// String is one line for people.
func (b Block) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%8d  %-12s %10d bytes", b.Offset, b.Type, b.End-b.Offset)
	add := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&s, "  %s %s", name, value)
		}
	}
	add("instant", b.Header.InstantTime)
	add("target", b.Header.TargetInstant)
	add("replaces", b.Header.CompactedTimes)
	add("attempt", b.Header.BlockID)
	add("positions in", b.Header.PositionsBase)
	if b.Header.IsPartial() {
		s.WriteString("  partial")
	}
	add("damaged:", b.Reason)
	return s.String()
}

const (
	magic = "#HUDI#"
	// smallFile is read whole by the first request.
	smallFile = 4 << 20
	// frameRead is read around each block's start in larger files: trailing length, magic and header of the next block.
	frameRead = 256 << 10
	// minBlock is the least a block's size field can say: format version and trailing length.
	minBlock = 12
	// maxHeader bounds one header text; record positions are the longest, some bytes per record.
	maxHeader = 64 << 20
)

// Blocks walks over the frames of a log file from its start. A damaged block is given with type Corrupt and the walk goes on at
// the next magic, as table format 6.3 has it; a file that does not begin with a block, or a block whose parts do not fill it,
// ends the walk with an error. One request per block in large files, one in all for small ones.
func Blocks(ctx context.Context, obj storage.Object) iter.Seq2[Block, error] {
	return func(yield func(Block, error) bool) {
		w := walker{obj: obj, size: obj.Size()}
		for pos := int64(0); w.size-pos >= int64(len(magic)); {
			b, err := w.block(ctx, pos)
			if err != nil {
				yield(Block{}, fmt.Errorf("log block at offset %d: %w", pos, err))
				return
			}
			if !yield(b, nil) {
				return
			}
			pos = b.End
		}
	}
}

// walker reads frames. peek holds the bytes around the end of the block that is looked at, where the next one begins.
type walker struct {
	obj        storage.Object
	size       int64
	main, peek window
}

// block reads the frame at pos, where at least a magic fits.
func (w *walker) block(ctx context.Context, pos int64) (Block, error) {
	head, err := w.bytes(ctx, &w.main, pos, len(magic))
	if err != nil {
		return Block{}, err
	}
	if string(head) != magic {
		return Block{}, fmt.Errorf("%w: no block begins there (magic %q)", ErrFormat, head)
	}
	body := pos + int64(len(magic))
	if w.size-body < 8 {
		return w.corrupt(ctx, pos, "the file ends inside the block's size", nil)
	}
	raw, err := w.bytes(ctx, &w.main, body, 8)
	if err != nil {
		return Block{}, err
	}
	// Java uses the lower half only: rubbish in the upper half goes unnoticed.
	size := int64(int32(binary.BigEndian.Uint64(raw)))
	body += 8
	end := body + size
	switch {
	case size < minBlock:
		return w.corrupt(ctx, pos, fmt.Sprintf("a block of size %d", size), nil)
	case end > w.size:
		return w.corrupt(ctx, pos, fmt.Sprintf("the block's size %d runs past the end of the file", size), nil)
	}
	after := int(min(int64(len(magic)), w.size-end))
	footer := min(size, 64) // and trailing length
	tail, err := w.bytes(ctx, &w.peek, end-footer, int(footer)+after)
	if err != nil {
		return Block{}, err
	}
	tail = tail[footer-8:]
	if trailing := int64(binary.BigEndian.Uint64(tail)); trailing != size+int64(len(magic)) {
		return w.corrupt(ctx, pos, fmt.Sprintf("size %d in front, trailing length %d behind", size, trailing), nil)
	}
	rubbish := after == len(magic) && string(tail[8:]) != magic
	b := Block{Offset: pos, End: end}
	if err := w.parse(ctx, &b, body, end-8); err != nil {
		if rubbish {
			return w.corrupt(ctx, pos, "neither a block nor the end of the file follows", nil)
		}
		return Block{}, err
	}
	if rubbish {
		return w.corrupt(ctx, pos, "neither a block nor the end of the file follows", &b)
	}
	w.main, w.peek = w.peek, w.main
	return b, nil
}

// parse reads version, type, header, content length and footer between body and end.
func (w *walker) parse(ctx context.Context, b *Block, body, end int64) error {
	p := parser{w: w, ctx: ctx, pos: body, end: end}
	b.FormatVersion = p.int32()
	if p.err == nil && b.FormatVersion != 1 {
		b.Type, b.ContentOffset, b.ContentLength = -1, p.pos, end-p.pos
		return nil
	}
	if b.Type = Type(p.int32()); p.err == nil && b.Type == Corrupt {
		return fmt.Errorf("%w: type %d never stands in a file", ErrFormat, Corrupt)
	}
	p.header(&b.Header)
	b.ContentLength = int64(int32(p.int64()))
	b.ContentOffset = p.pos
	if p.err == nil && (b.ContentLength < 0 || b.ContentLength > end-p.pos) {
		return fmt.Errorf("%w: content of %d bytes where %d are left", ErrFormat, b.ContentLength, end-p.pos)
	}
	p.pos += b.ContentLength
	var footer Header
	b.FooterEntries = p.header(&footer)
	if p.err == nil && p.pos != end {
		return fmt.Errorf("%w: %d bytes between the footer and the block's end", ErrFormat, end-p.pos)
	}
	return p.err
}

// corrupt gives a damaged block that reaches to the next magic or the end of the file.
func (w *walker) corrupt(ctx context.Context, pos int64, reason string, condemned *Block) (Block, error) {
	from := pos + int64(len(magic))
	// A magic that was cut before its last byte and one behind it make "#HUDI#HUDI#": the second begins in the first.
	next, err := w.find(ctx, from-1)
	if err != nil {
		return Block{}, err
	}
	return Block{Type: Corrupt, Offset: pos, ContentOffset: from, ContentLength: max(0, next-from), End: next, Reason: reason, Condemned: condemned}, nil
}

// find gives the offset of the first magic at or behind from, or the file's end.
func (w *walker) find(ctx context.Context, from int64) (int64, error) {
	for w.size-from >= int64(len(magic)) {
		n := int(min(frameRead, w.size-from))
		b, err := w.bytes(ctx, &w.main, from, n)
		if err != nil {
			return 0, err
		}
		if at := strings.Index(string(b), magic); at >= 0 {
			return from + int64(at), nil
		}
		from += int64(n - len(magic) + 1)
	}
	return w.size, nil
}

// window is a part of the file that was read.
type window struct {
	off int64
	buf []byte
}

// bytes gives n bytes from off, valid until the next call for that window.
func (w *walker) bytes(ctx context.Context, win *window, off int64, n int) ([]byte, error) {
	for _, have := range []*window{win, &w.main, &w.peek} {
		if at := off - have.off; at >= 0 && at+int64(n) <= int64(len(have.buf)) {
			return have.buf[at : at+int64(n) : at+int64(n)], nil
		}
	}
	size := int64(max(n, frameRead))
	if w.size <= smallFile {
		off, size = 0, w.size
	}
	size = min(size, w.size-off)
	if int64(cap(win.buf)) < size {
		win.buf = make([]byte, size)
	}
	win.off, win.buf = off, win.buf[:size]
	if err := readFull(ctx, w.obj, win.buf, off); err != nil {
		win.buf = nil
		return nil, err
	}
	return w.bytes(ctx, win, off, n)
}

// readFull reads len(p) bytes at off or fails.
func readFull(ctx context.Context, obj storage.Object, p []byte, off int64) error {
	n, err := obj.ReadAt(ctx, p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%d bytes at offset %d: %w", len(p), off, err)
}

// parser reads fields between two offsets; the first failure stays.
type parser struct {
	ctx      context.Context
	w        *walker
	pos, end int64
	err      error
}

func (p *parser) take(n int64) []byte {
	if p.err == nil && (n < 0 || n > p.end-p.pos) {
		p.err = fmt.Errorf("%w: %d bytes at offset %d where the block has %d left", ErrFormat, n, p.pos, p.end-p.pos)
	}
	if p.err != nil {
		return nil
	}
	var b []byte
	if b, p.err = p.w.bytes(p.ctx, &p.w.main, p.pos, int(n)); p.err != nil {
		return nil
	}
	p.pos += n
	return b
}

func (p *parser) int32() int32 {
	if b := p.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (p *parser) int64() int64 {
	if b := p.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

// header reads entries of int32 ordinal, int32 length, text, and gives their number.
func (p *parser) header(h *Header) int {
	n := int64(p.int32())
	if p.err == nil && (n < 0 || n > (p.end-p.pos)/8) {
		p.err = fmt.Errorf("%w: %d header entries at offset %d where %d bytes are left", ErrFormat, n, p.pos, p.end-p.pos)
	}
	fields := h.fields()
	for i := int64(0); i < n && p.err == nil; i++ {
		key := p.int32()
		size := int64(p.int32())
		if p.err == nil && size > maxHeader {
			p.err = fmt.Errorf("%w: header text of %d bytes at offset %d", ErrFormat, size, p.pos)
		}
		text := string(p.take(size))
		if key >= 0 && int(key) < len(fields) {
			*fields[key] = text
		} else {
			h.Unknown = append(h.Unknown, int(key))
		}
	}
	return int(n)
}
