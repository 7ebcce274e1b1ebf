package keygen

import "strings"

// Write options (key generation 2.1).
const (
	KeyRecordFields    = "hoodie.datasource.write.recordkey.field"
	KeyPartitionFields = "hoodie.datasource.write.partitionpath.field"
	KeyClass           = "hoodie.datasource.write.keygenerator.class"
	KeyType            = "hoodie.datasource.write.keygenerator.type"
	KeyHiveStyle       = "hoodie.datasource.write.hive_style_partitioning"
	KeyURLEncode       = "hoodie.datasource.write.partitionpath.urlencode"
	KeyConsistent      = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"
	KeySlashDates      = "hoodie.datasource.write.slash.separated.date.partitioning"
	KeyNewEncoding     = "hoodie.write.complex.keygen.new.encoding"
	KeyValidation      = "hoodie.write.complex.keygen.validation.enable"
	KeyWriteVersion    = "hoodie.write.table.version"
	KeyAutoInstant     = "_hoodie.record.key.gen.instant.time"
	KeyAutoTask        = "_hoodie.record.key.gen.partition.id"
	KeySQLOrigin       = "hoodie.sql.origin.keygen.class"
	KeySQLSchema       = "hoodie.sql.partition.schema"
	// KeyExpression holds expressions of one's own, see [Options.Properties].
	KeyExpression = "sluice.keygen.expr"
)

// Table properties (key generation 12).
const (
	TableRecordFields    = "hoodie.table.recordkey.fields"
	TablePartitionFields = "hoodie.table.partition.fields"
	TableClass           = "hoodie.table.keygenerator.class"
	TableType            = "hoodie.table.keygenerator.type"
	TableEncoding        = "hoodie.table.complex.keygen.encoding"
	TableVersion         = "hoodie.table.version"
	TableDropColumns     = "hoodie.datasource.write.drop.partition.columns"
)

// Values of TableEncoding.
const (
	FieldPrefixed = "FIELD_PREFIXED"
	ValueOnly     = "VALUE_ONLY"
)

// Time options, below one of the two prefixes.
const (
	timePrefix     = "hoodie.keygen.timebased."
	oldTimePrefix  = "hoodie.deltastreamer.keygen.timebased."
	timeType       = "timestamp.type"
	timeUnit       = "timestamp.scalar.time.unit"
	timeInput      = "input.dateformat"
	timeDelimiter  = "input.dateformat.list.delimiter.regex"
	timeOutput     = "output.dateformat"
	timeZone       = "timezone"
	timeInputZone  = "input.timezone"
	timeOutputZone = "output.timezone"

	keyParserClass    = "hoodie.keygen.datetime.parser.class"
	keyOldParserClass = "hoodie.deltastreamer.keygen.datetime.parser.class"
)

var timeOptions = [...]string{timeType, timeUnit, timeInput, timeDelimiter, timeOutput, timeZone, timeInputZone, timeOutputZone}

// Type is a key generator's type, as in hoodie.table.keygenerator.type, without the suffix _AVRO.
type Type string

// The types (key generation 3.3).
const (
	Simple        Type = "SIMPLE"
	Complex       Type = "COMPLEX"
	Timestamp     Type = "TIMESTAMP"
	Custom        Type = "CUSTOM"
	NonPartition  Type = "NON_PARTITION"
	GlobalDelete  Type = "GLOBAL_DELETE"
	AutoRecord    Type = "AUTO_RECORD"
	MetadataType  Type = "HOODIE_TABLE_METADATA"
	SparkSQL      Type = "SPARK_SQL"
	SparkSQLUUID  Type = "SPARK_SQL_UUID"
	SparkSQLMerge Type = "SPARK_SQL_MERGE_INTO"
	UserProvided  Type = "USER_PROVIDED"
)

const classPackage = "org.apache.hudi.keygen."

// classes maps full class names to the names of their types.
var classes = map[string]string{
	classPackage + "SimpleKeyGenerator":                        "SIMPLE",
	classPackage + "SimpleAvroKeyGenerator":                    "SIMPLE_AVRO",
	classPackage + "ComplexKeyGenerator":                       "COMPLEX",
	classPackage + "ComplexAvroKeyGenerator":                   "COMPLEX_AVRO",
	classPackage + "TimestampBasedKeyGenerator":                "TIMESTAMP",
	classPackage + "TimestampBasedAvroKeyGenerator":            "TIMESTAMP_AVRO",
	classPackage + "CustomKeyGenerator":                        "CUSTOM",
	classPackage + "CustomAvroKeyGenerator":                    "CUSTOM_AVRO",
	classPackage + "NonpartitionedKeyGenerator":                "NON_PARTITION",
	classPackage + "NonpartitionedAvroKeyGenerator":            "NON_PARTITION_AVRO",
	classPackage + "GlobalDeleteKeyGenerator":                  "GLOBAL_DELETE",
	classPackage + "GlobalAvroDeleteKeyGenerator":              "GLOBAL_DELETE_AVRO",
	classPackage + "AutoRecordGenWrapperKeyGenerator":          "AUTO_RECORD",
	classPackage + "AutoRecordGenWrapperAvroKeyGenerator":      "AUTO_RECORD_AVRO",
	"org.apache.hudi.metadata.HoodieTableMetadataKeyGenerator": "HOODIE_TABLE_METADATA",
	"org.apache.spark.sql.hudi.command.SqlKeyGenerator":        "SPARK_SQL",
	"org.apache.spark.sql.hudi.command.UuidKeyGenerator":       "SPARK_SQL_UUID",
	"org.apache.spark.sql.hudi.command.MergeIntoKeyGenerator":  "SPARK_SQL_MERGE_INTO",
}

// TypeOfClass gives the type name that a class is stored under, with the suffix _AVRO where the class has it.
func TypeOfClass(class string, r Release) (string, error) {
	if class == "" {
		return "", &Error{Class: classArgument, Stage: StageConstruct, Row: -1, Message: "Invalid keyGenerator class: ", Field: KeyClass, Hint: "remove the empty option " + KeyClass}
	}
	if t, ok := classes[class]; ok {
		return t, nil
	}
	if !r.userClasses() {
		return "", &Error{Class: classArgument, Stage: StageConstruct, Row: -1, Message: "Unknown keyGenerator class: " + class, Field: KeyClass}
	}
	return string(UserProvided), nil
}

// ClassOf gives the full name of the class that Spark uses for a type; empty when it has none.
func ClassOf(t Type) string {
	for class, name := range classes {
		if name == string(t) {
			return class
		}
	}
	return ""
}

// baseType drops the suffix of the engine-neutral twin, which makes the same keys.
func baseType(name string) Type { return Type(strings.TrimSuffix(strings.ToUpper(name), "_AVRO")) }

// SparkClass is the Spark class that stands for an engine-neutral one; other names are given back.
func SparkClass(class string) string {
	if name, ok := classes[class]; ok && strings.HasSuffix(name, "_AVRO") {
		return ClassOf(baseType(name))
	}
	return class
}

// Infer chooses the generator from the options' texts (key generation 3.2).
func Infer(recordFields, partitionFields string, r Release) Type {
	if !r.infers() {
		return Simple
	}
	if partitionFields == "" {
		return NonPartition
	}
	partitions := javaSplitComma(partitionFields)
	if r.inferCustom() && len(partitions) > 0 && strings.Contains(partitions[0], ":") {
		return Custom
	}
	keys := 0
	if recordFields != "" {
		keys = len(javaSplitComma(recordFields))
	}
	if len(partitions) == 1 && keys <= 1 {
		return Simple
	}
	return Complex
}

// javaSplitComma is String.split(","): empty parts at the end vanish, others count.
func javaSplitComma(text string) []string {
	list := strings.Split(text, ",")
	for len(list) > 0 && list[len(list)-1] == "" {
		list = list[:len(list)-1]
	}
	return list
}

// SplitFields splits a list of fields at commas, trims the names and drops empty ones (key generation 4).
func SplitFields(text string) []string {
	list := []string{}
	for name := range strings.SplitSeq(text, ",") {
		if name = javaTrim(name); name != "" {
			list = append(list, name)
		}
	}
	return list
}

// PartitionFields are the names in hoodie.table.partition.fields, without the types of the custom generator.
func PartitionFields(property string, r Release) []string {
	list := []string{}
	for name := range strings.SplitSeq(property, ",") {
		if r.typedPartitionFields() {
			name, _, _ = strings.Cut(name, ":")
		}
		if name != "" {
			list = append(list, name)
		}
	}
	return list
}

// TimestampFields are those of them that the custom generator formats as times; known is false when the property stores no
// types, so that nothing can be said.
func TimestampFields(property string) (fields []string, known bool) {
	fields = []string{}
	for entry := range strings.SplitSeq(property, ",") {
		name, typ, typed := strings.Cut(entry, ":")
		if !typed {
			return nil, false
		}
		if strings.EqualFold(typ, "timestamp") {
			fields = append(fields, name)
		}
	}
	return fields, true
}
