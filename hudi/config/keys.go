package config

// The keys themselves, one list per scope. A row is name, old names, kind, default, since, use, meaning.
// Where releases differ, the default is that of Apache Hudi 1.2 and the meaning names the others.

type row struct {
	name     string
	old      []string
	kind     Kind
	fallback string
	since    string
	use      Use
	doc      string
}

func keysOf(scope Scope, prefix string, rows []row) []Key {
	keys := make([]Key, len(rows))
	for i, r := range rows {
		name := r.name
		family := false
		for j := range name {
			family = family || name[j] == '<'
		}
		keys[i] = Key{Name: prefix + name, Old: r.old, Kind: r.kind, Default: r.fallback, Since: r.since, Scope: scope, Use: r.use, Doc: r.doc, Family: family}
	}
	return keys
}

func tableKeys() []Key {
	return keysOf(ScopeTable, "hoodie.", []row{
		{"database.name", nil, KindString, "", "", Honoured, "Database of the table; part of the checksum."},
		{"table.name", nil, KindString, "", "", Honoured, "Name of the table. Required."},
		{"table.type", nil, KindEnum, "COPY_ON_WRITE", "", Honoured, "COPY_ON_WRITE or MERGE_ON_READ. Required to open a table."},
		{"table.version", nil, KindInt, "", "", Honoured, "Version of the table format. 1 to 6, 8 and 9 are read; everything else is refused."},
		{"table.initial.version", nil, KindInt, "", "1.0.0", Kept, "Version at creation."},
		{"timeline.layout.version", nil, KindInt, "", "", Honoured, "1 for table versions up to 6, 2 from version 8."},
		{"table.format", nil, KindEnum, "native", "1.1.0", Honoured, "Only native tables can be read."},
		{"table.recordkey.fields", nil, KindList, "", "", Honoured, "Record key fields; absent for automatic keys."},
		{"table.partition.fields", nil, KindList, "", "", Honoured, "Partition fields; with `:type` for a custom key generator from version 8."},
		{"table.precombine.field", nil, KindList, "", "", Honoured, "Ordering fields in versions up to 8."},
		{"table.ordering.fields", []string{"hoodie.table.precombine.field"}, KindList, "", "1.1.0", Honoured, "Ordering fields in version 9."},
		{"table.keygenerator.class", nil, KindClass, "", "", Honoured, "Key generator of 0.x tables."},
		{"table.keygenerator.type", nil, KindEnum, "", "1.0.0", Honoured, "Key generator: SIMPLE, COMPLEX, TIMESTAMP, CUSTOM, NON_PARTITION, GLOBAL_DELETE and others."},
		{"table.complex.keygen.encoding", nil, KindEnum, "", "", Honoured, "FIELD_PREFIXED or VALUE_ONLY: text of a one-field complex key. Wins over everything."},
		{"table.base.file.format", []string{"hoodie.table.ro.file.format"}, KindEnum, "PARQUET", "", Honoured, "PARQUET, ORC or HFILE."},
		{"table.log.file.format", []string{"hoodie.table.rt.file.format"}, KindEnum, "HOODIE_LOG", "", Honoured, "Format of log files."},
		{"table.multiple.base.file.formats.enable", nil, KindBool, "false", "1.0.0", Honoured, "The format of a base file is told by its extension."},
		{"table.create.schema", nil, KindString, "", "", Honoured, "Avro schema of the data columns at creation."},
		{"table.timeline.timezone", nil, KindEnum, "LOCAL", "", Honoured, "LOCAL or UTC: zone in which instant times are written."},
		{"table.checksum", nil, KindInt, "", "0.11.0", Honoured, "CRC-32 of database and table name."},
		{"populate.meta.fields", nil, KindBool, "true", "", Honoured, "false: the five meta columns are null."},
		{"partition.metafile.use.base.format", nil, KindBool, "false", "", Honoured, "Partition markers are Parquet or ORC files."},
		{"datasource.write.drop.partition.columns", nil, KindBool, "false", "", Honoured, "Partition columns are not stored in data files."},
		{"compaction.payload.class", nil, KindClass, "", "", Honoured, "Merge rule of versions up to 8. 0.15 assumes OverwriteWithLatestAvroPayload."},
		{"table.legacy.payload.class", nil, KindClass, "", "1.1.0", Kept, "Payload class that the upgrade to version 9 put aside."},
		{"record.merge.mode", []string{"hoodie.write.record.merge.mode"}, KindEnum, "", "1.0.0", Honoured, "EVENT_TIME_ORDERING, COMMIT_TIME_ORDERING or CUSTOM."},
		{"record.merge.strategy.id", []string{"hoodie.compaction.record.merger.strategy", "hoodie.write.record.merge.strategy.id"}, KindString, "", "0.13.0", Honoured, "Identifies the merge strategy. 0.15 assumes eeb8d96f-b1e4-49fd-bbf8-28ac514178e5."},
		{"table.partial.update.mode", nil, KindEnum, "", "1.1.0", Honoured, "IGNORE_DEFAULTS or FILL_UNAVAILABLE."},
		{"record.merge.property.<x>", nil, KindString, "", "1.1.0", Honoured, "Properties of the merge rule; x is a whole key."},
		{"write.partial.update.unavailable.value", nil, KindString, "", "1.1.0", Honoured, "Marker of values that the source did not send; read only behind `hoodie.record.merge.property.`."},
		{"table.cdc.enabled", nil, KindBool, "false", "0.13.0", Honoured, "Change data capture."},
		{"table.cdc.supplemental.logging.mode", nil, KindEnum, "DATA_BEFORE_AFTER", "0.13.0", Honoured, "DATA_BEFORE_AFTER, DATA_BEFORE or OP_KEY_ONLY."},
		{"table.metadata.partitions", nil, KindList, "", "0.11.0", Honoured, "Ready partitions of the metadata table. Removed with the metadata table when it is not maintained."},
		{"table.metadata.partitions.inflight", nil, KindList, "", "0.11.0", Honoured, "Partitions of the metadata table being built: not read."},
		{"table.index.defs.path", nil, KindString, "", "1.0.0", Honoured, "File with the definitions of indexes."},
		{"table.secondary.indexes.metadata", nil, KindString, "", "0.13.0", Kept, "Unused."},
		{"table.partition_extractor_class", nil, KindClass, "", "1.2.0", Honoured, "How catalog sync splits partition paths."},
		{"archivelog.folder", nil, KindString, "archived", "", Honoured, "Archive of layout 1 below .hoodie."},
		{"timeline.path", nil, KindString, "timeline", "1.0.0", Honoured, "Active timeline of layout 2 below .hoodie."},
		{"timeline.history.path", nil, KindString, "history", "1.0.0", Honoured, "Archive of layout 2 below the timeline."},
		{"bootstrap.base.path", nil, KindString, "", "", Honoured, "Where the rows of metadata-only bootstrapped file groups lie. Such groups are refused, all others are read."},
		{"bootstrap.index.enable", nil, KindBool, "true", "", Kept, "Index of bootstrapped files."},
		{"bootstrap.index.class", nil, KindClass, "org.apache.hudi.common.bootstrap.index.hfile.HFileBootstrapIndex", "", Kept, "Index of bootstrapped files."},
		{"bootstrap.index.type", nil, KindEnum, "HFILE", "1.0.0", Kept, "Index of bootstrapped files."},
	})
}

func readKeys() []Key {
	keys := keysOf(ScopeRead, "", []row{
		{"as.of.instant", nil, KindString, "", "", Honoured, "Time travel: the table as it was at this time."},
	})
	keys = append(keys, keysOf(ScopeRead, "hoodie.", []row{
		{"datasource.query.type", []string{"hoodie.datasource.view.type"}, KindEnum, "snapshot", "", Honoured, "snapshot, read_optimized or incremental."},
		{"datasource.merge.type", nil, KindEnum, "payload_combine", "", Honoured, "skip_merge returns base and log rows unmerged."},
		{"datasource.read.begin.instanttime", nil, KindString, "", "", Honoured, "Start of an incremental query, exclusive."},
		{"datasource.read.end.instanttime", nil, KindString, "", "", Honoured, "End of an incremental query, inclusive; the latest instant when absent."},
		{"datasource.query.incremental.format", nil, KindEnum, "latest_state", "0.13.0", Honoured, "latest_state or cdc."},
		{"datasource.read.incr.table.version", nil, KindInt, "", "1.0.0", Honoured, "Forces the time rule of that table version on incremental queries."},
		{"datasource.read.streaming.table.version", nil, KindInt, "", "1.0.0", Honoured, "The same for streaming sources."},
		{"datasource.read.schema.use.end.instanttime", nil, KindBool, "false", "", Honoured, "Rows in the schema of the end instant."},
		{"datasource.read.incr.path.glob", nil, KindString, "", "", Honoured, "Only files whose path matches."},
		{"datasource.read.incr.filters", nil, KindList, "", "", Honoured, "Predicates of an incremental query."},
		{"datasource.read.incr.fallback.fulltablescan.enable", nil, KindBool, "true", "", Honoured, "Scan the snapshot when files of the range are gone. Default false up to 1.0.x."},
		{"datasource.read.paths", nil, KindList, "", "", Honoured, "Files of the table to read."},
		{"datasource.read.extract.partition.values.from.path", nil, KindBool, "false", "", Honoured, "Partition columns come from the path."},
		{"read.timeline.holes.resolution.policy", nil, KindEnum, "FAIL", "0.14.0", Honoured, "FAIL, BLOCK or USE_TRANSITION_TIME: what to do about pending instants below completed ones."},
		{"schema.on.read.enable", nil, KindBool, "false", "0.11.0", Honoured, "Full schema evolution by field ids."},
		{"enable.data.skipping", nil, KindBool, "true", "", Honoured, "Prune files with column statistics."},
		{"metadata.enable", nil, KindBool, "true", "", Honoured, "List files and partitions through the metadata table."},
		{"incremental.use.database", nil, KindBool, "false", "", Honoured, "The consume keys name the table as db.table."},
		{"query.as.ro.table", nil, KindBool, "false", "", Honoured, "Catalog property: read base files only."},
	})...)
	return append(keys, keysOf(ScopeRead, "hoodie.", []row{
		{"<table>.consume.mode", nil, KindEnum, "SNAPSHOT", "", Honoured, "SNAPSHOT or INCREMENTAL, as Hive sets it per table."},
		{"<table>.consume.start.timestamp", nil, KindString, "", "", Honoured, "Start of an incremental query, exclusive."},
		{"<table>.consume.max.commits", nil, KindInt, "1", "", Honoured, "Commits to read; -1 for all."},
		{"<table>.consume.commit", nil, KindString, "", "", Honoured, "Newest instant to read."},
		{"<table>.consume.pending.commits", nil, KindBool, "false", "", Ignored, "Read pending commits."},
		{"<table>.ro.stop.at.compaction", nil, KindBool, "true", "", Honoured, "Stop before the first pending compaction."},
	})...)
}

func writeKeys() []Key {
	keys := keysOf(ScopeWrite, "hoodie.datasource.write.", []row{
		{"operation", nil, KindEnum, "upsert", "", Honoured, "upsert, insert, bulk_insert, delete, insert_overwrite, insert_overwrite_table or delete_partition."},
		{"table.type", []string{"hoodie.datasource.write.storage.type"}, KindEnum, "COPY_ON_WRITE", "", Honoured, "Type of a new table."},
		{"table.name", nil, KindString, "", "", Honoured, "Table name; `hoodie.table.name` wins."},
		{"precombine.field", nil, KindList, "", "", Honoured, "Ordering fields. Default `ts` up to 0.15."},
		{"payload.class", nil, KindClass, "", "", Honoured, "Merge rule of a new table."},
		{"insert.drop.duplicates", nil, KindBool, "false", "", Honoured, "Drop incoming rows whose key is stored."},
		{"row.writer.enable", nil, KindBool, "true", "", Ignored, "Spark's row writer for bulk inserts."},
		{"commitmeta.key.prefix", nil, KindString, "_", "", Honoured, "Options with this prefix go into the commit."},
		{"reconcile.schema", nil, KindBool, "false", "", Honoured, "Keep the table's schema where the batch has fewer columns."},
		{"partitions.to.delete", nil, KindList, "", "", Honoured, "Partitions that delete_partition removes; `*` matches any text."},
		{"schema.allow.auto.evolution.column.drop", nil, KindBool, "false", "", Honoured, "Columns that the rows lack leave the table; their values are lost where files are rewritten."},
		{"streaming.retry.count", nil, KindInt, "3", "", Ignored, "Spark structured streaming."},
		{"streaming.retry.interval.ms", nil, KindInt, "2000", "", Ignored, "Spark structured streaming."},
		{"streaming.ignore.failed.batch", nil, KindBool, "true", "", Ignored, "Spark structured streaming."},
	})
	return append(keys, keysOf(ScopeWrite, "hoodie.", []row{
		{"write.table.version", nil, KindInt, "", "1.0.0", Honoured, "Version of a new table; Sluice makes version 6 when nothing is said."},
		{"write.schema", nil, KindString, "", "", Honoured, "Overrides the schema of the batch."},
		{"write.set.null.for.missing.columns", nil, KindBool, "false", "", Honoured, "Fill columns that the batch lacks with null."},
		{"write.record.merge.custom.implementation.classes", nil, KindList, "", "1.0.0", Refused, "Java mergers can't run here."},
		{"payload.delete.field", nil, KindString, "", "", Honoured, "Column that marks deletes."},
		{"payload.delete.marker", nil, KindString, "", "", Honoured, "Value of that column that means delete."},
		{"payload.ordering.field", nil, KindString, "", "", Honoured, "Ordering field of payload classes."},
		{"payload.event.time.field", nil, KindString, "", "", Honoured, "Event time field of payload classes."},
		{"allow.operation.metadata.field", nil, KindBool, "false", "", Refused, "Change log tables with `_hoodie_operation`."},
		{"combine.before.insert", nil, KindBool, "false", "", Honoured, "Combine rows of one key before an insert."},
		{"combine.before.upsert", nil, KindBool, "true", "", Honoured, "Combine rows of one key before an upsert."},
		{"combine.before.delete", nil, KindBool, "true", "", Honoured, "Drop duplicate keys before a delete."},
		{"merge.allow.duplicate.on.inserts", nil, KindBool, "true", "", Honoured, "Inserts may repeat stored keys. False in releases before 0.15."},
		{"datasource.insert.dup.policy", nil, KindEnum, "none", "0.14.0", Honoured, "none, drop or fail."},
		{"spark.sql.insert.into.operation", nil, KindEnum, "insert", "0.14.0", Honoured, "Operation of INSERT INTO."},
		{"sql.insert.mode", nil, KindEnum, "upsert", "", Honoured, "upsert, strict or non-strict: INSERT INTO before 0.14."},
		{"sql.bulk.insert.enable", nil, KindBool, "false", "", Honoured, "INSERT INTO as bulk insert, before 0.14."},
		{"parquet.small.file.limit", nil, KindInt, "104857600", "", Honoured, "Files below this many bytes take inserts; 0 turns it off."},
		{"parquet.max.file.size", nil, KindInt, "125829120", "", Honoured, "Target size of base files in bytes."},
		{"parquet.block.size", nil, KindInt, "125829120", "", Honoured, "Row group size in bytes."},
		{"parquet.page.size", nil, KindInt, "1048576", "", Honoured, "Page size in bytes."},
		{"parquet.compression.codec", nil, KindEnum, "gzip", "", Honoured, "gzip, snappy, zstd, uncompressed. lz4 is read, not written."},
		{"parquet.dictionary.enabled", nil, KindBool, "true", "", Honoured, "Dictionaries for columns whose values repeat."},
		{"parquet.writelegacyformat.enabled", nil, KindBool, "false", "", Ignored, "Sluice writes three-level lists always."},
		{"logfile.data.block.format", nil, KindEnum, "", "", Honoured, "avro, parquet or hfile blocks."},
		{"logfile.max.size", nil, KindInt, "1073741824", "", Honoured, "Log file size in bytes."},
		{"logfile.data.block.max.size", nil, KindInt, "268435456", "", Honoured, "Log block size in bytes."},
		{"merge.small.file.group.candidates.limit", nil, KindInt, "1", "", Honoured, "File groups per partition that take inserts on MERGE_ON_READ."},
		{"copyonwrite.insert.split.size", nil, KindInt, "500000", "", Honoured, "Records per new file group."},
		{"copyonwrite.insert.auto.split", nil, KindBool, "true", "", Honoured, "Derive it from record sizes."},
		{"copyonwrite.record.size.estimate", nil, KindInt, "1024", "", Honoured, "First guess of a record's size in bytes."},
		{"record.size.estimation.threshold", nil, KindFloat, "1.0", "", Honoured, "A commit counts for the estimate from this share of the small file limit."},
		{"bulkinsert.sort.mode", nil, KindEnum, "NONE", "", Honoured, "NONE, GLOBAL_SORT, PARTITION_SORT, PARTITION_PATH_REPARTITION, PARTITION_PATH_REPARTITION_AND_SORT."},
		{"bulkinsert.user.defined.partitioner.class", nil, KindClass, "", "", Refused, "Java partitioners can't run here."},
		{"bulkinsert.user.defined.partitioner.sort.columns", nil, KindList, "", "", Honoured, "Columns to sort by."},
		{"upsert.shuffle.parallelism", nil, KindInt, "0", "", Ignored, "Spark partitions."},
		{"insert.shuffle.parallelism", nil, KindInt, "0", "", Ignored, "Spark partitions."},
		{"bulkinsert.shuffle.parallelism", nil, KindInt, "0", "", Ignored, "Spark partitions."},
		{"delete.shuffle.parallelism", nil, KindInt, "0", "", Ignored, "Spark partitions."},
		{"finalize.write.parallelism", nil, KindInt, "200", "", Ignored, "Spark partitions."},
		{"index.type", nil, KindEnum, "SIMPLE", "", Honoured, "BLOOM, SIMPLE, GLOBAL_BLOOM, GLOBAL_SIMPLE, BUCKET, RECORD_INDEX, GLOBAL_RECORD_LEVEL_INDEX, RECORD_LEVEL_INDEX, INMEMORY."},
		{"index.bloom.num_entries", nil, KindInt, "60000", "", Honoured, "Keys that a bloom filter is made for."},
		{"index.bloom.fpp", nil, KindFloat, "0.000000001", "", Honoured, "False positives of a bloom filter."},
		{"bloom.index.filter.type", nil, KindEnum, "DYNAMIC_V0", "", Honoured, "SIMPLE or DYNAMIC_V0."},
		{"bloom.index.filter.dynamic.max.entries", nil, KindInt, "100000", "", Honoured, "Largest dynamic filter."},
		{"bloom.index.prune.by.ranges", nil, KindBool, "true", "", Honoured, "Use the key range of a file."},
		{"bloom.index.update.partition.path", nil, KindBool, "true", "", Honoured, "A row moves when its partition changes (GLOBAL_BLOOM)."},
		{"simple.index.update.partition.path", nil, KindBool, "true", "", Honoured, "The same for GLOBAL_SIMPLE."},
		{"record.index.update.partition.path", nil, KindBool, "false", "0.14.0", Honoured, "The same for the record index."},
		{"bucket.index.hash.field", nil, KindList, "", "", Honoured, "Key fields that choose the bucket."},
		{"bucket.index.num.buckets", nil, KindInt, "256", "", Honoured, "Buckets per partition; 4 in Flink."},
		{"index.bucket.engine", nil, KindEnum, "SIMPLE", "", Honoured, "SIMPLE; CONSISTENT_HASHING is refused."},
		{"keep.min.commits", nil, KindInt, "20", "", Honoured, "Instants that stay on the active timeline."},
		{"keep.max.commits", nil, KindInt, "30", "", Honoured, "Instants at which archival begins."},
		{"archive.automatic", nil, KindBool, "true", "", Honoured, "Archive after a write."},
		{"clean.automatic", nil, KindBool, "true", "", Honoured, "Clean after a write."},
		{"clean.async", nil, KindBool, "false", "", Ignored, "Clean beside a write."},
		{"clean.policy", []string{"hoodie.cleaner.policy"}, KindEnum, "KEEP_LATEST_COMMITS", "", Honoured, "KEEP_LATEST_COMMITS, KEEP_LATEST_FILE_VERSIONS or KEEP_LATEST_BY_HOURS."},
		{"clean.commits.retained", []string{"hoodie.cleaner.commits.retained"}, KindInt, "10", "", Honoured, "Commits whose files stay."},
		{"clean.fileversions.retained", []string{"hoodie.cleaner.fileversions.retained"}, KindInt, "3", "", Honoured, "Slices that stay per file group."},
		{"clean.hours.retained", []string{"hoodie.cleaner.hours.retained"}, KindInt, "24", "", Honoured, "Hours of history that stay."},
		{"clean.failed.writes.policy", []string{"hoodie.cleaner.policy.failed.writes"}, KindEnum, "EAGER", "", Honoured, "EAGER or LAZY rollback of failed writes."},
		{"clustering.inline", nil, KindBool, "false", "", Honoured, "Cluster after a write."},
		{"clustering.async.enabled", nil, KindBool, "false", "", Honoured, "Cluster beside a write."},
		{"clustering.plan.strategy.sort.columns", nil, KindList, "", "", Honoured, "Columns to sort by."},
		{"clustering.plan.strategy.small.file.limit", nil, KindInt, "314572800", "", Honoured, "Files below this many bytes are clustered."},
		{"clustering.plan.strategy.target.file.max.bytes", nil, KindInt, "1073741824", "", Honoured, "Target size of clustered files."},
		{"compact.inline", nil, KindBool, "false", "", Honoured, "Compact after a write."},
		{"compact.schedule.inline", nil, KindBool, "false", "", Honoured, "Plan a compaction after a write."},
		{"compact.inline.max.delta.commits", nil, KindInt, "5", "", Honoured, "Delta commits between compactions."},
		{"heartbeat.<x>", nil, KindString, "", "", Ignored, "Heartbeat details."},
		{"client.heartbeat.interval_in_ms", nil, KindInt, "60000", "", Honoured, "Heartbeat of a writer."},
		{"client.heartbeat.tolerable.misses", nil, KindInt, "2", "", Honoured, "Missed heartbeats before a writer counts as dead."},
		{"write.concurrency.mode", nil, KindEnum, "SINGLE_WRITER", "", Honoured, "SINGLE_WRITER or OPTIMISTIC_CONCURRENCY_CONTROL; NON_BLOCKING_CONCURRENCY_CONTROL is refused."},
		{"write.lock.provider", nil, KindClass, "", "", Honoured, "FileSystemBasedLockProvider and StorageBasedLockProvider are spoken; others are refused."},
		{"write.lock.filesystem.expire", nil, KindInt, "0", "", Honoured, "Minutes after which a lock file counts as forgotten; 0 never."},
		{"write.lock.filesystem.path", nil, KindString, "", "", Honoured, "Folder of the lock file."},
		{"write.markers.type", nil, KindEnum, "TIMELINE_SERVER_BASED", "", Honoured, "Both kinds are read; DIRECT is written."},
		{"embed.timeline.server", nil, KindBool, "true", "", Ignored, "Timeline server of the Java writer."},
		{"metadata.index.column.stats.enable", nil, KindBool, "", "0.11.0", Ignored, "Column statistics in the metadata table."},
		{"metadata.index.bloom.filter.enable", nil, KindBool, "false", "0.11.0", Ignored, "Bloom filters in the metadata table."},
		{"metadata.record.index.enable", nil, KindBool, "false", "0.14.0", Ignored, "Record index in the metadata table."},
		{"rollback.using.markers", nil, KindBool, "true", "", Honoured, "Find the files of a failed write by its markers."},
		{"avro.schema.validate", nil, KindBool, "false", "", Honoured, "Check the batch's schema against the table's."},
		{"write.auto.upgrade", nil, KindBool, "true", "1.0.0", Ignored, "Sluice never upgrades a table implicitly."},
		{"archive.merge.enable", nil, KindBool, "false", "0.11.0", Ignored, "Merge small archive files."},
		{"commits.archival.batch", nil, KindInt, "10", "", Ignored, "Instants per block of the archive."},
		{"timeline.compaction.batch.size", nil, KindInt, "10", "1.0.0", Ignored, "Archive files of a layer that are merged into the next."},
		{"clustering.inline.max.commits", nil, KindInt, "4", "", Honoured, "Commits between clusterings."},
		{"log.compaction.enable", nil, KindBool, "false", "0.13.0", Ignored, "Log compaction; what other writers compacted so is read."},
		{"log.compaction.inline", nil, KindBool, "false", "0.13.0", Ignored, "Log compaction after a write."},
		{"log.compaction.blocks.threshold", nil, KindInt, "5", "0.13.0", Ignored, "Blocks from which logs are compacted."},
		{"log.record.reader.use.scanV2", nil, KindBool, "false", "0.13.0", Ignored, "Log reader of the Java writer."},
		{"write.record.positions", nil, KindBool, "true", "1.0.0", Ignored, "Positions in log blocks; they are read where they are, not written."},
		{"spark.sql.merge.into.partial.updates", nil, KindBool, "true", "1.0.0", Ignored, "MERGE INTO logs changed columns only; such logs are read, not written."},
		{"metadata.<x>", nil, KindString, "", "", Ignored, "Details of the metadata table that the Java writer maintains."},
		{"bootstrap.<x>", nil, KindString, "", "", Refused, "Options of the bootstrap operation."},
		{"<x>.parallelism", nil, KindInt, "", "", Ignored, "Spark partitions of one step; use --parallelism."},
		{"memory.<x>", nil, KindString, "", "", Ignored, "Memory of the Java writer; use --memory."},
	})...)
}

func keygenKeys() []Key {
	keys := keysOf(ScopeKeyGen, "hoodie.", []row{
		{"datasource.write.recordkey.field", nil, KindList, "", "", Honoured, "Record key fields. Default `uuid` up to 0.13; none means automatic keys."},
		{"datasource.write.partitionpath.field", nil, KindList, "", "", Honoured, "Partition fields; `field:type` for the custom generator."},
		{"datasource.write.keygenerator.class", nil, KindClass, "", "", Honoured, "Key generator class; wins over the type."},
		{"datasource.write.keygenerator.type", nil, KindEnum, "", "", Honoured, "Key generator type, in any case."},
		{"datasource.write.hive_style_partitioning", nil, KindBool, "false", "", Honoured, "Segments of the form `field=value`."},
		{"datasource.write.partitionpath.urlencode", nil, KindBool, "false", "", Honoured, "Escape partition values."},
		{"datasource.write.keygenerator.consistent.logical.timestamp.enabled", nil, KindBool, "false", "", Honoured, "Text form of timestamps in keys."},
		{"datasource.write.slash.separated.date.partitioning", nil, KindBool, "false", "1.2.0", Honoured, "`yyyy-MM-dd` becomes `yyyy/MM/dd`."},
		{"write.complex.keygen.new.encoding", nil, KindBool, "false", "", Honoured, "Bare value for one-field complex keys up to version 8."},
		{"write.complex.keygen.validation.enable", nil, KindBool, "true", "", Honoured, "Refuse a table whose encoding can't be told."},
		{"keygen.datetime.parser.class", []string{"hoodie.deltastreamer.keygen.datetime.parser.class"}, KindClass, "org.apache.hudi.keygen.parser.HoodieDateTimeParser", "", Honoured, "Only the default is accepted."},
		{"record.key.gen.instant.time", nil, KindString, "", "0.14.0", Ignored, "Set by the Java writer for automatic keys."},
		{"record.key.gen.partition.id", nil, KindInt, "", "0.14.0", Ignored, "Set by the Java writer for automatic keys."},
		{"sql.origin.keygen.class", nil, KindClass, "", "", Honoured, "Generator behind Spark SQL's wrapper."},
		{"sql.partition.schema", nil, KindString, "", "", Ignored, "Set by Spark SQL."},
	})
	times := keysOf(ScopeKeyGen, "hoodie.keygen.timebased.", []row{
		{"timestamp.type", nil, KindEnum, "", "", Honoured, "UNIX_TIMESTAMP, DATE_STRING, MIXED, EPOCHMILLISECONDS, EPOCHMICROSECONDS or SCALAR."},
		{"timestamp.scalar.time.unit", nil, KindEnum, "SECONDS", "", Honoured, "Unit of SCALAR, NANOSECONDS to DAYS."},
		{"input.dateformat", nil, KindString, "", "", Honoured, "Patterns of text values."},
		{"input.dateformat.list.delimiter.regex", nil, KindString, ",", "", Honoured, "Separates the patterns."},
		{"output.dateformat", nil, KindString, "", "", Honoured, "Pattern of the partition path."},
		{"timezone", nil, KindString, "", "", Honoured, "Zone of both sides; none when absent."},
		{"input.timezone", nil, KindString, "", "", Honoured, "Zone of text without offset."},
		{"output.timezone", nil, KindString, "", "", Honoured, "Zone of the result."},
	})
	for i := range times {
		times[i].Old = []string{"hoodie.deltastreamer.keygen.timebased." + times[i].Name[len("hoodie.keygen.timebased."):]}
	}
	return append(keys, times...)
}

// streamerKeys also answer to the prefix of releases before 0.14, hoodie.deltastreamer.
func streamerKeys() []Key {
	const now, before = "hoodie.streamer.", "hoodie.deltastreamer."
	keys := keysOf(ScopeStreamer, now, []row{
		{"source.dfs.root", nil, KindString, "", "", Honoured, "Folder of a file source."},
		{"source.input.selector", nil, KindClass, "org.apache.hudi.utilities.sources.helpers.DFSPathSelector", "", Honoured, "DFSPathSelector or DatePartitionPathSelector."},
		{"source.dfs.datepartitioned.selector.depth", nil, KindInt, "0", "", Honoured, "Depth of the date folder; 0 means no pruning."},
		{"source.dfs.datepartitioned.selector.lookback.days", nil, KindInt, "2", "", Honoured, "Days to look back."},
		{"source.dfs.datepartitioned.selector.currentdate", nil, KindString, "", "", Honoured, "Date that counts as today."},
		{"source.dfs.datepartitioned.selector.parallelism", nil, KindInt, "20", "", Ignored, "Listing parallelism."},
		{"source.dfs.datepartitioned.date.format", nil, KindString, "yyyy-MM-dd", "", Honoured, "Format of the date folder."},
		{"source.parquet.dfs.merge_schema.enable", nil, KindBool, "false", "", Ignored, "The schemas of all files of a round are always united."},
		{"csv.<option>", nil, KindString, "", "", Honoured, "CSV options: sep, encoding, quote, escape, header, nullValue and the others of Spark."},
		{"source.sql.sql.query", nil, KindString, "", "", Refused, "Query of SqlSource."},
		{"source.sql.file", nil, KindString, "", "", Refused, "File with the statements of SqlFileBasedSource."},
		{"source.sql.checkpoint.emit", nil, KindBool, "false", "", Refused, "Current time as checkpoint."},
		{"jdbc.<option>", nil, KindString, "", "", Refused, "JdbcSource: url, user, password, password.file, driver.class, table.name, incr.pull, table.incr.column.name, incr.fallback.to.full.fetch, storage.level, extra.options."},
		{"source.hoodieincr.path", nil, KindString, "", "", Honoured, "Table that HoodieIncrSource reads."},
		{"source.hoodieincr.num_instants", nil, KindInt, "5", "", Honoured, "Instants per round."},
		{"source.hoodieincr.missing.checkpoint.strategy", nil, KindEnum, "", "", Honoured, "READ_LATEST or READ_UPTO_LATEST_COMMIT."},
		{"source.hoodieincr.drop.all.meta.fields.from.source", nil, KindBool, "false", "", Honoured, "Drop `_hoodie_partition_path` too."},
		{"source.incrpull.root", nil, KindString, "", "", Refused, "HiveIncrPullSource."},
		{"source.kafka.<option>", nil, KindString, "", "", Refused, "Kafka sources: topic, checkpoint.type, minPartitions, enable.commit.offset, enable.failOnDataLoss, append.offsets."},
		{"kafka.source.maxEvents", nil, KindInt, "5000000", "", Refused, "Kafka sources."},
		{"source.cloud.<option>", nil, KindString, "", "", Refused, "Cloud event sources: meta.*, data.*."},
		{"schemaprovider.source.schema.file", nil, KindString, "", "", Honoured, "Avro schema of the source."},
		{"schemaprovider.target.schema.file", nil, KindString, "", "", Honoured, "Avro schema of the table; the source's when absent."},
		{"schemaprovider.registry.url", nil, KindString, "", "", Honoured, "URL of a registered schema."},
		{"schemaprovider.registry.targetUrl", nil, KindString, "", "", Honoured, "URL of the table's schema."},
		{"schemaprovider.registry.baseUrl", nil, KindString, "", "", Honoured, "Multi-table runs: base of the URL."},
		{"schemaprovider.registry.urlSuffix", nil, KindString, "", "", Honoured, "Multi-table runs: end of the URL."},
		{"schemaprovider.source.schema.jdbc.<option>", nil, KindString, "", "", Refused, "Schema from a database."},
		{"transformer.sql", nil, KindString, "", "", Honoured, "Query of SqlQueryBasedTransformer; `<SRC>` is the batch."},
		{"transformer.sql.file", nil, KindString, "", "", Honoured, "File with the statements of SqlFileBasedTransformer."},
		{"checkpoint.force.skip", nil, KindBool, "false", "", Honoured, "Store no checkpoint."},
		{"checkpoint.provider.path", nil, KindString, "", "", Honoured, "Path for the initial checkpoint provider."},
		{"ingestion.tablesToBeIngested", nil, KindList, "", "", Honoured, "Multi-table runs: `db.table` names."},
		{"ingestion.targetBasePath", nil, KindString, "", "", Honoured, "Multi-table runs: path of one table."},
		{"ingestion.<db.table>.configFile", nil, KindString, "", "", Honoured, "Multi-table runs: properties of one table."},
	})
	for i := range keys {
		keys[i].Old = append(keys[i].Old, before+keys[i].Name[len(now):])
	}
	keys = append(keys, keysOf(ScopeStreamer, "", []row{
		{"max.rounds.without.new.data.to.shutdown", nil, KindInt, "3", "", Honoured, "Rounds without new data after which NoNewDataTerminationStrategy ends a continuous run."},
	})...)
	return append(keys, keysOf(ScopeStreamer, "hoodie.errortable.", []row{
		{"enable", nil, KindBool, "false", "", Honoured, "Records that can't be written go into a table of their own: reason, payload, source, instant."},
		{"base.path", nil, KindString, "", "", Honoured, "Path of the error table."},
		{"target.table.name", nil, KindString, "rejects", "", Honoured, "Name of the error table."},
		{"write.class", nil, KindClass, "", "", Ignored, "The built-in error table is used."},
		{"validate.targetschema.enable", nil, KindBool, "false", "", Ignored, "Rows are always held against the schema."},
		{"validate.recordcreation.enable", nil, KindBool, "true", "", Ignored, "Rows are always held against the schema."},
		{"write.failure.strategy", nil, KindEnum, "ROLLBACK_COMMIT", "", Honoured, "ROLLBACK_COMMIT or LOG_ERROR."},
	})...)
}

func syncKeys() []Key {
	keys := keysOf(ScopeSync, "hoodie.datasource.hive_sync.", []row{
		{"enable", nil, KindBool, "false", "", Honoured, "Sync to Hive after a write; deprecated for `hoodie.datasource.meta.sync.enable`."},
		{"mode", nil, KindEnum, "", "", Honoured, "hms, glue; jdbc and hiveql print statements."},
		{"database", nil, KindString, "default", "", Honoured, "Database in the catalog."},
		{"use_jdbc", nil, KindBool, "true", "", Honoured, "Deprecated form of mode."},
		{"table", nil, KindString, "", "", Honoured, "Table in the catalog; the table's own name when absent."},
		{"jdbcurl", nil, KindString, "jdbc:hive2://localhost:10000", "", Ignored, "HiveServer2."},
		{"username", nil, KindString, "hive", "", Honoured, "User."},
		{"password", nil, KindString, "hive", "", Ignored, "HiveServer2."},
		{"metastore.uris", nil, KindString, "thrift://localhost:9083", "", Honoured, "Metastore."},
		{"base_file_format", nil, KindEnum, "PARQUET", "", Honoured, "Format of base files."},
		{"auto_create_database", nil, KindBool, "true", "", Honoured, "Create the database."},
		{"partition_extractor_class", nil, KindClass, "org.apache.hudi.hive.MultiPartKeysValueExtractor", "", Honoured, "How partition paths are split."},
		{"partition_fields", nil, KindList, "", "", Honoured, "Partition columns; the table's own when absent."},
		{"ignore_exceptions", nil, KindBool, "false", "", Honoured, "Go on after an error."},
		{"skip_ro_suffix", nil, KindBool, "false", "", Honoured, "The read-optimized table has no suffix."},
		{"assume_date_partitioning", nil, KindBool, "false", "", Honoured, "0.x: partitions are yyyy/mm/dd."},
		{"support_timestamp", nil, KindBool, "false", "", Honoured, "Timestamps stay timestamps."},
		{"use_pre_apache_input_format", nil, KindBool, "false", "", Honoured, "Class names of com.uber.hoodie."},
		{"sync_as_datasource", nil, KindBool, "true", "", Honoured, "Add the properties that Spark reads."},
		{"table_properties", nil, KindString, "", "", Honoured, "More table properties, `k=v` lines."},
		{"serde_properties", nil, KindString, "", "", Honoured, "More SerDe properties, `k=v` lines."},
		{"schema_string_length_thresh", nil, KindInt, "4000", "", Honoured, "Longest schema piece in one property."},
		{"create_managed_table", nil, KindBool, "false", "", Honoured, "Managed instead of external."},
		{"omit_metadata_fields", nil, KindBool, "false", "", Honoured, "Leave out the meta columns."},
		{"batch_num", nil, KindInt, "1000", "", Honoured, "Partitions per call."},
		{"bucket_sync", nil, KindBool, "false", "", Honoured, "Register buckets."},
		{"bucket_sync_spec", nil, KindString, "", "", Honoured, "Bucket clause."},
		{"sync_comment", nil, KindBool, "false", "", Honoured, "Column comments."},
		{"table.strategy", nil, KindEnum, "ALL", "0.13.0", Honoured, "ALL, RO or RT."},
		{"filter_pushdown_enabled", nil, KindBool, "false", "", Honoured, "Fetch only partitions that changed."},
		{"filter_pushdown_max_size", nil, KindInt, "1000", "", Honoured, "Largest filter."},
		{"use_spark_catalog", nil, KindBool, "false", "", Ignored, "Spark's catalog."},
		{"batching.enabled", nil, KindBool, "false", "1.3.0", Ignored, "Batches in parallel."},
		{"batching.threads", nil, KindInt, "4", "1.3.0", Ignored, "Threads for batches."},
		{"recreate_table_on_error", nil, KindBool, "false", "1.2.0", Honoured, "Drop and create when an alteration fails."},
	})
	keys = append(keys, keysOf(ScopeSync, "hoodie.", []row{
		{"datasource.meta.sync.enable", nil, KindBool, "false", "", Honoured, "Sync after a write."},
		{"datasource.meta.sync.base.path", nil, KindString, "", "", Honoured, "Path to register."},
		{"datasource.meta_sync.condition.sync", nil, KindBool, "false", "", Honoured, "Only when schema or partitions changed."},
		{"meta.sync.client.tool.class", nil, KindClass, "org.apache.hudi.hive.HiveSyncTool", "", Honoured, "HiveSyncTool or AwsGlueCatalogSyncTool."},
		{"meta.sync.metadata_file_listing", nil, KindBool, "true", "", Honoured, "List partitions through the metadata table."},
		{"meta.sync.decode_partition", nil, KindBool, "false", "", Honoured, "Unescape partition values."},
		{"meta.sync.incremental", nil, KindBool, "true", "", Honoured, "Only partitions written since the last sync."},
		{"meta.sync.no_partition_metadata", nil, KindBool, "false", "", Honoured, "Don't touch partition parameters."},
		{"meta.sync.sync_snapshot_with_table_name", nil, KindBool, "true", "0.14.0", Honoured, "Register the snapshot under the table's own name too."},
		{"meta.sync.touch.partitions.enabled", nil, KindBool, "false", "", Honoured, "Touch partitions that were written."},
		{"meta_sync.spark.version", nil, KindString, "", "", Honoured, "Spark version put into properties."},
	})...)
	return append(keys, keysOf(ScopeSync, "hoodie.datasource.meta.sync.glue.", []row{
		{"skip_table_archive", nil, KindBool, "true", "", Honoured, "Keep no old versions of the table."},
		{"metadata_file_listing", nil, KindBool, "false", "", Honoured, "Athena lists through the metadata table."},
		{"all_partitions_read_parallelism", nil, KindInt, "1", "", Honoured, "1 to 10."},
		{"changed_partitions_read_parallelism", nil, KindInt, "1", "", Honoured, "Parallel calls."},
		{"partition_change_parallelism", nil, KindInt, "1", "", Honoured, "Parallel calls."},
		{"partition_index_fields.enable", nil, KindBool, "false", "", Honoured, "Partition indexes."},
		{"partition_index_fields", nil, KindList, "", "", Honoured, "Fields of the indexes, `;` inside one."},
		{"recreate_table_on_error", nil, KindBool, "false", "", Honoured, "Drop and create when an alteration fails."},
		{"database_name", nil, KindString, "", "", Honoured, "Database in Glue."},
		{"table_name", nil, KindString, "", "", Honoured, "Table in Glue."},
	})...)
}
