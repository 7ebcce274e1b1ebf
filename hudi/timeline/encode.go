package timeline

import (
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/sluicelake/sluice/hudi/schema"
)

// Encode gives the body of a timeline file: what its readers above return goes in, as a pointer. Commits of layout 1 are JSON
// (see [EncodeCommitJSON]); everything else is an Avro object container file of one record. base is the table's base path as
// Java writes it into rollback, cleaner and clustering plans ("s3://lake/orders"); bodies with bare file names do not use it.
//
// The bytes depend on the arguments alone.
func Encode(record any, layout int, base string) ([]byte, error) {
	switch r := record.(type) {
	case *CommitMetadata:
		if layout == 1 {
			return EncodeCommitJSON(r), nil
		}
		if r.PartitionToReplaceFileIDs != nil {
			return encodeContainer("HoodieReplaceCommitMetadata", r, layout)
		}
		return encodeContainer("HoodieCommitMetadata", r, layout)
	case *CompactionPlan:
		return encodeContainer("HoodieCompactionPlan", r, layout)
	case *ReplacePlan:
		return encodeWithBase("HoodieRequestedReplaceMetadata", r, layout, base)
	case *CleanerPlan:
		return encodeWithBase("HoodieCleanerPlan", r, layout, base)
	case *CleanMetadata:
		return encodeContainer("HoodieCleanMetadata", r, layout)
	case *RollbackPlan:
		return encodeWithBase("HoodieRollbackPlan", r, layout, base)
	case *RollbackMetadata:
		return encodeWithBase("HoodieRollbackMetadata", r, layout, base)
	case *RestorePlan:
		return encodeContainer("HoodieRestorePlan", r, layout)
	case *RestoreMetadata:
		return encodeWithBase("HoodieRestoreMetadata", r, layout, base)
	case *SavepointMetadata:
		return encodeContainer("HoodieSavepointMetadata", r, layout)
	case *IndexPlan:
		return encodeContainer("HoodieIndexPlan", r, layout)
	case *IndexCommit:
		return encodeContainer("HoodieIndexCommitMetadata", r, layout)
	}
	return nil, fmt.Errorf("no timeline file has a body of type %T", record)
}

// encodeWithBase encodes a copy whose file names are whole paths.
func encodeWithBase[P interface {
	*T
	paths
}, T any](name string, record P, layout int, base string) ([]byte, error) {
	plain, err := encodeContainer(name, record, layout)
	if err != nil || base == "" {
		return plain, err
	}
	whole := P(new(T)) // a deep copy, by way of the bytes
	if err := decodeContainer(plain, whole, nil); err != nil {
		return nil, err
	}
	w := &pathWalk{base: strings.TrimRight(base, "/")}
	whole.walk(w)
	if w.err != nil {
		return nil, w.err
	}
	return encodeContainer(name, whole, layout)
}

func encodeContainer(name string, record any, layout int) ([]byte, error) {
	text, t, err := avroSchema(name, layout)
	if err != nil {
		return nil, err
	}
	var body avroWriter
	if err := body.value(t, reflect.ValueOf(record).Elem(), false); err != nil {
		return nil, fmt.Errorf("encode %s: %w", name, err)
	}
	var w avroWriter
	w.buf = append(w.buf, avroMagic...)
	w.long(1)
	w.text("avro.schema")
	w.text(text)
	w.long(0)
	sync := md5.Sum(append([]byte(text), body.buf...)) // any 16 bytes serve; these make equal bodies equal files
	w.buf = append(w.buf, sync[:]...)
	w.long(1)
	w.long(int64(len(body.buf)))
	w.buf = append(w.buf, body.buf...)
	return append(w.buf, sync[:]...), nil
}

type avroWriter struct{ buf []byte }

func (w *avroWriter) long(n int64)  { w.buf = binary.AppendUvarint(w.buf, uint64(n<<1)^uint64(n>>63)) }
func (w *avroWriter) text(s string) { w.long(int64(len(s))); w.buf = append(w.buf, s...) }

// nullable records decide by themselves which fields are null.
type nullable interface{ isNull(field string) bool }

// value writes v as type t. null asks for the null branch of a union whatever v holds.
func (w *avroWriter) value(t *schema.Type, v reflect.Value, null bool) error {
	if t.Kind == schema.Union {
		inner, ok := t.Optional()
		if !ok {
			return fmt.Errorf("a union of %d", len(t.Branches))
		}
		nullBranch := slices.IndexFunc(t.Branches, func(b *schema.Type) bool { return b.Kind == schema.Null })
		if null || !v.IsValid() || (v.Kind() == reflect.Pointer || v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.IsNil() {
			w.long(int64(nullBranch))
			return nil
		}
		w.long(int64(1 - nullBranch))
		t = inner
	}
	if v.IsValid() && v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch t.Kind {
	case schema.Record:
		return w.record(t, v)
	case schema.Array:
		if n := v.Len(); n > 0 {
			w.long(int64(n))
			for i := range n {
				if err := w.value(t.Items, v.Index(i), false); err != nil {
					return err
				}
			}
		}
		w.long(0)
	case schema.Map:
		keys := make([]string, 0, v.Len())
		for _, k := range v.MapKeys() {
			keys = append(keys, k.String())
		}
		if len(keys) > 0 {
			w.long(int64(len(keys)))
			for _, k := range javaMapOrder(keys) {
				w.text(k)
				if err := w.value(t.Items, v.MapIndex(reflect.ValueOf(k)), false); err != nil {
					return err
				}
			}
		}
		w.long(0)
	case schema.String:
		w.text(v.String())
	case schema.Int, schema.Long:
		w.long(v.Int())
	case schema.Boolean:
		b := byte(0)
		if v.Bool() {
			b = 1
		}
		w.buf = append(w.buf, b)
	case schema.Double:
		w.buf = binary.LittleEndian.AppendUint64(w.buf, math.Float64bits(v.Float()))
	default:
		return fmt.Errorf("no value of kind %s is written", t.Kind)
	}
	return nil
}

func (w *avroWriter) record(t *schema.Type, v reflect.Value) error {
	decide, _ := v.Interface().(nullable)
	for i := range t.Fields {
		f := &t.Fields[i]
		at := fieldByTag(v.Type(), f.Name)
		if at < 0 {
			if f.Type.Kind != schema.Union {
				return fmt.Errorf("field %s.%s has no value", t.Name, f.Name)
			}
			if err := w.value(f.Type, reflect.Value{}, true); err != nil {
				return fmt.Errorf("%s: %w", f.Name, err)
			}
			continue
		}
		field := v.Field(at)
		null := decide != nil && decide.isNull(f.Name) || f.Name == "version" && field.IsZero() ||
			v.Type().Field(at).Tag.Get("null") == "empty" && field.IsZero()
		if err := w.value(f.Type, field, null); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return nil
}

// javaMapOrder sorts keys in the order in which a java.util.HashMap that grew by putting them gives them back. Readers do not
// care; it makes our files comparable with Java's. Keys that share a bucket, whose order Java takes from their insertion, are
// sorted.
func javaMapOrder(keys []string) []string {
	out := slices.Clone(keys)
	slices.SortFunc(out, func(a, b string) int {
		if d := javaBucket(a, len(keys)) - javaBucket(b, len(keys)); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return out
}

// javaBucket is the bucket of a text in a HashMap of n entries.
func javaBucket(key string, n int) int {
	capacity := 16
	for n > capacity*3/4 {
		capacity *= 2
	}
	var h int32
	for _, u := range utf16.Encode([]rune(key)) {
		h = 31*h + int32(u)
	}
	return int(uint32(h)^uint32(h)>>16) & (capacity - 1)
}
