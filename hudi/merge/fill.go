package merge

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/sluicelake/sluice/hudi/schema"
)

// fillKind says when a column's value of the stronger version gives way to that of the weaker one.
type fillKind uint8

const (
	fillNever     fillKind = iota
	fillNull               // null: PartialUpdateAvroPayload
	fillEqual              // equal to the schema default, by Java's equals: OverwriteNonDefaultsWithLatestAvroPayload
	fillIdentical          // the same object as the schema default, by Java's ==: partial update mode IGNORE_DEFAULTS
	fillMarker             // text or bytes equal to a marker: FILL_UNAVAILABLE, PostgresDebeziumAvroPayload
)

// filler reports whether the value at a row gives way. Nil: never.
type filler func(arr arrow.Array, row int) bool

func isNull(arr arrow.Array, row int) bool { return arr.IsNull(row) }

func (b *binder) fillers() []filler {
	s := b.o.Arrow
	out := make([]filler, s.NumFields())
	for i := range out {
		switch b.fill {
		case fillNull:
			out[i] = isNull
		case fillMarker:
			out[i] = markerFiller(s.Field(i).Type, b.marker)
		default:
			out[i] = b.defaultFiller(s.Field(i))
		}
	}
	return out
}

// markerFiller compares text and bytes columns with the marker; decimals and other types never equal it.
func markerFiller(dt arrow.DataType, marker string) filler {
	if marker == "" {
		return nil
	}
	switch dt.ID() {
	case arrow.STRING, arrow.LARGE_STRING, arrow.BINARY, arrow.LARGE_BINARY:
		want := []byte(marker)
		return func(arr arrow.Array, row int) bool {
			t, err := textOf(arr)
			if err != nil {
				return false
			}
			v, ok := t.at(row)
			return ok && bytes.Equal(v, want)
		}
	}
	return nil
}

// defaultFiller compares with the column's default in the Avro schema. A column without a default has a null one.
//
// IGNORE_DEFAULTS compares references in Java (table format 6.6: weaker than the payload it replaces). Null and booleans are
// the same object always, integers where the boxes are cached (-128 to 127), text and floating point never.
func (b *binder) defaultFiller(f arrow.Field) filler {
	var avro *schema.Field
	if b.o.Schema != nil {
		if avro, _ = b.o.Schema.Field(f.Name); avro == nil {
			return nil
		}
	}
	if avro == nil || avro.Default == nil || string(bytes.TrimSpace(avro.Default)) == "null" {
		return isNull
	}
	t := avro.Type
	union := t.Kind == schema.Union
	if union {
		if len(t.Branches) == 0 {
			return nil
		}
		t = t.Branches[0] // Avro: a default is of the first branch
	}
	identical := b.fill == fillIdentical
	switch t.Kind {
	case schema.Boolean:
		want := string(bytes.TrimSpace(avro.Default)) == "true"
		return func(arr arrow.Array, row int) bool {
			a, ok := arr.(*array.Boolean)
			return ok && a.IsValid(row) && a.Value(row) == want
		}
	case schema.Int, schema.Long:
		want, err := strconv.ParseInt(string(bytes.TrimSpace(avro.Default)), 10, 64)
		if err != nil || identical && (want < -128 || want > 127) {
			return nil
		}
		return func(arr arrow.Array, row int) bool {
			v, ok := rawInteger(arr, row)
			return ok && v == want
		}
	case schema.Float, schema.Double:
		var want float64
		if json.Unmarshal(avro.Default, &want) != nil || identical {
			return nil
		}
		return func(arr arrow.Array, row int) bool {
			if arr.IsNull(row) {
				return false
			}
			switch a := arr.(type) {
			case *array.Float64:
				return math.Float64bits(a.Value(row)) == math.Float64bits(want)
			case *array.Float32:
				return math.Float32bits(a.Value(row)) == math.Float32bits(float32(want))
			}
			return false
		}
	case schema.String:
		var want string
		if json.Unmarshal(avro.Default, &want) != nil || identical || union {
			return nil // inside a union Java compares an Avro text with a String: never equal
		}
		return func(arr arrow.Array, row int) bool {
			a, ok := arr.(*array.String)
			return ok && a.IsValid(row) && a.Value(row) == want
		}
	case schema.Array, schema.Map:
		if text := string(bytes.TrimSpace(avro.Default)); identical || text != "[]" && text != "{}" {
			return nil
		}
		return func(arr arrow.Array, row int) bool {
			a, ok := arr.(array.ListLike)
			if !ok || arr.IsNull(row) {
				return false
			}
			from, to := a.ValueOffsets(row)
			return from == to
		}
	}
	return nil
}

// rawInteger is the number that Avro stores for an int or long of any logical type.
func rawInteger(arr arrow.Array, row int) (int64, bool) {
	if arr.IsNull(row) {
		return 0, false
	}
	switch a := arr.(type) {
	case *array.Int32:
		return int64(a.Value(row)), true
	case *array.Int64:
		return a.Value(row), true
	case *array.Date32:
		return int64(a.Value(row)), true
	case *array.Timestamp:
		return int64(a.Value(row)), true
	case *array.Time32:
		return int64(a.Value(row)), true
	case *array.Time64:
		return int64(a.Value(row)), true
	}
	return 0, false
}
