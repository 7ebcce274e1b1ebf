package read

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/hudi/filegroup"
	"github.com/sluicelake/sluice/hudi/keygen"
	"github.com/sluicelake/sluice/hudi/logfile"
	"github.com/sluicelake/sluice/hudi/merge"
)

// keySource says by what the records of a slice meet: stored keys, keys made of the key fields, or positions.
type keySource interface {
	// block prepares for one log block.
	block(ref logfile.Ref) (blockKeys, error)
	// base gives the keys of a batch of the base file, nil for those in column _hoodie_record_key.
	base(batch basefile.Batch) (arrow.Array, error)
}

// blockKeys gives the keys of one block's records, in their order; nil stands for the keys that the block itself has.
type blockKeys interface {
	of(batch arrow.RecordBatch) (arrow.Array, error)
	deleted(n int) (arrow.Array, error)
	end() error
}

// storedKeys are in the records.
type storedKeys struct{}

func (storedKeys) block(logfile.Ref) (blockKeys, error)      { return storedKeys{}, nil }
func (storedKeys) base(basefile.Batch) (arrow.Array, error)  { return nil, nil }
func (storedKeys) of(arrow.RecordBatch) (arrow.Array, error) { return nil, nil }
func (storedKeys) deleted(int) (arrow.Array, error)          { return nil, nil }
func (storedKeys) end() error                                { return nil }

// virtualKeys are made of the key fields, for tables whose meta columns are null.
type virtualKeys struct {
	storedKeys
	gen *keygen.Keygen
}

func (v virtualKeys) block(logfile.Ref) (blockKeys, error)       { return v, nil }
func (v virtualKeys) base(b basefile.Batch) (arrow.Array, error) { return v.of(b.RecordBatch) }

func (v virtualKeys) of(batch arrow.RecordBatch) (arrow.Array, error) {
	keys, partitions, err := v.gen.Keys(batch)
	if err != nil {
		return nil, err
	}
	partitions.Release()
	return keys, nil
}

// recordKeys is how the table's records are known when positions are not.
func (p *Plan) recordKeys() (keySource, error) {
	cfg := p.src.Config
	if cfg.PopulateMetaFields {
		return storedKeys{}, nil
	}
	gen, err := keygen.New(keygen.Options{Table: keygen.PropertiesOf(cfg), Schema: p.table, HasCommits: true})
	if err != nil {
		return nil, fmt.Errorf("the table keeps no record keys (hoodie.populate.meta.fields=false) and they can't be made from its key fields: %w", err)
	}
	return virtualKeys{gen: gen}, nil
}

// keyColumns are the columns that virtual keys are made of.
func (p *Plan) keyColumns() []string {
	if p.src.Config.PopulateMetaFields {
		return nil
	}
	return append(slices.Clone(p.src.Config.RecordKeyFields), p.src.Config.PartitionFields...)
}

// positionKeys are row numbers in the base file, eight bytes each.
type positionKeys struct{}

// errPositions says that a block's positions do not fit its records: readers fall back to keys then.
var errPositions = errors.New("record positions do not fit the records")

// havePositions reports whether every block names the positions of its records in the slice's own base file.
func havePositions(sl filegroup.Slice, refs []logfile.Ref) bool {
	if sl.Base == nil {
		return false
	}
	for _, r := range refs {
		if r.Header.Positions == "" || r.Header.PositionsBase != sl.Base.Instant || r.Type == logfile.HFileData {
			return false
		}
	}
	return len(refs) > 0
}

func (positionKeys) block(ref logfile.Ref) (blockKeys, error) {
	bits, err := ref.Positions()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errPositions, err)
	}
	return &blockPositions{left: bits.Iterator()}, nil
}

func (positionKeys) base(batch basefile.Batch) (arrow.Array, error) {
	b := newPositions(int(batch.NumRows()))
	defer b.Release()
	for i := range batch.NumRows() {
		appendPosition(b, uint64(batch.FirstRow+i))
	}
	return b.NewArray(), nil
}

// blockPositions hands out a block's positions: its records stand in their order.
type blockPositions struct{ left roaring64.IntPeekable64 }

func (p *blockPositions) take(n int) (arrow.Array, error) {
	b := newPositions(n)
	defer b.Release()
	for range n {
		if !p.left.HasNext() {
			return nil, errPositions
		}
		appendPosition(b, p.left.Next())
	}
	return b.NewArray(), nil
}

func (p *blockPositions) of(batch arrow.RecordBatch) (arrow.Array, error) {
	return p.take(int(batch.NumRows()))
}
func (p *blockPositions) deleted(n int) (arrow.Array, error) { return p.take(n) }

func (p *blockPositions) end() error {
	if p.left.HasNext() {
		return errPositions
	}
	return nil
}

func newPositions(n int) *array.BinaryBuilder {
	b := array.NewBinaryBuilder(memory.DefaultAllocator, arrow.BinaryTypes.Binary)
	b.Reserve(n)
	b.ReserveData(8 * n)
	return b
}

func appendPosition(b *array.BinaryBuilder, at uint64) {
	var key [8]byte
	binary.BigEndian.PutUint64(key[:], at)
	b.Append(key[:])
}

// keyedBase yields the base file's rows with their keys.
func (s *scan) keyedBase(ctx context.Context, sl filegroup.Slice, columns *arrow.Schema, keys keySource) iter.Seq2[merge.Keyed, error] {
	return func(yield func(merge.Keyed, error) bool) {
		for batch, err := range s.baseRows(ctx, sl, columns, nil) {
			if err != nil {
				yield(merge.Keyed{}, err)
				return
			}
			k := merge.Keyed{Batch: batch.RecordBatch}
			if k.Keys, err = keys.base(batch); err != nil {
				batch.Release()
				yield(merge.Keyed{}, err)
				return
			}
			if k, err = s.inRange(ctx, k); err != nil {
				yield(merge.Keyed{}, err)
				return
			}
			if !yield(k, nil) {
				return
			}
		}
	}
}

// inRange drops the rows of a base file that were written outside of the range of an incremental query, before logs are
// merged with them. A partial update of an older row then shows what it says and nothing else, whether the range holds a
// compaction of its file group or not; and a late one shows although the older row won. So answer the releases that write
// version 8 and later (observed of 1.0.2 and 1.2.0); in tables of 0.x a row that a compaction carried into the range takes
// part in the merge (0.15.0).
func (s *scan) inRange(ctx context.Context, k merge.Keyed) (merge.Keyed, error) {
	if s.plan.rows == nil || s.plan.src.Config.Layout != 2 {
		return k, nil
	}
	defer k.Batch.Release()
	if k.Keys != nil {
		defer k.Keys.Release()
	}
	mask, err := s.rangeMask(k.Batch, nil)
	if err != nil {
		return merge.Keyed{}, err
	}
	defer mask.Release()
	ctx = compute.WithAllocator(ctx, s.opts.Alloc)
	var out merge.Keyed
	if k.Keys != nil {
		if out.Keys, err = compute.FilterArray(ctx, k.Keys, mask, *compute.DefaultFilterOptions()); err != nil {
			return merge.Keyed{}, err
		}
	}
	if out.Batch, err = compute.FilterRecordBatch(ctx, k.Batch, mask, compute.DefaultFilterOptions()); err != nil && out.Keys != nil {
		out.Keys.Release()
	}
	return out, err
}
