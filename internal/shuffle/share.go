package shuffle

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
)

// settle works out what Arrow's arrays leave for the first who asks, so that several goroutines may read them: the number of
// nulls of a slice, and the values of a dictionary.
func settle(a arrow.Array) {
	settleData(a.Data())
	switch a := a.(type) {
	case *array.Dictionary:
		settle(a.Dictionary())
	case *array.Struct:
		for i := range a.NumField() {
			settle(a.Field(i))
		}
	case array.ListLike:
		settle(a.ListValues())
	case array.ExtensionArray:
		settle(a.Storage())
	}
}

func settleData(d arrow.ArrayData) {
	if d, ok := d.(*array.Data); ok && d.NullN() < 0 {
		nulls := 0
		if b := d.Buffers(); len(b) > 0 && b[0] != nil {
			nulls = d.Len() - bitutil.CountSetBits(b[0].Bytes(), d.Offset(), d.Len())
		}
		d.SetNullN(nulls)
	}
	for _, c := range d.Children() {
		settleData(c)
	}
}
