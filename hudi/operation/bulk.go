package operation

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"golang.org/x/sync/errgroup"

	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/hudi/index"
	"github.com/sluicelake/sluice/hudi/write"
	"github.com/sluicelake/sluice/internal/shuffle"
)

// bulk adds rows in new file groups. With a bucket index a bucket that has its file group goes on in it.
func (j *job) bulk(ctx context.Context) error {
	if j.index.Kind == index.Bucket {
		return j.change(ctx)
	}
	if err := j.txn.Inflight(ctx, nil); err != nil {
		return err
	}
	_, err := j.load(ctx)
	return err
}

// load writes all rows to new file groups, and gives the partitions that have rows.
func (j *job) load(ctx context.Context) ([]string, error) {
	if j.sort != sortNone {
		return j.loadGrouped(ctx)
	}
	l := &loader{j: j, apart: map[int32]bool{}, heaps: make(chan struct{}, heapsMost)}
	defer l.close()
	return l.run(ctx)
}

// insertable gives rows to take, with the number of their partition as target, negative for those that are deletes.
func (j *job) insertable(batch arrow.RecordBatch) ([]int32, error) {
	gone, err := j.within.Gone(batch)
	if err != nil || gone == nil {
		return partitionsOf(batch), err
	}
	targets := append([]int32(nil), partitionsOf(batch)...)
	for i, dead := range gone {
		if dead {
			targets[i] = -1
			j.result.Dropped++
		}
	}
	return targets, nil
}

// loadGrouped brings the rows of each partition together first, and in the order of their keys where the sort mode says so.
func (j *job) loadGrouped(ctx context.Context) ([]string, error) {
	store := shuffle.New(j.slim, shuffle.Options{
		Alloc: j.Alloc, Memory: j.Memory / 3, Dir: j.TempDir, Sorted: j.sort != sortGroup, Column: slimKey, Compare: basefile.CompareKeys,
	})
	defer store.Close()
	err := j.loaded(ctx, func(batch arrow.RecordBatch) error {
		targets, err := j.insertable(batch)
		if err != nil {
			return err
		}
		return store.Add(batch, targets)
	})
	if err != nil {
		return nil, err
	}
	return j.drain(ctx, store)
}

// drain writes every partition of a store, several at once.
func (j *job) drain(ctx context.Context, store *shuffle.Store) ([]string, error) {
	var names []string
	targets := store.Targets()
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(j.Parallel)
	spare := max(j.Parallel/max(len(targets), 1), 1)
	for _, p := range targets {
		names = append(names, j.paths.names[p])
		if gctx.Err() != nil {
			break
		}
		g.Go(func() error {
			return j.create(gctx, j.paths.names[p], write.NewFileID(0), true, spare, store.Parts(gctx, p, 0, -1))
		})
	}
	return names, errors.Join(g.Wait(), ctx.Err())
}

// mostOpen files are written at once by a loader. The rows of further partitions are put aside until these are done.
const mostOpen = 64

// pieceRows of each partition, on average, are collected before the lanes pick them out of the batches: enough for a piece to cost
// little beside its rows, and few, so that the batches are still in the processor's cache. There are never more than heapBytes.
const (
	pieceRows = 4096
	heapBytes = 48 << 20
)

// heapsMost heaps are there at once: one is filled while the lanes write the others. queued pieces may wait for each lane.
const (
	heapsMost = 3
	queued    = mostOpen
)

// loader writes rows as they come: it keeps a file open for each partition.
type loader struct {
	j     *job
	heap  *heap
	heaps chan struct{} // as many as may be there
	lanes []*lane
	apart map[int32]bool // false: a lane has it; true: it waits in rest
	rest  *shuffle.Store

	held atomic.Int64 // bytes that open row groups hold
}

// lane is a worker with files of its own.
type lane struct {
	l     *loader
	in    chan piece
	files map[int32]*laneFile
}

type laneFile struct {
	*newFile
	id   string
	next int
	held int64
}

// piece is rows of one partition: some of those in a heap.
type piece struct {
	partition int32
	name      string
	heap      *heap
	from, n   int64
}

// heap is rows that were collected, parted by partition. The lanes pick theirs out of its batches.
type heap struct {
	*shuffle.Store
	pieces atomic.Int64 // that are not done, and one for the loader
	done   func()
}

// release ends one piece; the last one frees the heap.
func (h *heap) release() {
	if h.pieces.Add(-1) == 0 {
		h.Close()
		h.done()
	}
}

func (l *loader) run(ctx context.Context) ([]string, error) {
	g, gctx := errgroup.WithContext(ctx)
	for range l.j.Parallel {
		n := &lane{l: l, in: make(chan piece, queued), files: map[int32]*laneFile{}}
		l.lanes = append(l.lanes, n)
		g.Go(func() error { return n.work(gctx) })
	}
	err := l.feed(gctx)
	for _, n := range l.lanes {
		close(n.in)
	}
	if err = errors.Join(err, g.Wait()); err != nil {
		return nil, err
	}
	var names []string
	for p := range l.apart {
		if !l.apart[p] {
			names = append(names, l.j.paths.names[p])
		}
	}
	if l.rest == nil {
		return names, nil
	}
	more, err := l.j.drain(ctx, l.rest)
	return append(names, more...), err
}

func (l *loader) close() {
	if l.heap != nil {
		l.heap.release()
	}
	if l.rest != nil {
		l.rest.Close()
	}
}

// feed parts the rows by partition and hands them to the lanes.
func (l *loader) feed(ctx context.Context) error {
	err := l.j.loaded(ctx, func(batch arrow.RecordBatch) error {
		targets, err := l.j.insertable(batch)
		if err != nil {
			return err
		}
		if err := l.begin(ctx); err != nil {
			return err
		}
		if err := l.heap.Add(batch, targets); err != nil {
			return err
		}
		if l.heap.Bytes() < min(heapBytes, l.j.Memory/8) && (l.heap.Groups() == 1 || l.heap.Total() < pieceRows*int64(l.heap.Groups())) {
			return nil
		}
		return l.empty(ctx, false)
	})
	if err != nil || l.heap == nil {
		return err
	}
	return l.empty(ctx, true)
}

// begin makes a heap where there is none, when one of the earlier ones is done.
func (l *loader) begin(ctx context.Context) error {
	if l.heap != nil {
		return nil
	}
	select {
	case l.heaps <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	l.heap = &heap{Store: shuffle.New(l.j.slim, shuffle.Options{Alloc: l.j.Alloc}), done: func() { <-l.heaps }}
	l.heap.pieces.Store(1)
	return nil
}

// empty hands out what was gathered.
func (l *loader) empty(ctx context.Context, last bool) error {
	heap := l.heap
	l.heap = nil
	defer heap.release()
	targets := heap.Targets()
	for _, p := range targets {
		waits, known := l.apart[p]
		if !known {
			waits = len(l.apart) >= mostOpen
			l.apart[p] = waits
		}
		var err error
		if waits {
			err = l.putAside(ctx, p, heap)
		} else {
			err = l.send(ctx, p, heap, len(targets) == 1 && !last)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *loader) putAside(ctx context.Context, p int32, from *heap) error {
	if l.rest == nil {
		l.rest = shuffle.New(l.j.slim, shuffle.Options{Alloc: l.j.Alloc, Memory: l.j.Memory / 4, Dir: l.j.TempDir})
	}
	for rows, err := range from.Read(ctx, p, 0, -1) {
		if err != nil {
			return err
		}
		targets := make([]int32, rows.NumRows())
		for i := range targets {
			targets[i] = p
		}
		err = l.rest.Add(rows, targets)
		rows.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

// send gives rows to the lane of their partition; where there is one partition, and many rows, the lanes share them.
func (l *loader) send(ctx context.Context, p int32, from *heap, shared bool) error {
	at, rows := int(p)%len(l.lanes), from.Rows(p)
	if !shared {
		return l.give(ctx, at, piece{p, l.j.paths.names[p], from, 0, rows})
	}
	each := (rows + int64(len(l.lanes)) - 1) / int64(len(l.lanes))
	for i := range l.lanes {
		first := min(each*int64(i), rows)
		if n := min(each, rows-first); n > 0 {
			if err := l.give(ctx, i, piece{p, l.j.paths.names[p], from, first, n}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *loader) give(ctx context.Context, lane int, p piece) error {
	p.heap.pieces.Add(1)
	select {
	case l.lanes[lane].in <- p:
		return nil
	case <-ctx.Done():
		p.heap.release()
		return context.Cause(ctx)
	}
}

func (n *lane) work(ctx context.Context) error {
	defer func() {
		for _, f := range n.files {
			f.abort()
		}
		for p := range n.in { // after a failure
			p.heap.release()
		}
	}()
	for p := range n.in {
		err := n.writeAll(ctx, p)
		p.heap.release()
		if err != nil {
			return err
		}
	}
	for p, f := range n.files {
		delete(n.files, p)
		if err := f.close(); err != nil {
			f.abort()
			return err
		}
	}
	return ctx.Err()
}

func (n *lane) writeAll(ctx context.Context, p piece) error {
	for rows, err := range p.heap.Parts(ctx, p.partition, p.from, p.n) {
		if err != nil {
			return err
		}
		if err := n.write(ctx, p, rows); err != nil {
			return err
		}
	}
	return nil
}

func (n *lane) write(ctx context.Context, p piece, rows []shuffle.Part) error {
	f := n.files[p.partition]
	if f == nil {
		f = &laneFile{id: write.NewFileID(0)}
		n.files[p.partition] = f
	}
	if f.newFile == nil {
		var err error
		if f.newFile, err = n.l.j.newFile(ctx, p.name, numbered(f.id, f.next), n.l.j.writerOptions(1)); err != nil {
			return err
		}
		f.next++
	}
	if err := f.write(rows); err != nil {
		return err
	}
	n.note(f)
	if f.out.Size() >= n.l.j.sizes.max {
		done := f.newFile
		f.newFile = nil
		n.l.held.Add(-f.held)
		f.held = 0
		if err := done.close(); err != nil {
			done.abort()
			return err
		}
	}
	return n.relieve()
}

func (n *lane) note(f *laneFile) {
	now := f.out.Buffered()
	n.l.held.Add(now - f.held)
	f.held = now
}

// relieve closes row groups, the largest of this lane first, while all lanes together hold too much.
func (n *lane) relieve() error {
	for n.l.held.Load() > n.l.j.Memory/3 {
		var most *laneFile
		for _, f := range n.files {
			if f.newFile != nil && f.held > 0 && (most == nil || f.held > most.held) {
				most = f
			}
		}
		if most == nil {
			return nil
		}
		if err := most.out.EndRowGroup(); err != nil {
			return err
		}
		n.note(most)
	}
	return nil
}

// abort and close of a file whose writer was closed for its size do nothing.
func (f *laneFile) abort() { f.newFile.abort() }

func (f *laneFile) close() error { return f.newFile.close() }
