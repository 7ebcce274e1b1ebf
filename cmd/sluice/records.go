package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/csv"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/hudi/schema"
)

// records reads sample records from files, or from standard input without any, and calls each with batches of them.
func (a *app) records(ctx context.Context, files []string, format string, types *schema.Type, each func(arrow.RecordBatch) error) error {
	var want *arrow.Schema
	if types != nil {
		var err error
		if want, err = schema.WithoutMeta(types).Arrow(); err != nil {
			return err
		}
	}
	if len(files) == 0 {
		data, err := io.ReadAll(a.in)
		if err != nil {
			return err
		}
		return recordsOf(ctx, "standard input", data, format, want, each)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		kind := format
		if kind == "" {
			kind = strings.TrimPrefix(strings.ToLower(filepath.Ext(name)), ".")
		}
		if err := recordsOf(ctx, name, data, kind, want, each); err != nil {
			return err
		}
	}
	return nil
}

func recordsOf(ctx context.Context, name string, data []byte, format string, want *arrow.Schema, each func(arrow.RecordBatch) error) error {
	switch format {
	case "", "json", "jsonl", "ndjson":
		return jsonRecords(name, data, want, each)
	case "csv":
		return csvRecords(name, data, want, each)
	case "parquet":
		f, err := basefile.OpenBytes(ctx, name, data, basefile.Options{})
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		for batch, err := range f.Scan(ctx, basefile.ScanOptions{}) {
			if err != nil {
				return err
			}
			err = each(batch)
			batch.Release()
			if err != nil {
				return err
			}
		}
		return nil
	}
	return usagef("records in %s: format %q; use --input json, csv or parquet", name, format)
}

// jsonRecords reads one object a line; all become one batch, for samples are small.
func jsonRecords(name string, data []byte, want *arrow.Schema, each func(arrow.RecordBatch) error) error {
	if want == nil {
		var err error
		if want, err = inferJSON(name, data); err != nil {
			return err
		}
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, want)
	defer b.Release()
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 16<<20)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		if err := b.UnmarshalJSON(lines.Bytes()); err != nil {
			return fmt.Errorf("%s, line %d: %w", name, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	return each(batch)
}

// inferJSON finds the columns of all objects, in order of appearance, and their types.
func inferJSON(name string, data []byte) (*arrow.Schema, error) {
	root := &shape{}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	for n := 1; ; n++ {
		raw := json.RawMessage{}
		err := dec.Decode(&raw)
		if err == io.EOF {
			break
		}
		if err == nil {
			err = root.see(raw)
		}
		if err != nil {
			return nil, fmt.Errorf("%s, record %d: %w", name, n, err)
		}
	}
	dt, ok := root.arrow().(*arrow.StructType)
	if !ok {
		return nil, fmt.Errorf("%s: the records are no JSON objects", name)
	}
	return arrow.NewSchema(dt.Fields(), nil), nil
}

// shape is what was seen of one place in JSON records.
type shape struct {
	text, flag, whole, real bool
	names                   []string
	fields                  map[string]*shape
	element                 *shape
}

func (s *shape) see(raw json.RawMessage) error {
	raw = bytes.TrimSpace(raw)
	switch raw[0] {
	case '{':
		if s.fields == nil {
			s.fields = map[string]*shape{}
		}
		dec := json.NewDecoder(bytes.NewReader(raw))
		if _, err := dec.Token(); err != nil {
			return err
		}
		for dec.More() {
			key, err := dec.Token()
			if err != nil {
				return err
			}
			var value json.RawMessage
			if err := dec.Decode(&value); err != nil {
				return err
			}
			name := key.(string) // the decoder gives text for keys
			if s.fields[name] == nil {
				s.fields[name] = &shape{}
				s.names = append(s.names, name)
			}
			if err := s.fields[name].see(value); err != nil {
				return err
			}
		}
	case '[':
		if s.element == nil {
			s.element = &shape{}
		}
		var all []json.RawMessage
		if err := json.Unmarshal(raw, &all); err != nil {
			return err
		}
		for _, v := range all {
			if err := s.element.see(v); err != nil {
				return err
			}
		}
	case '"':
		s.text = true
	case 't', 'f':
		s.flag = true
	case 'n':
	default:
		if bytes.ContainsAny(raw, ".eE") {
			s.real = true
		} else {
			s.whole = true
		}
	}
	return nil
}

func (s *shape) arrow() arrow.DataType {
	switch {
	case s.fields != nil:
		fields := make([]arrow.Field, len(s.names))
		for i, n := range s.names {
			fields[i] = arrow.Field{Name: n, Type: s.fields[n].arrow(), Nullable: true}
		}
		return arrow.StructOf(fields...)
	case s.element != nil:
		return arrow.ListOf(s.element.arrow())
	case s.text:
		return arrow.BinaryTypes.String
	case s.real:
		return arrow.PrimitiveTypes.Float64
	case s.whole:
		return arrow.PrimitiveTypes.Int64
	case s.flag:
		return arrow.FixedWidthTypes.Boolean
	}
	return arrow.BinaryTypes.String
}

func csvRecords(name string, data []byte, want *arrow.Schema, each func(arrow.RecordBatch) error) error {
	var r interface {
		Next() bool
		RecordBatch() arrow.RecordBatch
		Err() error
		Release()
	}
	if want == nil {
		r = csv.NewInferringReader(bytes.NewReader(data), csv.WithHeader(true), csv.WithNullReader(true))
	} else {
		r = csv.NewReader(bytes.NewReader(data), want, csv.WithHeader(true), csv.WithNullReader(true))
	}
	defer r.Release()
	for r.Next() {
		if err := each(r.RecordBatch()); err != nil {
			return err
		}
	}
	if err := r.Err(); err != nil && err != io.EOF {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
