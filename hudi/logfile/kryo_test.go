package logfile

import (
	"encoding/hex"
	"errors"
	"reflect"
	"slices"
	"testing"
)

// kryoOf09 is the content of a delete block that Apache Hudi 0.9.0 wrote (fixture old_mor_0.9.0), behind version and length.
const kryoOf09 = "01005b4c6f72672e6170616368652e687564692e636f6d6d6f6e2e6d6f64656c2e486f6f6469654b6579bb0102" +
	"01016f72672e6170616368652e687564692e636f6d6d6f6e2e6d6f64656c2e486f6f6469654b65f90101323031392f31312f31b3018233"

func TestKeysOfKryo(t *testing.T) {
	raw, err := hex.DecodeString(kryoOf09)
	if err != nil {
		t.Fatal(err)
	}
	got, err := keysOfKryo(raw)
	if want := []DeletedKey{{Key: "3", Partition: "2019/11/13"}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	// A second key of the same class that shares the partition path (object 2) and has a key beyond ASCII.
	two := append(slices.Clone(raw), 0x01, 0x01, 0x01, 0x04, 0x01, 0x82|0x01, 0xe4, 0xb8, 0xad, 'a')
	two[44] = 3
	got, err = keysOfKryo(two)
	want := []DeletedKey{{Key: "3", Partition: "2019/11/13"}, {Key: "中a", Partition: "2019/11/13"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for n := range raw {
		if _, err := keysOfKryo(raw[:n]); !errors.Is(err, ErrFormat) && !errors.Is(err, ErrUnsupported) {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
}

func FuzzKeysOfKryo(f *testing.F) {
	raw, err := hex.DecodeString(kryoOf09)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add(raw[:len(raw)-1])
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = keysOfKryo(b) })
}
