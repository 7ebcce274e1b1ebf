//go:build cgo && !nocgo

package transform

/*
#include <stdlib.h>
#include <stdint.h>

extern void sluiceTransformScalar(void *info, void *chunk, void *vector);

static void *sluice_transform_scalar(void) { return (void *)sluiceTransformScalar; }
static void *sluice_transform_box(uintptr_t handle) {
	uintptr_t *box = malloc(sizeof(uintptr_t));
	if (box) *box = handle;
	return box;
}
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"runtime"
	"runtime/cgo"
	"strconv"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	mapping "github.com/duckdb/duckdb-go-bindings"
	"github.com/sluicelake/sluice/streamer/transform/sparksql"
)

// haveSQL tells whether this program was built with DuckDB.
const haveSQL = true

// outRows is how many rows a batch of a result has at most.
const outRows = 16 * 2048

// database is one DuckDB in memory with one connection. Nothing in it can reach beyond its own tables: no extensions, no files.
type database struct {
	db      mapping.Database
	conn    mapping.Connection
	temp    string
	handles []cgo.Handle
	boxes   []unsafe.Pointer
}

func openDatabase(o Options) (_ *database, err error) {
	d := &database{}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	if d.temp, err = os.MkdirTemp(o.TempDir, "sluice-sql-"); err != nil {
		return nil, fmt.Errorf("SQL: a folder for what doesn't fit into memory: %w", err)
	}
	threads := o.Threads
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	var config mapping.Config
	if mapping.CreateConfig(&config) == mapping.StateError {
		return nil, errors.New("SQL: DuckDB gives no configuration")
	}
	defer mapping.DestroyConfig(&config)
	for _, s := range [][2]string{
		{"autoinstall_known_extensions", "false"}, {"autoload_known_extensions", "false"}, {"allow_community_extensions", "false"},
		{"memory_limit", strconv.FormatInt(o.Memory, 10) + "B"}, {"temp_directory", d.temp}, {"threads", strconv.Itoa(threads)},
		{"preserve_insertion_order", "true"}, // a later row of a round wins where ordering values tie
	} {
		if mapping.SetConfig(config, s[0], s[1]) == mapping.StateError {
			return nil, fmt.Errorf("SQL: DuckDB refuses the setting %s=%s", s[0], s[1])
		}
	}
	var message string
	if mapping.OpenExt(":memory:", &d.db, config, &message) == mapping.StateError {
		return nil, fmt.Errorf("SQL: DuckDB doesn't open: %s", message)
	}
	if mapping.Connect(d.db, &d.conn) == mapping.StateError {
		return nil, errors.New("SQL: DuckDB gives no connection")
	}
	for _, s := range []string{"SET TimeZone = 'UTC'", "SET enable_external_access = false", "SET lock_configuration = true"} {
		if err = d.exec(s); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (d *database) close() {
	if d.conn.Ptr != nil {
		mapping.Disconnect(&d.conn)
	}
	if d.db.Ptr != nil {
		mapping.Close(&d.db)
	}
	for _, h := range d.handles {
		h.Delete()
	}
	for _, b := range d.boxes {
		C.free(b)
	}
	if d.temp != "" {
		_ = os.RemoveAll(d.temp)
	}
}

func (d *database) exec(sql string) error {
	var res mapping.Result
	defer mapping.DestroyResult(&res)
	if mapping.Query(d.conn, sql, &res) == mapping.StateError {
		return fmt.Errorf("SQL: %s", mapping.ResultError(&res))
	}
	return nil
}

// run gives the result of a plan over rows. Nothing happens before the result is ranged over.
func run(ctx context.Context, plan *sparksql.Plan, in, out *arrow.Schema, rows iter.Seq2[arrow.RecordBatch, error], o Options) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		d, err := openDatabase(o)
		if err != nil {
			yield(nil, err)
			return
		}
		defer d.close()
		interrupted := make(chan struct{})
		stop := context.AfterFunc(ctx, func() {
			mapping.Interrupt(d.conn)
			close(interrupted)
		})
		defer func() {
			if !stop() { // the connection must not go away under it
				<-interrupted
			}
		}()
		err = d.load(ctx, plan, in, rows)
		if err == nil {
			err = d.register(plan.Functions)
		}
		if err == nil {
			err = d.stream(ctx, plan, out, o, yield)
		}
		if err != nil {
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			yield(nil, err)
		}
	}
}

// load appends the columns that a plan uses to a table of the source's rows. The batches are released.
func (d *database) load(ctx context.Context, plan *sparksql.Plan, in *arrow.Schema, rows iter.Seq2[arrow.RecordBatch, error]) error {
	// A query that uses no column (count(*)) still needs the number of rows: it gets a column of nothing.
	table := "CREATE TABLE " + sparksql.SourceTable + " (n BOOLEAN"
	columns := make([]*sparksql.Type, len(plan.Uses))
	for i, index := range plan.Uses {
		t, err := sparksql.FromArrow(in.Field(index).Type)
		if err != nil {
			return fmt.Errorf("column %s: %w", in.Field(index).Name, err)
		}
		columns[i] = t
		table += ", c" + strconv.Itoa(index) + " " + t.Duck()
	}
	if err := d.exec(table + ")"); err != nil {
		return err
	}
	var appender mapping.Appender
	if mapping.AppenderCreate(d.conn, "main", sparksql.SourceTable, &appender) == mapping.StateError {
		err := errors.New("SQL: loading rows: " + mapping.AppenderError(appender))
		mapping.AppenderDestroy(&appender)
		return err
	}
	defer mapping.AppenderDestroy(&appender)
	fill, err := newFiller(columns)
	if err != nil {
		return err
	}
	defer fill.close()
	for batch, err := range rows {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			if err = sameShape(in, batch); err == nil {
				err = fill.batch(appender, batch, plan.Uses)
			}
		}
		if batch != nil {
			batch.Release()
		}
		if err != nil {
			return err
		}
	}
	if mapping.AppenderClose(appender) == mapping.StateError {
		return errors.New("SQL: loading rows: " + mapping.AppenderError(appender))
	}
	return nil
}

// register gives DuckDB the functions of Spark that a plan calls.
func (d *database) register(names []string) error {
	if len(names) == 0 {
		return nil
	}
	all := sparksql.Functions()
	for _, name := range names {
		f, ok := all[name]
		if !ok {
			return fmt.Errorf("SQL: function %s is missing", name)
		}
		if err := d.registerOne(f); err != nil {
			return err
		}
	}
	return nil
}

func (d *database) registerOne(f sparksql.Function) error {
	fn := mapping.CreateScalarFunction()
	defer mapping.DestroyScalarFunction(&fn)
	mapping.ScalarFunctionSetName(fn, f.Name)
	for _, k := range f.In {
		t := plainType(k)
		mapping.ScalarFunctionAddParameter(fn, t)
		mapping.DestroyLogicalType(&t)
	}
	t := plainType(f.Out)
	mapping.ScalarFunctionSetReturnType(fn, t)
	mapping.DestroyLogicalType(&t)
	handle := cgo.NewHandle(f)
	d.handles = append(d.handles, handle)
	box := C.sluice_transform_box(C.uintptr_t(handle))
	if box == nil {
		return errors.New("SQL: out of memory")
	}
	d.boxes = append(d.boxes, box)
	mapping.ScalarFunctionSetExtraInfo(fn, box, nil)
	mapping.ScalarFunctionSetFunction(fn, C.sluice_transform_scalar())
	if mapping.RegisterScalarFunction(d.conn, fn) == mapping.StateError {
		return fmt.Errorf("SQL: function %s can't be registered", f.Name)
	}
	return nil
}

// stream runs the plan's query and yields its rows as they come.
func (d *database) stream(ctx context.Context, plan *sparksql.Plan, out *arrow.Schema, o Options, yield func(arrow.RecordBatch, error) bool) error {
	var stmt mapping.PreparedStatement
	defer mapping.DestroyPrepare(&stmt)
	if mapping.Prepare(d.conn, plan.SQL, &stmt) == mapping.StateError {
		return fmt.Errorf("SQL: %s", mapping.PrepareError(stmt))
	}
	var pending mapping.PendingResult
	defer mapping.DestroyPending(&pending)
	if mapping.PendingPreparedStreaming(stmt, &pending) == mapping.StateError {
		return fmt.Errorf("SQL: %s", mapping.PendingError(pending))
	}
	var res mapping.Result
	defer mapping.DestroyResult(&res)
	if mapping.ExecutePending(pending, &res) == mapping.StateError {
		return fmt.Errorf("SQL: %s", mapping.ResultError(&res))
	}
	if err := checkTypes(&res, plan.Columns); err != nil {
		return err
	}
	b := array.NewRecordBuilder(o.Allocator, out)
	defer b.Release()
	n := 0
	flush := func() bool {
		if n == 0 {
			return true
		}
		n = 0
		return yield(b.NewRecordBatch(), nil)
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		chunk := mapping.FetchChunk(res)
		if chunk.Ptr == nil {
			if message := mapping.ResultError(&res); message != "" {
				return fmt.Errorf("SQL: %s", message)
			}
			flush()
			return nil
		}
		size := int(mapping.DataChunkGetSize(chunk))
		var err error
		for i := range plan.Columns {
			if err == nil {
				if err = readVector(mapping.DataChunkGetVector(chunk, mapping.IdxT(i)), plan.Columns[i].Type, 0, size, nil, b.Field(i)); err != nil {
					err = fmt.Errorf("SQL: column %s of the result: %w", plan.Columns[i].Name, err)
				} else if !plan.Columns[i].Nullable && b.Field(i).NullN() > 0 {
					err = fmt.Errorf("SQL: column %s of the result has nulls where none were expected", plan.Columns[i].Name)
				}
			}
		}
		mapping.DestroyDataChunk(&chunk)
		if err != nil {
			return err
		}
		if n += size; n >= outRows && !flush() {
			return nil
		}
	}
}

// checkTypes makes sure that a result's memory is laid out as its columns say, before any of it is read.
func checkTypes(res *mapping.Result, columns []sparksql.Field) error {
	if n := int(mapping.ColumnCount(res)); n != len(columns) {
		return fmt.Errorf("SQL: the result has %d columns, not %d", n, len(columns))
	}
	for i, c := range columns {
		t := mapping.ColumnLogicalType(res, mapping.IdxT(i))
		ok := sameLayout(t, c.Type)
		mapping.DestroyLogicalType(&t)
		if !ok {
			return fmt.Errorf("SQL: column %s of the result is no %s", c.Name, c.Type)
		}
	}
	return nil
}

func sameLayout(t mapping.LogicalType, want *sparksql.Type) bool {
	id := mapping.GetTypeId(t)
	switch want.Kind {
	case sparksql.Decimal:
		return id == mapping.TypeDecimal && int(mapping.DecimalWidth(t)) == want.Precision && int(mapping.DecimalScale(t)) == want.Scale
	case sparksql.Array:
		child := mapping.ListTypeChildType(t)
		defer mapping.DestroyLogicalType(&child)
		return id == mapping.TypeList && sameLayout(child, want.Fields[0].Type)
	case sparksql.Map:
		key, value := mapping.MapTypeKeyType(t), mapping.MapTypeValueType(t)
		defer mapping.DestroyLogicalType(&key)
		defer mapping.DestroyLogicalType(&value)
		return id == mapping.TypeMap && sameLayout(key, want.Fields[0].Type) && sameLayout(value, want.Fields[1].Type)
	case sparksql.Struct:
		if id != mapping.TypeStruct || int(mapping.StructTypeChildCount(t)) != len(want.Fields) {
			return false
		}
		for i, f := range want.Fields {
			child := mapping.StructTypeChildType(t, mapping.IdxT(i))
			ok := sameLayout(child, f.Type)
			mapping.DestroyLogicalType(&child)
			if !ok {
				return false
			}
		}
		return true
	}
	return id == typeID(want.Kind)
}

// typeID is DuckDB's type of a kind without parameters.
func typeID(k sparksql.Kind) mapping.Type {
	switch k {
	case sparksql.Boolean:
		return mapping.TypeBoolean
	case sparksql.Byte:
		return mapping.TypeTinyInt
	case sparksql.Short:
		return mapping.TypeSmallInt
	case sparksql.Int, sparksql.Null:
		return mapping.TypeInteger
	case sparksql.Long, sparksql.Time:
		return mapping.TypeBigInt
	case sparksql.Float:
		return mapping.TypeFloat
	case sparksql.Double:
		return mapping.TypeDouble
	case sparksql.String:
		return mapping.TypeVarchar
	case sparksql.Binary:
		return mapping.TypeBlob
	case sparksql.Date:
		return mapping.TypeDate
	case sparksql.Timestamp, sparksql.TimestampNTZ:
		return mapping.TypeTimestamp
	}
	return mapping.TypeInvalid
}

func plainType(k sparksql.Kind) mapping.LogicalType { return mapping.CreateLogicalType(typeID(k)) }

// logicalType is DuckDB's type of a column; the caller destroys it.
func logicalType(t *sparksql.Type) mapping.LogicalType {
	switch t.Kind {
	case sparksql.Decimal:
		return mapping.CreateDecimalType(uint8(t.Precision), uint8(t.Scale))
	case sparksql.Array:
		child := logicalType(t.Fields[0].Type)
		defer mapping.DestroyLogicalType(&child)
		return mapping.CreateListType(child)
	case sparksql.Map:
		key, value := logicalType(t.Fields[0].Type), logicalType(t.Fields[1].Type)
		defer mapping.DestroyLogicalType(&key)
		defer mapping.DestroyLogicalType(&value)
		return mapping.CreateMapType(key, value)
	case sparksql.Struct:
		types := make([]mapping.LogicalType, len(t.Fields))
		names := make([]string, len(t.Fields))
		for i, f := range t.Fields {
			types[i], names[i] = logicalType(f.Type), "f"+strconv.Itoa(i)
			defer mapping.DestroyLogicalType(&types[i])
		}
		return mapping.CreateStructType(types, names)
	}
	return plainType(t.Kind)
}
