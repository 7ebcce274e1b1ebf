// Package orc reads and writes Apache ORC files as Arrow record batches.
//
// A file is opened from an io.ReaderAt and its size, and written to an io.Writer; nothing else of this project is needed:
//
//	r, err := orc.NewReader(file, size, orc.ReaderOptions{})
//	for batch, err := range r.Scan(ctx, orc.ScanOptions{Columns: []string{"id", "name"}}) {
//		if err != nil { … }
//		…
//		batch.Release()
//	}
//
//	w, err := orc.NewWriter(out, schema, orc.WriterOptions{Compression: orc.ZSTD})
//	err = w.Write(batch)
//	err = w.Close()
//
// # Types
//
// The Arrow type of each ORC type, on reading:
//
//	boolean                         bool
//	tinyint smallint int bigint     int8 int16 int32 int64
//	bigint that Spark marks as a    timestamp[us]
//	timestamp_ntz
//	float double                    float32 float64
//	string varchar(n) char(n)       utf8 (the stored bytes: writers pad char(n) with spaces to n characters)
//	binary                          binary
//	decimal(p,s)                    decimal128(p,s)
//	date                            date32, in the proleptic Gregorian calendar
//	timestamp                       timestamp[us], the wall clock in the writer's zone (see ReaderOptions.Timestamps)
//	timestamp with local time zone  timestamp[us, UTC]
//	array                           list, whose field is named "element"
//	map                             map
//	struct                          struct
//	uniontype                       struct of one nullable member per branch, member0, member1, …
//
// Text is handed on as it is stored: a writer that put something else than UTF-8 into a string gets it back.
// Every field is nullable: the format has no required columns. A file whose root is no struct is read as one column, "value".
//
// # Memory
//
// Reading holds the compressed streams of one stripe (or windows of them where they do not fit), one decompressed chunk per
// stream, the dictionaries, and the batch that is made; all of it is counted against ReaderOptions.MaxMemory before it is
// allocated. A file that needs more, for example one that claims a list of a billion elements, is refused with
// ErrMemory. Writing holds one stripe.
//
// The rules followed are those of the ORC specification, version 1, and where it is silent those of the Apache readers.
package orc
