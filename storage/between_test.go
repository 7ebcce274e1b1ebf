package storage_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/mem"
)

// refusing answers every copy by the server with an error.
type refusing struct {
	*mem.Store
	err error
}

func (r refusing) CopyFrom(context.Context, storage.Store, string, string) (storage.Info, error) {
	return storage.Info{}, r.err
}

// Where the server can't copy, or may not read the source for us, the bytes are read and put; any other failure stands.
func TestCopyBetweenByBytes(t *testing.T) {
	source := mem.New("a")
	if _, err := source.Put(t.Context(), "x", strings.NewReader("content"), storage.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ answer, want error }{
		{errors.ErrUnsupported, nil}, {storage.ErrPermission, nil}, {storage.ErrTemporary, storage.ErrTemporary}, {storage.ErrNoSpace, storage.ErrNoSpace},
	} {
		target := refusing{mem.New("b"), c.answer}
		info, server, err := storage.CopyBetween(t.Context(), source, "x", target, "y")
		if !errors.Is(err, c.want) || server != (c.want != nil) {
			t.Errorf("%v: by the server %v, %v", c.answer, server, err)
		}
		data, _ := storage.ReadAll(t.Context(), target, "y", 0)
		if c.want == nil && (string(data) != "content" || info.Name != "y" || info.Size != 7) || c.want != nil && data != nil {
			t.Errorf("%v: %+v and %q", c.answer, info, data)
		}
	}
}
