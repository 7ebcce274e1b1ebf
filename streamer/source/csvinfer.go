package source

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/storage"
)

// csvType is a type that Spark gives to a column of texts (CSVInferSchema of Spark 3.4): a column starts without a type, each
// value widens it.
type csvType struct {
	kind   csvKind
	digits int // decimal
}

type csvKind uint8

const (
	csvNone csvKind = iota
	csvInt
	csvLong
	csvDecimal
	csvDouble
	csvDate
	csvTimestamp
	csvBoolean
	csvString
)

// widen is the type of a column of type t after one more value.
func (o *CSVOptions) widen(t csvType, text string) csvType {
	if t.kind == csvString {
		return t
	}
	return merge(t, o.typeOf(max(t.kind, csvInt), text))
}

// typeOf tries the types from one on.
func (o *CSVOptions) typeOf(from csvKind, text string) csvType {
	if from <= csvInt {
		if _, err := javaInt(text, 32); err == nil {
			return csvType{kind: csvInt}
		}
	}
	if from <= csvLong {
		if _, err := javaInt(text, 64); err == nil {
			return csvType{kind: csvLong}
		}
	}
	if from <= csvDecimal {
		if v, err := roundedDecimal(text, 0); err == nil && !strings.ContainsAny(text, ".eE") && digitsOf(v) <= 38 {
			return csvType{kind: csvDecimal, digits: digitsOf(v)}
		}
	}
	if from <= csvDouble {
		if _, err := o.float(text, 64); err == nil {
			return csvType{kind: csvDouble}
		}
	}
	if from <= csvDate {
		if o.isDate(text) {
			return csvType{kind: csvDate}
		}
	}
	if from <= csvTimestamp {
		if _, err := o.timestamp(text); err == nil {
			return csvType{kind: csvTimestamp}
		}
	}
	if _, err := yes(text); err == nil {
		return csvType{kind: csvBoolean}
	}
	return csvType{kind: csvString}
}

// isDate is stricter than reading a date: years alone are numbers, and what follows a day makes a timestamp.
func (o *CSVOptions) isDate(text string) bool {
	if o.day == nil {
		_, err := time.Parse(time.DateOnly, text)
		return err == nil
	}
	_, err := o.date(text)
	return err == nil
}

// merge is the type that holds both.
func merge(a, b csvType) csvType {
	if a.kind > b.kind {
		a, b = b, a
	}
	switch {
	case a == b || a.kind == csvNone:
		return b
	case b.kind == csvLong:
		return b
	case b.kind == csvDecimal:
		whole := map[csvKind]int{csvInt: 10, csvLong: 20, csvDecimal: a.digits}[a.kind]
		if whole = max(whole, b.digits); whole > 38 {
			return csvType{kind: csvDouble}
		}
		return csvType{kind: csvDecimal, digits: whole}
	case b.kind == csvDouble:
		return b
	case a.kind == csvDate && b.kind == csvTimestamp:
		return b
	}
	return csvType{kind: csvString}
}

func (t csvType) avro(column string) *schema.Type {
	var out *schema.Type
	switch t.kind {
	case csvInt:
		out = &schema.Type{Kind: schema.Int}
	case csvLong:
		out = &schema.Type{Kind: schema.Long}
	case csvDecimal:
		out = &schema.Type{Kind: schema.Fixed, Logical: schema.Decimal, Precision: t.digits, Size: schema.DecimalBytes(t.digits), Name: recordName + "." + column + ".fixed"}
	case csvDouble:
		out = &schema.Type{Kind: schema.Double}
	case csvDate:
		out = &schema.Type{Kind: schema.Int, Logical: schema.Date}
	case csvTimestamp:
		out = &schema.Type{Kind: schema.Long, Logical: schema.TimestampMicros}
	case csvBoolean:
		out = &schema.Type{Kind: schema.Boolean}
	default:
		out = &schema.Type{Kind: schema.String}
	}
	return nullable(out)
}

// csvInference finds the columns of files and their types.
type csvInference struct {
	CSVOptions
	mu    sync.Mutex
	names []string // lower case of each column is in index
	index map[string]int
	types []csvType
}

// inferCSV reads all files once for their columns: those of every header together, or _c0, _c1, … where there are none.
func inferCSV(ctx context.Context, store storage.Store, files []storage.Info, o CSVOptions, opts Options) (*schema.Type, error) {
	inf := &csvInference{CSVOptions: o, index: map[string]int{}}
	in := &Input{}
	opts.Reject = nil
	for batch, err := range ordered(ctx, opts, in, func(ctx context.Context, start func(work) error) error {
		return readText(ctx, store, files, inf, opts, start)
	}) {
		if err != nil {
			return nil, err
		}
		batch.Release()
	}
	t := &schema.Type{Kind: schema.Record, Name: recordName}
	for i, n := range inf.names {
		t.Fields = append(t.Fields, schema.Field{Name: n, Type: inf.types[i].avro(n), Default: json.RawMessage("null")})
	}
	return t, nil
}

func (inf *csvInference) recode(r io.Reader) io.Reader { return inf.recodeText(r) }

func (inf *csvInference) open(head []byte) (splitter, decodeChunk, error) {
	names, err := csvHeader(inf.dialect, head)
	if err != nil {
		return nil, nil, err
	}
	if !inf.header {
		for i := range names {
			names[i] = fmt.Sprintf("_c%d", i)
		}
	}
	at := inf.add(names)
	return inf.dialect.split, func(_ Options, c chunk, _ func(item) error) error { return inf.chunk(c, at) }, nil
}

func (inf *csvInference) add(names []string) []int {
	inf.mu.Lock()
	defer inf.mu.Unlock()
	at := make([]int, len(names))
	for i, n := range names {
		key := strings.ToLower(n)
		if _, ok := inf.index[key]; !ok {
			inf.index[key] = len(inf.names)
			inf.names = append(inf.names, n)
			inf.types = append(inf.types, csvType{})
		}
		at[i] = inf.index[key]
	}
	return at
}

func (inf *csvInference) chunk(c chunk, at []int) error {
	types := make([]csvType, len(at))
	r := csvReader{csvDialect: inf.dialect, text: c.text}
	for first := c.first && inf.header; ; first = false {
		_, _, ok, err := r.next()
		if !ok {
			break
		}
		if first || err != nil {
			continue // what can't be read tells nothing; reading the rows will name it
		}
		for i, f := range r.fields[:min(len(r.fields), len(at))] {
			if text := string(f.text); text != "" && text != inf.null {
				types[i] = inf.widen(types[i], text)
			}
		}
	}
	inf.mu.Lock()
	defer inf.mu.Unlock()
	for i, col := range at {
		inf.types[col] = merge(inf.types[col], types[i])
	}
	return nil
}
