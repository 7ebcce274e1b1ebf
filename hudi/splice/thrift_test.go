package splice

import (
	"bytes"
	"errors"
	"testing"
)

// A structure that nobody edits comes out as it went in, unknown fields of every kind among them; an edit touches its field alone.
func TestFieldsComeThrough(t *testing.T) {
	list := [][]byte{{2}, {4}}
	in := fields{}.setI32(1, -5).setBool(2, true).setBool(3, false).setText(5, "text").setList(7, kindI32, list).
		setStruct(9, fields{}.setI64(1, 1<<40)).set(30, kindDouble, make([]byte, 8)).set(31, kindByte, []byte{0xff}).setI16(1000, 3)
	text := in.append(nil)
	out, n, err := parseFields(text)
	if err != nil || n != len(text) || !bytes.Equal(out.append(nil), text) {
		t.Fatalf("%d of %d bytes, %v", n, len(text), err)
	}
	edited := out.setI64(9, 7).setI32(4, 1).without(5)
	again, _, err := parseFields(edited.append(nil))
	if err != nil || again.number(9, 0) != 7 || again.number(4, 0) != 1 || again.has(5) || again.number(1, 0) != -5 || again.number(31, 0) != -1 || again.number(1000, 0) != 3 {
		t.Errorf("%v, %v", again, err)
	}
	if out.number(4, -9) != -9 || string(out.binary(5)) != "text" {
		t.Error("an edit changed its source")
	}
	for cut := range len(text) {
		if _, _, err := parseFields(text[:cut]); !errors.Is(err, errCut) {
			t.Errorf("cut at %d: %v", cut, err)
		}
	}
}

// A null count, a bound or an exactness flag that a writer left out is not made up, and old bounds without an order go.
func TestStatistics(t *testing.T) {
	stats := fields{}.setText(statsMax, "z").setText(statsMin, "a").setText(statsMaxValue, "y").setText(statsMinValue, "").setBool(statsMinExact, true)
	c := &chunk{stats: stats, start: 100, size: 10, meta: fields{}.setI64(metaDataPage, 104).setI64(metaDictionary, 100).setStruct(metaStatistics, stats).
		setI64(metaBloom, 77).setI32(metaBloom+1, 8).set(99, kindTrue, nil)}
	got := c.moved(&element{physical: byteArray, ordered: true}, []string{"a", "list", "element"}, 1100)
	if s, err := got.structure(metaStatistics); err != nil || s.has(statsMax) || s.has(statsMin) || s.has(statsNulls) || !s.has(statsMinExact) || s.has(statsMaxExact) ||
		string(s.binary(statsMaxValue)) != "y" || s.binary(statsMinValue) == nil {
		t.Errorf("%v, %v", s, err)
	}
	if got.number(metaDataPage, 0) != 1104 || got.number(metaDictionary, 0) != 1100 || got.has(metaBloom) || !got.has(99) {
		t.Errorf("%v", got)
	}
	if got = c.moved(&element{physical: byteArray}, nil, 0); got.has(metaStatistics) {
		if s, _ := got.structure(metaStatistics); s.has(statsMinValue) || s.has(statsMinExact) {
			t.Errorf("bounds without an order: %v", s)
		}
	}
}
