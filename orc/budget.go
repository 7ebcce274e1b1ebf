package orc

import (
	"errors"
	"fmt"
)

// Errors that callers can tell apart with errors.Is.
var (
	// ErrFormat says that the bytes are no ORC file, or a damaged one.
	ErrFormat = errors.New("not a valid ORC file")
	// ErrUnsupported says that the file or the request is legal and that this package does not do it.
	ErrUnsupported = errors.New("not supported")
	// ErrMemory says that reading on would take more memory than ReaderOptions.MaxMemory.
	ErrMemory = errors.New("over the memory budget")

	// errBatch marks the part of ErrMemory that fewer rows in the batch may cure.
	errBatch = fmt.Errorf("%w: one batch", ErrMemory)
)

// budget counts what is held, before it is allocated.
type budget struct {
	limit int64
	used  int64 // until the stripe or the scan ends
	batch int64 // by the batch that is being made
}

// grow counts n bytes that stay; what says for what.
func (b *budget) grow(n int64, what string) error {
	if n < 0 || n > b.limit-b.used {
		return fmt.Errorf("%w: %s would take %d bytes above the %d of %d in use; raise MaxMemory if the file is trusted", ErrMemory, what, n, b.used, b.limit)
	}
	b.used += n
	return nil
}

func (b *budget) shrink(n int64) { b.used -= n }

// growBatch counts n bytes of the batch.
func (b *budget) growBatch(n int64, what string) error {
	if n < 0 || n > b.limit-b.used-b.batch {
		return fmt.Errorf("%w: %s would take %d bytes above the %d of %d in use; raise MaxMemory if the file is trusted", errBatch, what, n, b.used+b.batch, b.limit)
	}
	b.batch += n
	return nil
}
