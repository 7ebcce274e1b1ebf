package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// CopierFrom is a Store that can copy objects of other stores of its service (other buckets, other folders; the file system of
// this machine is one) without their bytes passing through this process. Use it through CopyBetween.
type CopierFrom interface {
	// CopyFrom copies the object from of source to the object to of this store, replacing it, whole or not at all, and
	// describes it (Info.Token may be missing). The source is a back end as Locate finds it. Where it is of another service
	// the error is errors.ErrUnsupported, and nothing was done.
	CopyFrom(ctx context.Context, source Store, from, to string) (Info, error)
}

// Layered is a Store around another one. Locate looks through it.
type Layered interface {
	// Below tells the store below and what the object name is called there.
	Below(name string) (Store, string, error)
}

// Locate finds the back end below all layers and an object's name there.
func Locate(s Store, name string) (Store, string, error) {
	for {
		layer, ok := s.(Layered)
		if !ok {
			return s, name, nil
		}
		var err error
		if s, name, err = layer.Below(name); err != nil {
			return nil, "", err
		}
	}
}

// CopyFromBelow is what a layer's CopyFrom does: it asks the store below, which may not be able to.
func CopyFromBelow(ctx context.Context, below, source Store, from, to string) (Info, error) {
	if copier, ok := below.(CopierFrom); ok {
		return copier.CopyFrom(ctx, source, from, to)
	}
	return Info{}, errors.ErrUnsupported
}

// CopyBetween copies an object of one store to another, replacing the target, whole or not at all, and describes the target.
// Where both are at one service the service copies (server is true). Otherwise, and where the service does not let the
// target's credentials read the source, the bytes are read and put.
func CopyBetween(ctx context.Context, source Store, from string, target Store, to string) (info Info, server bool, err error) {
	info, err = copyByServer(ctx, source, from, target, to)
	if err == nil || !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, ErrPermission) {
		return info, true, err
	}
	info, err = copyByBytes(ctx, source, from, target, to)
	return info, false, err
}

func copyByServer(ctx context.Context, source Store, from string, target Store, to string) (Info, error) {
	end, name, err := Locate(source, from)
	if err != nil {
		return Info{}, err
	}
	if _, able := end.(CopierFrom); !able {
		return Info{}, errors.ErrUnsupported // its service copies nothing; it need not even be asked
	}
	return CopyFromBelow(ctx, target, end, name, to)
}

func copyByBytes(ctx context.Context, source Store, from string, target Store, to string) (info Info, err error) {
	o, err := source.Open(ctx, from)
	if err != nil {
		return Info{}, err
	}
	defer func() { err = errors.Join(err, o.Close()) }()
	// A section can be read again from its start, so that a layer of retries need not hold it.
	body := io.NewSectionReader(ReaderAt(ctx, o), 0, o.Size())
	if info, err = target.Put(ctx, to, body, PutOptions{Size: o.Size()}); err != nil {
		return Info{}, err
	}
	if info.Size != o.Size() {
		return Info{}, &Error{Op: "copy", URL: target.URL(), Name: to,
			Err: fmt.Errorf("%d bytes arrived of the %d of %s", info.Size, o.Size(), Join(source.URL(), from))}
	}
	return info, nil
}

// RangeWriter is a writer of PutFunc that can take bytes of other objects of its service without their passing through this
// process. Use it through RangesOf.
type RangeWriter interface {
	// RangesOf gives what appends a range of an object, or fails. It is nil where the object is of another service, or a layer
	// hides which.
	RangesOf(from Object) func(ctx context.Context, r Range) error
}

// RangesOf gives what appends a range of an object to a writer; nil: the bytes are to be read and written.
func RangesOf(w io.Writer, from Object) func(ctx context.Context, r Range) error {
	if ranges, ok := w.(RangeWriter); ok {
		return ranges.RangesOf(from)
	}
	return nil
}
