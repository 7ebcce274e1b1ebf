package index

import (
	"context"
	"fmt"

	"github.com/sluicelake/sluice/hudi/keygen"
)

// bucketName is a bucket of a partition.
type bucketName struct {
	home   int32
	bucket int
}

// buckets finds the file group of every key by its bucket, and in its base file the rows of the key.
func (l *lookup) buckets(ctx context.Context) (*Tags, error) {
	slices, err := l.byBucket()
	if err != nil {
		return nil, err
	}
	l.set.sortHeads()
	l.found = make([][]match, len(l.slices))
	belongs := make([][]int32, len(l.slices)) // keys of each slice, sorted
	for home, rows := range l.set.heads {
		for _, row := range rows {
			text, err := l.o.Bucket.Of(l.set.keys.Value(int(row)))
			if err != nil {
				return nil, err
			}
			bucket, err := keygen.BucketOfFileID(text)
			if err != nil {
				return nil, err
			}
			if slice, ok := slices[bucketName{home: int32(home), bucket: bucket}]; ok {
				belongs[slice] = append(belongs[slice], row)
			}
		}
	}
	var asked []task
	for slice, rows := range belongs {
		home, _ := l.set.homeOf(l.slices[slice].Partition)
		if len(rows) > 0 && l.slices[slice].Base != nil && !l.o.NoRows {
			asked = append(asked, task{slice: slice, home: home, rows: rows})
		}
	}
	if err := l.run(ctx, asked); err != nil {
		return nil, err
	}
	l.addAbsent(belongs)
	return l.tags(), nil
}

// byBucket maps the buckets of the partitions that are asked about to their slices.
func (l *lookup) byBucket() (map[bucketName]int, error) {
	out := map[bucketName]int{}
	for i := range l.slices {
		s := &l.slices[i]
		home, ok := l.set.homeOf(s.Partition)
		if !ok {
			continue
		}
		bucket, err := keygen.BucketOfFileID(s.FileID)
		if err != nil {
			return nil, fmt.Errorf("partition %q, file group %s: %w: %w", s.Partition, s.FileID, ErrBuckets, err)
		}
		if l.o.Bucket.Buckets > 0 && bucket >= l.o.Bucket.Buckets {
			return nil, fmt.Errorf("partition %q, file group %s: %w: bucket %d of %d; was the number of buckets changed?", s.Partition, s.FileID, ErrBuckets, bucket, l.o.Bucket.Buckets)
		}
		name := bucketName{home: home, bucket: bucket}
		if other, twice := out[name]; twice {
			return nil, fmt.Errorf("partition %q: %w: %s and %s are both bucket %d", s.Partition, ErrBuckets, l.slices[other].FileID, s.FileID, bucket)
		}
		out[name] = i
	}
	return out, nil
}

// addAbsent gives keys that their base file lacks the row -1.
func (l *lookup) addAbsent(belongs [][]int32) {
	for slice, rows := range belongs {
		stored := newRowSet(l.set.keys.Len(), nil)
		for _, m := range l.found[slice] {
			stored[m.head/64] |= 1 << (m.head % 64)
		}
		for _, row := range rows {
			if !stored.has(row) {
				l.found[slice] = append(l.found[slice], match{head: row, row: -1})
			}
		}
	}
}
