//go:build cgo && !nocgo

package transform

import "C"

import (
	"fmt"
	"runtime/cgo"
	"strings"
	"unsafe"

	mapping "github.com/duckdb/duckdb-go-bindings"
	"github.com/sluicelake/sluice/streamer/transform/sparksql"
)

// sluiceTransformScalar is called by DuckDB, from any of its threads, for a chunk of rows.
//
//export sluiceTransformScalar
func sluiceTransformScalar(info, chunk, vector unsafe.Pointer) {
	call := mapping.FunctionInfo{Ptr: info}
	defer func() {
		if r := recover(); r != nil {
			mapping.ScalarFunctionSetError(call, fmt.Sprint("internal error: ", r))
		}
	}()
	box := mapping.ScalarFunctionGetExtraInfo(call)
	f := cgo.Handle(*(*uintptr)(box)).Value().(sparksql.Function)
	if err := callRows(f, mapping.DataChunk{Ptr: chunk}, mapping.Vector{Ptr: vector}); err != nil {
		mapping.ScalarFunctionSetError(call, err.Error())
	}
}

// callRows computes one vector. Arguments are flat: DuckDB flattens them for functions of its C interface.
func callRows(f sparksql.Function, chunk mapping.DataChunk, out mapping.Vector) error {
	n := int(mapping.DataChunkGetSize(chunk))
	if n == 0 {
		return nil
	}
	columns := make([]vectorData, len(f.In))
	for i := range f.In {
		v := mapping.DataChunkGetVector(chunk, mapping.IdxT(i))
		columns[i] = vectorData{mapping.VectorGetData(v), mapping.VectorGetValidity(v)}
	}
	result := mapping.VectorGetData(out)
	var valid []uint64
	args := make([]sparksql.Arg, len(f.In))
rows:
	for row := range n {
		ok := true
		for i, k := range f.In {
			if ok = columns[i].isValid(row); !ok {
				break
			}
			args[i] = columns[i].arg(k, row)
		}
		var v sparksql.Arg
		if ok {
			var err error
			if v, ok, err = f.Call(args); err != nil {
				return err
			}
		}
		if ok {
			switch f.Out {
			case sparksql.String:
				putText(out, result, row, strings.ToValidUTF8(v.S, "\ufffd"))
			case sparksql.Binary:
				putText(out, result, row, v.S)
			default:
				putPlain(f.Out, result, row, v)
			}
			continue rows
		}
		if valid == nil {
			valid = writableValidity(out, 0, n)
		}
		valid[row/64] &^= 1 << (row % 64)
	}
	return nil
}

// vectorData is a flat vector of DuckDB.
type vectorData struct{ data, validity unsafe.Pointer }

func (v vectorData) isValid(row int) bool {
	return v.validity == nil || *(*uint64)(unsafe.Add(v.validity, row/64*8))&(1<<(row%64)) != 0
}

func (v vectorData) arg(k sparksql.Kind, row int) sparksql.Arg {
	switch k {
	case sparksql.String, sparksql.Binary:
		return sparksql.Arg{S: textAt(v.data, row)}
	case sparksql.Boolean:
		if at[bool](v.data, row) {
			return sparksql.Arg{I: 1}
		}
		return sparksql.Arg{}
	case sparksql.Int, sparksql.Date:
		return sparksql.Arg{I: int64(at[int32](v.data, row))}
	case sparksql.Double:
		return sparksql.Arg{F: at[float64](v.data, row)}
	}
	return sparksql.Arg{I: at[int64](v.data, row)}
}

func putPlain(k sparksql.Kind, data unsafe.Pointer, row int, v sparksql.Arg) {
	switch k {
	case sparksql.Boolean:
		put(data, row, v.I != 0)
	case sparksql.Int, sparksql.Date:
		put(data, row, int32(v.I))
	case sparksql.Double:
		put(data, row, v.F)
	default:
		put(data, row, v.I)
	}
}

func at[T any](data unsafe.Pointer, row int) T {
	var t T
	return *(*T)(unsafe.Add(data, row*int(unsafe.Sizeof(t))))
}

func put[T any](data unsafe.Pointer, row int, v T) {
	*(*T)(unsafe.Add(data, row*int(unsafe.Sizeof(v)))) = v
}

// inlineText is the longest text that stands in a vector itself: 4 bytes of length, 12 of text.
const inlineText = 12

// textAt reads a text without copying it: it is valid as long as the vector.
func textAt(data unsafe.Pointer, row int) string {
	p := unsafe.Add(data, row*16)
	n := int(*(*uint32)(p))
	if n <= inlineText {
		return unsafe.String((*byte)(unsafe.Add(p, 4)), n)
	}
	return unsafe.String(*(**byte)(unsafe.Add(p, 8)), n)
}

func putText(v mapping.Vector, data unsafe.Pointer, row int, s string) {
	if len(s) > inlineText {
		mapping.UnsafeVectorAssignStringElementLen(v, mapping.IdxT(row), unsafe.Slice(unsafe.StringData(s), len(s)))
		return
	}
	p := (*[16]byte)(unsafe.Add(data, row*16))
	*p = [16]byte{byte(len(s))}
	copy(p[4:], s)
}

// writableValidity gives the bitmap of a vector that had none, all valid up to a row.
func writableValidity(v mapping.Vector, from, to int) []uint64 {
	mapping.VectorEnsureValidityWritable(v)
	return unsafe.Slice((*uint64)(mapping.VectorGetValidity(v)), (to+63)/64)[from/64:]
}
