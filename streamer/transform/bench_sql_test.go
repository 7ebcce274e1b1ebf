//go:build cgo && !nocgo

package transform_test

import "testing"

// A filter and a computed column, as people write them.
func BenchmarkSQL(b *testing.B) {
	benchmark(b, "sql", map[string]string{"hoodie.streamer.transformer.sql": "SELECT *, qty * price AS total FROM <SRC> WHERE region <> 'apac'"})
}

// Columns that the query doesn't name are not loaded.
func BenchmarkSQLFewColumns(b *testing.B) {
	benchmark(b, "sql", map[string]string{"hoodie.streamer.transformer.sql": "SELECT id, qty + 1 AS qty, ts FROM <SRC> WHERE qty > 10"})
}

// A function of ours for each row.
func BenchmarkSQLDateFormat(b *testing.B) {
	benchmark(b, "sql", map[string]string{"hoodie.streamer.transformer.sql": "SELECT id, date_format(ts, 'yyyy/MM/dd') AS day FROM <SRC>"})
}

// The newest row of each key.
func BenchmarkSQLNewest(b *testing.B) {
	benchmark(b, "sql", map[string]string{"hoodie.streamer.transformer.sql": "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY id % 100000 ORDER BY ts DESC) AS rn FROM <SRC>) WHERE rn = 1"})
}
