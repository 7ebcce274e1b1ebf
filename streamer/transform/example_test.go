package transform_test

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/sluicelake/sluice/streamer/transform"
)

// A chain as the Java streamer's command line names it; the schema is known before any row is read.
func ExampleNew() {
	chain, err := transform.New([]string{"org.apache.hudi.utilities.transform.AWSDmsTransformer,add-columns"},
		map[string]string{"sluice.add.columns": "day string = date_of[0:10]"}, transform.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	in := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "date_of", Type: arrow.BinaryTypes.String}}, nil)
	out, _, err := chain.Apply(context.Background(), in, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range out.Fields() {
		fmt.Println(f.Name, f.Type)
	}
	// Output:
	// id int64
	// date_of utf8
	// Op utf8
	// day utf8
}
