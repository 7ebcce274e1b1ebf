package timeline

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"

	"github.com/sluicelake/sluice/hudi/schema"
)

// The bodies of timeline files are Avro object container files with one record and no compression (table format 2.3). This
// file decodes a record that any release wrote into one of our structs: fields are matched by name (the json tag), fields that
// we do not know are skipped, fields that the writer lacked keep their zero.
//
// Nothing here trusts a length: every count is held against the bytes that remain, and what decoding may allocate is bound
// by the size of the input.

// ErrCorrupt is wrapped by every error about bytes that can't be understood. The error names the byte offset.
var ErrCorrupt = errors.New("corrupt timeline data")

const (
	avroMagic = "Obj\x01"
	maxNested = 96 // levels of nesting in a value; the deepest real record has nine
	// memoryFactor bounds the bytes that a body may expand to, per byte of input. A write stat of 1.x takes at least 33 bytes
	// for about 400 in memory.
	memoryFactor = 64
	memoryFloor  = 1 << 20
)

// avroReader reads Avro binary. Offsets in errors count from base.
type avroReader struct {
	buf    []byte
	pos    int
	base   int64
	depth  int
	budget int
	fields map[recordKey][]int
}

// recordKey is a pair of a writer's record and a struct of ours.
type recordKey struct {
	record *schema.Type
	target reflect.Type
}

func newAvroReader(buf []byte, base int64) *avroReader {
	return &avroReader{buf: buf, base: base, budget: memoryFloor + memoryFactor*len(buf)}
}

func (r *avroReader) fail(format string, args ...any) error {
	return fmt.Errorf("%w at byte %d: %s", ErrCorrupt, r.base+int64(r.pos), fmt.Sprintf(format, args...))
}

func (r *avroReader) remaining() int { return len(r.buf) - r.pos }

func (r *avroReader) take(n int) ([]byte, error) {
	if n < 0 || n > r.remaining() {
		return nil, r.fail("%d bytes wanted, %d are left", n, r.remaining())
	}
	b := r.buf[r.pos : r.pos+n]
	r.pos += n
	return b, nil
}

func (r *avroReader) long() (int64, error) {
	var u uint64
	for i := range 10 {
		if r.remaining() == 0 {
			return 0, r.fail("cut off inside a number")
		}
		b := r.buf[r.pos]
		r.pos++
		u |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			return int64(u>>1) ^ -int64(u&1), nil
		}
	}
	return 0, r.fail("a number of more than ten bytes")
}

func (r *avroReader) bytes() ([]byte, error) {
	n, err := r.long()
	if err != nil {
		return nil, err
	}
	if n < 0 || n > int64(r.remaining()) {
		return nil, r.fail("a text of %d bytes, %d are left", n, r.remaining())
	}
	return r.take(int(n))
}

// block reads the count in front of a piece of an array or map; 0 ends it. An item takes at least one byte.
func (r *avroReader) block() (int, error) {
	n, err := r.long()
	if err != nil {
		return 0, err
	}
	if n < 0 {
		if n == math.MinInt64 {
			return 0, r.fail("a block of %d items", n)
		}
		n = -n
		if size, err := r.long(); err != nil {
			return 0, err
		} else if size < 0 || size > int64(r.remaining()) {
			return 0, r.fail("a block of %d bytes, %d are left", size, r.remaining())
		}
	}
	if n > int64(r.remaining()) {
		return 0, r.fail("a block of %d items, %d bytes are left", n, r.remaining())
	}
	return int(n), nil
}

// charge accounts for memory that a value takes.
func (r *avroReader) charge(n uintptr) error {
	if r.budget -= int(n) + 16; r.budget < 0 {
		return r.fail("the value takes more than %d times the size of the file", memoryFactor)
	}
	return nil
}

// into decodes a value of the writer's type t into v. An invalid v skips the value.
func (r *avroReader) into(t *schema.Type, v reflect.Value) error {
	if r.depth++; r.depth > maxNested {
		return r.fail("nested deeper than %d levels", maxNested)
	}
	defer func() { r.depth-- }()
	if t.Kind == schema.Union {
		return r.union(t, v)
	}
	if v.IsValid() && v.Kind() == reflect.Pointer && t.Kind != schema.Null {
		if err := r.charge(v.Type().Elem().Size()); err != nil {
			return err
		}
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	switch t.Kind {
	case schema.Null:
		return nil
	case schema.Record:
		return r.record(t, v)
	case schema.Array:
		return r.array(t, v)
	case schema.Map:
		return r.table(t, v)
	}
	return r.scalar(t, v)
}

func (r *avroReader) union(t *schema.Type, v reflect.Value) error {
	n, err := r.long()
	if err != nil {
		return err
	}
	if n < 0 || n >= int64(len(t.Branches)) {
		return r.fail("branch %d of a union of %d", n, len(t.Branches))
	}
	return r.into(t.Branches[n], v)
}

func (r *avroReader) record(t *schema.Type, v reflect.Value) error {
	if v.IsValid() && v.Kind() != reflect.Struct {
		return r.fail("a record %s where %s is expected", t.Name, v.Kind())
	}
	var index []int
	if v.IsValid() {
		index = r.fieldsOf(t, v.Type())
	}
	for i := range t.Fields {
		var field reflect.Value
		if index != nil && index[i] >= 0 {
			field = v.Field(index[i])
		}
		if err := r.into(t.Fields[i].Type, field); err != nil {
			return err
		}
	}
	return nil
}

// fieldsOf finds, for each field of the writer's record, ours of that name; -1 is none.
func (r *avroReader) fieldsOf(t *schema.Type, target reflect.Type) []int {
	key := recordKey{t, target}
	if index, ok := r.fields[key]; ok {
		return index
	}
	index := make([]int, len(t.Fields))
	for i := range t.Fields {
		index[i] = fieldByTag(target, t.Fields[i].Name)
	}
	if r.fields == nil {
		r.fields = map[recordKey][]int{}
	}
	r.fields[key] = index
	return index
}

// fieldByTag finds a struct's field by the name in its json tag, or -1.
func fieldByTag(t reflect.Type, name string) int {
	for i := range t.NumField() {
		if tag, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); tag == name {
			return i
		}
	}
	return -1
}

func (r *avroReader) array(t *schema.Type, v reflect.Value) error {
	if v.IsValid() {
		if v.Kind() != reflect.Slice {
			return r.fail("an array where %s is expected", v.Kind())
		}
		v.Set(reflect.MakeSlice(v.Type(), 0, 0)) // an empty array is not null
	}
	for {
		n, err := r.block()
		if n == 0 || err != nil {
			return err
		}
		for range n {
			var item reflect.Value
			if v.IsValid() {
				if err := r.charge(v.Type().Elem().Size()); err != nil {
					return err
				}
				v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
				item = v.Index(v.Len() - 1)
			}
			if err := r.item(t.Items, item); err != nil {
				return err
			}
		}
	}
}

// item refuses items without any byte, of which a few bytes could announce endless numbers.
func (r *avroReader) item(t *schema.Type, v reflect.Value) error {
	before := r.pos
	if err := r.into(t, v); err != nil {
		return err
	}
	if r.pos == before {
		return r.fail("an array of items without content")
	}
	return nil
}

func (r *avroReader) table(t *schema.Type, v reflect.Value) error {
	if v.IsValid() {
		if v.Kind() != reflect.Map {
			return r.fail("a map where %s is expected", v.Kind())
		}
		v.Set(reflect.MakeMap(v.Type()))
	}
	for {
		n, err := r.block()
		if n == 0 || err != nil {
			return err
		}
		for range n {
			key, err := r.bytes()
			if err != nil {
				return err
			}
			var item reflect.Value
			if v.IsValid() {
				if err := r.charge(v.Type().Elem().Size() + 32); err != nil {
					return err
				}
				item = reflect.New(v.Type().Elem()).Elem()
			}
			if err := r.into(t.Items, item); err != nil {
				return err
			}
			if v.IsValid() {
				v.SetMapIndex(reflect.ValueOf(string(key)), item)
			}
		}
	}
}

func (r *avroReader) scalar(t *schema.Type, v reflect.Value) error {
	mismatch := func() error { return r.fail("a value of type %s where %s is expected", t.Kind, v.Kind()) }
	switch t.Kind {
	case schema.Boolean:
		b, err := r.take(1)
		if err != nil || !v.IsValid() {
			return err
		}
		if v.Kind() != reflect.Bool {
			return mismatch()
		}
		v.SetBool(b[0] != 0)
	case schema.Int, schema.Long, schema.Enum:
		n, err := r.long()
		if err != nil || !v.IsValid() {
			return err
		}
		switch {
		case t.Kind == schema.Enum && v.Kind() == reflect.String && n >= 0 && n < int64(len(t.Symbols)):
			v.SetString(t.Symbols[n])
		case t.Kind != schema.Enum && v.CanInt() && !v.OverflowInt(n):
			v.SetInt(n)
		case t.Kind != schema.Enum && v.CanFloat():
			v.SetFloat(float64(n))
		default:
			return mismatch()
		}
	case schema.Float, schema.Double:
		return r.float(t, v, mismatch)
	case schema.String, schema.Bytes, schema.Fixed:
		return r.text(t, v, mismatch)
	}
	return nil
}

func (r *avroReader) float(t *schema.Type, v reflect.Value, mismatch func() error) error {
	size := 8
	if t.Kind == schema.Float {
		size = 4
	}
	b, err := r.take(size)
	if err != nil || !v.IsValid() {
		return err
	}
	if !v.CanFloat() {
		return mismatch()
	}
	var u uint64
	for i := size - 1; i >= 0; i-- {
		u = u<<8 | uint64(b[i])
	}
	if size == 4 {
		v.SetFloat(float64(math.Float32frombits(uint32(u))))
	} else {
		v.SetFloat(math.Float64frombits(u))
	}
	return nil
}

func (r *avroReader) text(t *schema.Type, v reflect.Value, mismatch func() error) (err error) {
	var b []byte
	if t.Kind == schema.Fixed {
		b, err = r.take(t.Size)
	} else {
		b, err = r.bytes()
	}
	if err != nil || !v.IsValid() {
		return err
	}
	switch {
	case v.Kind() == reflect.String:
		v.SetString(string(b))
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		v.SetBytes(bytes.Clone(b))
	default:
		return mismatch()
	}
	return nil
}

// openContainer checks an object container file of one record and gives the writer's schema and the record's bytes with
// their offset.
func openContainer(text []byte, schemas *schemaCache) (t *schema.Type, record []byte, offset int64, err error) {
	r := newAvroReader(text, 0)
	if magic, err := r.take(4); err != nil || string(magic) != avroMagic {
		r.pos = 0
		return nil, nil, 0, r.fail("no Avro object container file")
	}
	meta, err := r.containerMeta()
	if err != nil {
		return nil, nil, 0, err
	}
	if codec := meta["avro.codec"]; codec != "" && codec != "null" {
		return nil, nil, 0, r.fail("codec %q, only uncompressed files are known", codec)
	}
	if t, err = schemas.parse(meta["avro.schema"]); err != nil {
		return nil, nil, 0, r.fail("avro.schema in the header: %v", err)
	}
	sync, err := r.take(16)
	if err != nil {
		return nil, nil, 0, err
	}
	count, err := r.long()
	if err != nil {
		return nil, nil, 0, err
	}
	size, err := r.long()
	if err != nil {
		return nil, nil, 0, err
	}
	if count != 1 || size < 0 || size > int64(r.remaining()) {
		return nil, nil, 0, r.fail("%d records in %d bytes, %d are left; one record is expected", count, size, r.remaining())
	}
	offset = int64(r.pos)
	record, _ = r.take(int(size))
	if end, err := r.take(16); err != nil || !bytes.Equal(end, sync) {
		return nil, nil, 0, r.fail("the block does not end in the sync marker")
	}
	return t, record, offset, nil
}

func (r *avroReader) containerMeta() (map[string]string, error) {
	meta := map[string]string{}
	for {
		n, err := r.block()
		if n == 0 || err != nil {
			return meta, err
		}
		for range n {
			k, err := r.bytes()
			if err != nil {
				return nil, err
			}
			v, err := r.bytes()
			if err != nil {
				return nil, err
			}
			if strings.HasPrefix(string(k), "avro.") {
				meta[string(k)] = string(v)
			}
		}
	}
}

// decodeRecord decodes Avro binary of the writer's type t into the struct that into points to.
func decodeRecord(t *schema.Type, record []byte, offset int64, into any) error {
	if t.Kind != schema.Record {
		return fmt.Errorf("%w: the schema is a %s, a record is expected", ErrCorrupt, t.Kind)
	}
	r := newAvroReader(record, offset)
	if err := r.into(t, reflect.ValueOf(into).Elem()); err != nil {
		return err
	}
	if r.remaining() > 0 {
		return r.fail("%d bytes behind the record", r.remaining())
	}
	return nil
}

// decodeContainer decodes an object container file of one record.
func decodeContainer(text []byte, into any, schemas *schemaCache) error {
	t, record, offset, err := openContainer(text, schemas)
	if err != nil {
		return err
	}
	return decodeRecord(t, record, offset, into)
}

// schemaCache keeps parsed schemas by their text. The files of one timeline share a few, and parsing one takes longer than
// decoding a small body with it. A nil cache parses anew each time.
type schemaCache struct {
	mu     sync.Mutex
	byText map[string]*schema.Type
}

// maxSchemas is many more than one table's timeline has: one per action and release that wrote to it.
const maxSchemas = 128

func newSchemaCache() *schemaCache { return &schemaCache{byText: map[string]*schema.Type{}} }

func (c *schemaCache) parse(text string) (*schema.Type, error) {
	if c == nil {
		return schema.ParseString(text)
	}
	c.mu.Lock()
	t, ok := c.byText[text]
	c.mu.Unlock()
	if ok {
		return t, nil
	}
	t, err := schema.ParseString(text)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.byText) < maxSchemas {
		c.byText[text] = t
	}
	return t, nil
}
