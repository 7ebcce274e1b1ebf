package keygen

import (
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// state is the memory of one call of Keys, reused by later calls.
type state struct {
	work work
	row  []byte
	// keyWidth is the mean length of the last batch's keys, a guess for the next.
	keyWidth int
	columns  []*column
	at       int
	raw      interner        // values of a text column already seen
	rawPath  []int32         // their partition
	times    map[int64]int32 // buckets of a time column, and their partition
	paths    interner
}

func newState(*Keygen) *state { return &state{times: map[int64]int32{}} }

// read makes a state the record of its current row.
func (s *state) read(i int, d *Datum) { s.columns[i].read(s.at, d) }

// maxMemo bounds what a state remembers of one batch.
const maxMemo = 1 << 16

// Keys makes the record key (utf8) and the partition path (dictionary<int32, utf8>) of every row. The caller releases both.
// The first row that has no key ends it with an [*Error] that carries the row's number.
func (k *Keygen) Keys(batch arrow.RecordBatch) (keys, partitions arrow.Array, err error) {
	return k.KeysWith(memory.DefaultAllocator, batch)
}

// KeysWith is Keys with an allocator of the caller's.
func (k *Keygen) KeysWith(mem memory.Allocator, batch arrow.RecordBatch) (keys, partitions arrow.Array, err error) {
	s := k.states.Get().(*state)
	defer k.states.Put(s)
	defer s.forget()
	if err := k.bindAll(s, batch); err != nil {
		return nil, nil, err
	}
	rows := int(batch.NumRows())
	if keys, err = k.keyColumn(mem, s, rows); err != nil {
		return nil, nil, err
	}
	if partitions, err = k.partitionColumn(mem, s, rows); err != nil {
		keys.Release()
		return nil, nil, err
	}
	return keys, partitions, nil
}

// forget drops what belongs to the batch.
func (s *state) forget() {
	clear(s.columns)
	s.columns = s.columns[:0]
	s.work.datum = Datum{}
}

func (k *Keygen) bindAll(s *state, batch arrow.RecordBatch) error {
	s.columns = s.columns[:0]
	if k.keyPath != k.path && !k.config.release.since(1, 1, 0) && slices.ContainsFunc(batch.Schema().Fields(), func(f arrow.Field) bool { return hasLocal(f.Type) }) {
		return &Error{Class: "HoodieSchemaException", Cause: "IncompatibleSchemaException", Stage: StageKey, Row: -1, Message: "Failed to convert struct type to avro schema",
			CauseMessage: "Unexpected type TimestampNTZType.", Hint: "releases before 1.1 can't have local timestamps here"}
	}
	add := func(field string, stage Stage) error {
		c, err := bind(batch, field, k.config.Schema)
		if err != nil {
			return &Error{Class: classRefused, Stage: stage, Row: -1, Field: field, Message: err.Error(), Hint: "choose another field, or cast it"}
		}
		if k.guard && len(k.targets)+len(k.keys) > 0 && (c.kind == Absent || c.kind == ParentScalar) {
			return k.notThere(field, stage, batch.Schema())
		}
		s.columns = append(s.columns, c)
		return nil
	}
	for _, f := range k.keys {
		if err := add(f, StageKey); err != nil {
			return err
		}
	}
	for _, t := range k.targets {
		if err := add(t.field, StagePartition); err != nil {
			return err
		}
	}
	return nil
}

// hasLocal reports whether a type holds local timestamps.
func hasLocal(dt arrow.DataType) bool {
	switch t := dt.(type) {
	case *arrow.TimestampType:
		return t.TimeZone == ""
	case arrow.NestedType:
		return slices.ContainsFunc(t.Fields(), func(f arrow.Field) bool { return hasLocal(f.Type) })
	}
	return false
}

// notThere refuses a misspelled field, which the reference takes for null.
func (k *Keygen) notThere(field string, stage Stage, sc *arrow.Schema) *Error {
	key := KeyRecordFields
	if stage == StagePartition {
		key = KeyPartitionFields
	}
	names := ""
	for i, f := range sc.Fields() {
		if i == 12 {
			names += ", …"
			break
		}
		if i > 0 {
			names += ", "
		}
		names += f.Name
	}
	return &Error{Class: classRefused, Stage: stage, Row: -1, Field: field, Source: k.config.source(key),
		Message: "field " + field + " of " + key + " is not in the records", Hint: "the records have " + names}
}

// keyColumn makes the column of record keys.
func (k *Keygen) keyColumn(mem memory.Allocator, s *state, rows int) (arrow.Array, error) {
	if k.form == formSingle && k.keyFail == nil {
		if c := s.columns[0]; c.text != nil && !c.nulls && len(c.parents) == 0 && allFilled(c.text) {
			c.text.Retain() // the column is the keys
			return c.text, nil
		}
	}
	b := newTextBuilder(mem, rows, rows*max(16, s.keyWidth))
	var err *Error
	for s.at = 0; s.at < rows; s.at++ {
		if s.row, err = k.appendKey(s.row[:0], s, &s.work); err != nil {
			b.release()
			return nil, inRow(err, s.at)
		}
		if !b.append(s.row) {
			b.release()
			return nil, tooLong(s.at)
		}
	}
	if rows > 0 {
		s.keyWidth = b.used/rows + 1
	}
	return b.finish(), nil
}

// allFilled reports whether no text is empty.
func allFilled(a *array.String) bool {
	offsets := a.ValueOffsets()
	for i := 1; i < len(offsets); i++ {
		if offsets[i] == offsets[i-1] {
			return false
		}
	}
	return true
}

func inRow(err *Error, row int) *Error {
	copied := *err
	copied.Row = row
	return &copied
}

func tooLong(row int) *Error {
	return &Error{Class: classRefused, Stage: StageKey, Row: row, Message: "the keys of this batch take more than 2 GB", Hint: "use smaller batches"}
}

// partitionColumn makes the column of partition paths.
func (k *Keygen) partitionColumn(mem memory.Allocator, s *state, rows int) (arrow.Array, error) {
	indexes := memory.NewResizableBuffer(mem)
	indexes.Resize(rows * arrow.Int32SizeBytes)
	out := arrow.Int32Traits.CastFromBytes(indexes.Bytes())
	s.paths.reset()
	if err := k.fillPartitions(s, out); err != nil {
		indexes.Release()
		return nil, err
	}
	values := newTextBuilder(mem, s.paths.len(), len(s.paths.data))
	for i := range s.paths.len() {
		values.append(s.paths.at(int32(i)))
	}
	dict := values.finish()
	data := array.NewDataWithDictionary(dictionaryType, rows, []*memory.Buffer{nil, indexes}, 0, 0, dict.Data().(*array.Data))
	a := array.NewDictionaryData(data)
	data.Release()
	dict.Release()
	indexes.Release()
	return a, nil
}

var dictionaryType = &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}

func (k *Keygen) fillPartitions(s *state, out []int32) error {
	if len(k.targets) == 0 && k.partFail == nil {
		if len(out) > 0 {
			s.paths.intern(nil)
		}
		clear(out)
		return nil
	}
	if len(k.targets) == 1 && k.partFail == nil && k.sql == nil {
		c := s.columns[len(k.keys)]
		switch {
		case k.targets[0].time && c.i64 != nil && len(c.parents) == 0:
			return k.fillTimes(s, c, out)
		case !k.targets[0].time && c.text != nil && len(c.parents) == 0:
			return k.fillTexts(s, c, out)
		}
	}
	for s.at = 0; s.at < len(out); s.at++ {
		index, err := k.pathIndex(s)
		if err != nil {
			return err
		}
		out[s.at] = index
	}
	return nil
}

// pathIndex makes the path of the current row.
func (k *Keygen) pathIndex(s *state) (int32, error) {
	var err *Error
	if s.row, err = k.appendPartition(s.row[:0], s, &s.work); err != nil {
		return 0, inRow(err, s.at)
	}
	return s.paths.intern(s.row), nil
}

// fillTexts makes the path of every distinct text once.
func (k *Keygen) fillTexts(s *state, c *column, out []int32) error {
	s.raw.reset()
	s.rawPath = s.rawPath[:0]
	last, index := "", int32(-1)
	for row := range out {
		s.at = row
		if c.nulls && c.leaf.IsNull(row) {
			i, err := k.pathIndex(s)
			if err != nil {
				return err
			}
			out[row] = i
			continue
		}
		v := c.text.Value(row)
		if index < 0 || v != last {
			last = v
			if s.raw.len() >= maxMemo {
				s.raw.reset()
				s.rawPath = s.rawPath[:0]
			}
			n := s.raw.intern(unsafe.Slice(unsafe.StringData(v), len(v)))
			if int(n) == len(s.rawPath) {
				i, err := k.pathIndex(s)
				if err != nil {
					return err
				}
				s.rawPath = append(s.rawPath, i)
			}
			index = s.rawPath[n]
		}
		out[row] = index
	}
	return nil
}

// fillTimes makes the path of every distinct unit of time once.
func (k *Keygen) fillTimes(s *state, c *column, out []int32) error {
	clear(s.times)
	last, index := int64(math.MinInt64), int32(-1)
	d := &s.work.datum
	for row := range out {
		s.at = row
		c.read(row, d)
		bucket, ok := int64(0), false
		if !d.missing() {
			bucket, ok = k.times.bucketOf(d, &s.work.time)
		}
		if ok {
			if index >= 0 && bucket == last {
				out[row] = index
				continue
			}
			if i, seen := s.times[bucket]; seen {
				last, index = bucket, i
				out[row] = i
				continue
			}
		}
		i, err := k.pathIndex(s)
		if err != nil {
			return err
		}
		out[row] = i
		if ok {
			if len(s.times) >= maxMemo {
				clear(s.times)
			}
			s.times[bucket] = i
			last, index = bucket, i
		}
	}
	return nil
}

// Key makes the key and the partition path of one row.
func (k *Keygen) Key(batch arrow.RecordBatch, row int) (key, partition string, err error) {
	if row < 0 || row >= int(batch.NumRows()) {
		return "", "", fmt.Errorf("key generation: row %d of a batch of %d", row, batch.NumRows())
	}
	s := k.states.Get().(*state)
	defer k.states.Put(s)
	defer s.forget()
	if err := k.bindAll(s, batch); err != nil {
		return "", "", err
	}
	s.at = row
	return k.one(s, &s.work, row)
}

func (k *Keygen) one(r record, w *work, row int) (key, partition string, err error) {
	text, e := k.appendKey(nil, r, w)
	if e != nil {
		return "", "", inRow(e, row)
	}
	path, e := k.appendPartition(nil, r, w)
	if e != nil {
		return "", "", inRow(e, row)
	}
	return string(text), string(path), nil
}

// Fields looks up the value of a field by its configured name, dots included. Give Absent where a record has no such field.
type Fields func(name string) Datum

// One makes the key and the partition path of a record that is no batch.
func (k *Keygen) One(fields Fields) (key, partition string, err error) {
	r := &looseRecord{k: k, fields: fields}
	return k.one(r, &work{}, 0)
}

type looseRecord struct {
	k      *Keygen
	fields Fields
}

func (r *looseRecord) read(i int, d *Datum) {
	if i < len(r.k.keys) {
		*d = r.fields(r.k.keys[i])
		return
	}
	*d = r.fields(r.k.targets[i-len(r.k.keys)].field)
}

// textBuilder makes a utf8 column.
type textBuilder struct {
	offsets, data *memory.Buffer
	ends          []int32
	used, rows    int
}

func newTextBuilder(mem memory.Allocator, rows, bytes int) *textBuilder {
	b := &textBuilder{offsets: memory.NewResizableBuffer(mem), data: memory.NewResizableBuffer(mem), rows: rows}
	b.offsets.Resize((rows + 1) * arrow.Int32SizeBytes)
	b.ends = arrow.Int32Traits.CastFromBytes(b.offsets.Bytes())[:1]
	b.ends[0] = 0
	b.data.Resize(min(bytes, math.MaxInt32))
	return b
}

// append adds one text; false when the column is full.
func (b *textBuilder) append(text []byte) bool {
	end := b.used + len(text)
	if end > math.MaxInt32 {
		return false
	}
	if end > b.data.Len() {
		b.data.Resize(max(end, min(2*b.data.Len(), math.MaxInt32), 1024))
	}
	copy(b.data.Bytes()[b.used:], text)
	b.used = end
	b.ends = append(b.ends, int32(end))
	return true
}

func (b *textBuilder) release() {
	b.offsets.Release()
	b.data.Release()
}

func (b *textBuilder) finish() arrow.Array {
	b.data.Resize(b.used)
	data := array.NewData(arrow.BinaryTypes.String, b.rows, []*memory.Buffer{nil, b.offsets, b.data}, nil, 0, 0)
	defer data.Release()
	b.release()
	return array.NewStringData(data)
}

// interner numbers distinct texts in the order of their arrival. It keeps its memory over a reset.
type interner struct {
	data  []byte
	ends  []int32
	slots []int32 // number + 1
	seed  maphash.Seed
}

func (t *interner) reset() {
	if t.slots == nil {
		t.seed = maphash.MakeSeed()
		t.slots = make([]int32, 64)
	}
	t.data, t.ends = t.data[:0], append(t.ends[:0], 0)
	clear(t.slots)
}

func (t *interner) len() int { return len(t.ends) - 1 }

func (t *interner) at(i int32) []byte { return t.data[t.ends[i]:t.ends[i+1]] }

func (t *interner) intern(text []byte) int32 {
	mask := uint64(len(t.slots) - 1)
	slot := maphash.Bytes(t.seed, text) & mask
	for ; t.slots[slot] != 0; slot = (slot + 1) & mask {
		if n := t.slots[slot] - 1; bytesAsString(t.at(n)) == bytesAsString(text) {
			return n
		}
	}
	n := int32(t.len())
	t.data = append(t.data, text...)
	t.ends = append(t.ends, int32(len(t.data)))
	t.slots[slot] = n + 1
	if 2*t.len() > len(t.slots) {
		t.grow()
	}
	return n
}

func (t *interner) grow() {
	t.slots = make([]int32, 4*len(t.slots))
	mask := uint64(len(t.slots) - 1)
	for n := range int32(t.len()) {
		slot := maphash.Bytes(t.seed, t.at(n)) & mask
		for t.slots[slot] != 0 {
			slot = (slot + 1) & mask
		}
		t.slots[slot] = n + 1
	}
}
