// Package merge is the one place that decides between two versions of a record (table format 6.6).
//
// A [Rule] is compiled from a table's properties. Versions meet in three situations, for which payload classes and releases
// of Apache Hudi have rules of their own: two records of one write batch ([Within]), a newer log block against older ones
// ([Scan]), and the outcome against the stored record ([Base]). The logs of a slice are merged first and the base file last.
//
// Streams of Arrow batches go through a [Log]: Add and AddDeletes take the log blocks of one file slice, oldest first, and
// Over streams the base file against them. [Rule.Combine] does the same for single records.
//
// # Whose rules
//
// The table's version decides, not the version of whoever wrote a file:
//
//   - up to 7: the payload class alone, as 0.15.0 reads it; no class means OverwriteWithLatestAvroPayload. Records of
//     several log blocks meet by preCombine, so even that class keeps the greater ordering value among them. An entry of a
//     DELETE block removes the stored record whatever its ordering value, and any record that follows a delete in the logs
//     replaces it.
//   - 8: the merge mode, and for CUSTOM the payload class, as 1.0.2 reads them.
//   - 9: the merge mode with its partial update mode and delete marker, as 1.2.0 reads them; the legacy payload class is
//     not looked at.
//
// Payload classes and mergers without a rule here are refused with [ErrUnsupported].
//
// # Where Java fails or loses rows
//
// Everything that a release answers is answered alike, with these exceptions; in each of them Java throws, or would drop
// what a writer said:
//
//   - A null ordering value orders before every value (Java: ClassCastException, NullPointerException, or "Ordering value
//     is null"). Only where the column is an int, which Java can compare with the Int 0 that it puts for null, null is 0.
//   - Ordering values of unlike types compare by number, or else by type (Java: ClassCastException). Decimals compare by
//     number in every mode. Among log blocks, though, a delete wins over a record whose ordering value has another Java
//     class without being compared, as in Java.
//   - Version 8: a delete without ordering that is followed by an upsert in the logs keeps the stored record hidden, and
//     the upsert stands by itself (1.0.2: ClassCastException, or the stored record is back). Version 9 follows 1.2.0: the
//     delete is forgotten, the upsert meets the stored record by ordering, and the stored record may be back.
//   - Version 8 with a payload class: a record that is a delete by its columns stays a delete among log blocks (1.0.2
//     drops it and keeps the older record).
//   - A record with _hoodie_operation D or -U is a delete under payload classes, too.
//   - MySqlDebeziumAvroPayload: a record without _event_seq, or with one that is no <number>.<number>, is older than any
//     other (Java: HoodieDebeziumAvroPayloadException, NumberFormatException).
//
// Kept as Java has it, although surprising: PartialUpdateAvroPayload in a batch without meta columns returns the later
// arrival where the stronger one is a delete; IGNORE_DEFAULTS compares references, so defaults of text, floating point and
// integers outside of -128 to 127 overwrite; EventTimeAvroPayload knows a custom delete marker for inserts only.
//
// Twins, several base rows of one key, are described at [Log.Over].
package merge
