package schema

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
)

// The meta columns, in file order: the first five columns of every base file and log record (table format 5.1).
const (
	CommitTime    = "_hoodie_commit_time"
	CommitSeqno   = "_hoodie_commit_seqno"
	RecordKey     = "_hoodie_record_key"
	PartitionPath = "_hoodie_partition_path"
	FileName      = "_hoodie_file_name"
	// Operation is the optional sixth one, written by changelog writers.
	Operation = "_hoodie_operation"
	// IsDeleted is an ordinary user column with a meaning for merging.
	IsDeleted = "_hoodie_is_deleted"
)

// MetaColumns are the five columns that every file has.
var MetaColumns = [...]string{CommitTime, CommitSeqno, RecordKey, PartitionPath, FileName}

// IsMeta reports whether name is one of the five meta columns.
func IsMeta(name string) bool {
	for _, m := range MetaColumns {
		if m == name {
			return true
		}
	}
	return false
}

// UTC is the zone of Arrow timestamps that stand for an instant; local timestamps have none.
const UTC = "UTC"

// Arrow gives the Arrow schema of a record. It fails on types that have no Arrow form (a recursive record).
//
// int→int32, long→int64, float→float32, double→float64, bytes→binary, string/enum/uuid→utf8, fixed→fixed_size_binary,
// decimal→decimal128 (decimal256 above 38 digits), date→date32, time-millis→time32[ms], time-micros→time64[us],
// timestamp-*→timestamp[unit, UTC], local-timestamp-*→timestamp[unit], array→list, map→map<utf8,…>, record→struct;
// null with one other type→nullable. A union of int and long is int64, of float and double float64, as Spark reads it; any
// other union is a struct with one nullable member per branch, member0, member1, ….
func (t *Type) Arrow() (*arrow.Schema, error) {
	if t.Kind != Record {
		return nil, fmt.Errorf("%w: the top of a table schema is a record, not %s", ErrSchema, t.Kind)
	}
	fields, err := t.arrowFields(0)
	if err != nil {
		return nil, err
	}
	return arrow.NewSchema(fields, nil), nil
}

func (t *Type) arrowFields(depth int) ([]arrow.Field, error) {
	fields := make([]arrow.Field, len(t.Fields))
	for i, f := range t.Fields {
		dt, nullable, err := f.Type.ArrowType(depth + 1)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", f.Name, err)
		}
		fields[i] = arrow.Field{Name: f.Name, Type: dt, Nullable: nullable}
	}
	return fields, nil
}

// ArrowType gives the Arrow type of one Avro type at the given nesting depth, and whether it can be null.
func (t *Type) ArrowType(depth int) (dt arrow.DataType, nullable bool, err error) {
	if depth > maxDepth {
		return nil, false, fmt.Errorf("%w: recursive, or nested deeper than %d levels", ErrSchema, maxDepth)
	}
	switch t.Kind {
	case Null:
		return arrow.Null, true, nil
	case Boolean:
		return arrow.FixedWidthTypes.Boolean, false, nil
	case Int:
		switch t.Logical {
		case Date:
			return arrow.FixedWidthTypes.Date32, false, nil
		case TimeMillis:
			return arrow.FixedWidthTypes.Time32ms, false, nil
		}
		return arrow.PrimitiveTypes.Int32, false, nil
	case Long:
		return longType(t.Logical), false, nil
	case Float:
		return arrow.PrimitiveTypes.Float32, false, nil
	case Double:
		return arrow.PrimitiveTypes.Float64, false, nil
	case String, Enum:
		return arrow.BinaryTypes.String, false, nil
	case Bytes, Fixed:
		return bytesType(t), false, nil
	case Array:
		it, null, err := t.Items.ArrowType(depth + 1)
		if err != nil {
			return nil, false, err
		}
		return arrow.ListOfField(arrow.Field{Name: "element", Type: it, Nullable: null}), false, nil
	case Map:
		it, null, err := t.Items.ArrowType(depth + 1)
		if err != nil {
			return nil, false, err
		}
		m := arrow.MapOf(arrow.BinaryTypes.String, it)
		m.SetItemNullable(null)
		return m, false, nil
	case Record:
		fields, err := t.arrowFields(depth)
		if err != nil {
			return nil, false, err
		}
		return arrow.StructOf(fields...), false, nil
	case Union:
		return t.unionType(depth)
	}
	return nil, false, fmt.Errorf("%w: kind %d", ErrSchema, t.Kind)
}

func longType(l Logical) arrow.DataType {
	switch l {
	case TimeMicros:
		return arrow.FixedWidthTypes.Time64us
	case TimestampMillis:
		return &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: UTC}
	case TimestampMicros:
		return &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: UTC}
	case TimestampNanos:
		return &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: UTC}
	case LocalTimestampMillis:
		return &arrow.TimestampType{Unit: arrow.Millisecond}
	case LocalTimestampMicros:
		return &arrow.TimestampType{Unit: arrow.Microsecond}
	case LocalTimestampNanos:
		return &arrow.TimestampType{Unit: arrow.Nanosecond}
	}
	return arrow.PrimitiveTypes.Int64
}

func bytesType(t *Type) arrow.DataType {
	switch {
	case t.Logical == Decimal && t.Precision <= 38:
		return &arrow.Decimal128Type{Precision: int32(t.Precision), Scale: int32(t.Scale)}
	case t.Logical == Decimal:
		return &arrow.Decimal256Type{Precision: int32(t.Precision), Scale: int32(t.Scale)}
	case t.Kind == Fixed && t.Logical == UUID:
		return arrow.BinaryTypes.String
	case t.Kind == Fixed:
		return &arrow.FixedSizeBinaryType{ByteWidth: t.Size}
	}
	return arrow.BinaryTypes.Binary
}

func (t *Type) unionType(depth int) (arrow.DataType, bool, error) {
	var others []*Type
	nullable := false
	for _, b := range t.Branches {
		if b.Kind == Null {
			nullable = true
		} else {
			others = append(others, b)
		}
	}
	switch len(others) {
	case 0:
		return arrow.Null, true, nil
	case 1:
		dt, _, err := others[0].ArrowType(depth + 1)
		return dt, nullable, err
	case 2:
		a, b := others[0], others[1]
		if a.Logical == NoLogical && b.Logical == NoLogical {
			switch {
			case a.Kind == Int && b.Kind == Long, a.Kind == Long && b.Kind == Int:
				return arrow.PrimitiveTypes.Int64, nullable, nil
			case a.Kind == Float && b.Kind == Double, a.Kind == Double && b.Kind == Float:
				return arrow.PrimitiveTypes.Float64, nullable, nil
			}
		}
	}
	fields := make([]arrow.Field, len(others))
	for i, b := range others {
		dt, _, err := b.ArrowType(depth + 1)
		if err != nil {
			return nil, false, err
		}
		fields[i] = arrow.Field{Name: fmt.Sprintf("member%d", i), Type: dt, Nullable: true}
	}
	return arrow.StructOf(fields...), nullable, nil
}
