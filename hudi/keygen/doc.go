// Package keygen makes the record key and the partition path of every row, byte for byte as Apache Hudi's own key
// generators make them, and reads partition paths back.
//
// One wrong byte gives a record a second identity for ever, so there is one function for each rule and no second path:
// [New] compiles a configuration into a [Keygen]; [Keygen.Keys] makes the columns of a batch, [Keygen.Key] and
// [Keygen.One] make those of a single record with the same code. [PartitionValues] is the way back from a path to column
// values, [ParseRecordKey] that from a key to its parts, [Bucket] the bucket of a key.
//
// # Which result
//
// The reference gave different results over its releases and, inside one release, for Avro records and for Spark rows.
// A Keygen follows the Avro path of the newest release, with the guards that keep a table safe: names are checked against
// the schema, unsafe partition paths are refused. [Options.Release], [Options.Path] and [Options.Imitate] choose another
// release, a row path, or the reference without guards; these are for comparing and for explaining, and for tables whose
// history needs them (the null marker of old tables, the two encodings of one-field complex keys).
//
// # Generators of one's own
//
// [Registry] holds Go generators under a name, usually the name of a Java class that the table property names; the option
// sluice.keygen.expr holds expressions over the columns. A Spark writer without the same rule must not write to such a
// table: its property hoodie.table.keygenerator.class then names a class that Spark can't load, so Spark refuses.
package keygen
