package keygen

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/scalar"

	"github.com/sluicelake/sluice/hudi/config"
)

func tableOf(t *testing.T, properties string) *config.Table {
	t.Helper()
	text := "hoodie.table.name=t\nhoodie.table.type=COPY_ON_WRITE\n" + strings.ReplaceAll(properties, " ", "\n") + "\n"
	if !strings.Contains(text, "hoodie.table.version=") {
		text += "hoodie.table.version=6\n"
	}
	if !strings.Contains(text, "layout.version=") {
		text += "hoodie.timeline.layout.version=1\n"
	}
	props, err := config.ParseProperties([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	table, err := config.Parse(props, "t")
	if err != nil {
		t.Fatal(err)
	}
	return table
}

const (
	hive   = " hoodie.datasource.write.hive_style_partitioning=true"
	encode = " hoodie.datasource.write.partitionpath.urlencode=true"
)

// What Apache Hudi 0.15.0 and 1.2.0 under Spark 3.5 read from tables whose name the case carries; "slash" and "many" follow
// key generation 7.4 and 13, where Spark fails to read.
func TestPartitionValues(t *testing.T) {
	cases := []struct{ name, properties, path, want string }{
		{"cow_partitions_raw", "hoodie.table.partition.fields=p", "2024/01/05", "p=2024/01/05"},
		{"cow_partitions_raw percent", "hoodie.table.partition.fields=p", "100%25", "p=100%"},
		{"cow_partitions_raw unicode", "hoodie.table.partition.fields=p", "ünï 日本", "p=ünï 日本"},
		{"cow_partitions_raw null", "hoodie.table.partition.fields=p", "__HIVE_DEFAULT_PARTITION__", "p null"},
		{"cow_partitions_urlencoded slash", "hoodie.table.partition.fields=p" + hive + encode, "p=a%2Fb", "p=a/b"},
		{"cow_partitions_urlencoded equals", "hoodie.table.partition.fields=p" + hive + encode, "p=k%3Dv", "p=k=v"},
		{"cow_partitions_urlencoded null", "hoodie.table.partition.fields=p" + hive + encode, "p=__HIVE_DEFAULT_PARTITION__", "p null"},
		{"cow_partitions_urlencoded_plain", "hoodie.table.partition.fields=p" + encode, "c%3Ad%3Fe%23f%2Ag", "p=c:d?e#f*g"},
		{"cow_partitions_two_levels", "hoodie.table.partition.fields=region,year", "north/2023", "region=north year=2023"},
		{"cow_drop_partition_columns", "hoodie.table.partition.fields=region,level hoodie.datasource.write.drop.partition.columns=true" + hive, "region=south/level=7", "region=south level=7"},
		{"cow_partitions_timestamp_keygen 0.15.0", "hoodie.table.partition.fields=at hoodie.table.keygenerator.class=org.apache.hudi.keygen.TimestampBasedKeyGenerator hoodie.keygen.timebased.output.dateformat=yyyy/MM/dd", "2024/02/29", "at=2024/02/29 (file)"},
		{"cow_partitions_custom_keygen 1.2.0", `hoodie.table.version=9 hoodie.timeline.layout.version=2 hoodie.table.partition.fields=region\:simple,at\:timestamp hoodie.table.keygenerator.type=CUSTOM` + hive, "region=eu/at=2023-11", "region=eu at=2023-11 (file)"},
		{"cow_partitions_custom_keygen 0.15.0", "hoodie.table.partition.fields=region,at hoodie.table.keygenerator.class=org.apache.hudi.keygen.CustomKeyGenerator" + hive, "region=eu/at=2023-11", "region=eu (file) at=2023-11 (file)"},
		{"custom without names", `hoodie.table.version=9 hoodie.timeline.layout.version=2 hoodie.table.partition.fields=at\:timestamp,region\:simple hoodie.table.keygenerator.type=CUSTOM hoodie.keygen.timebased.output.dateformat=yyyy/MM/dd`, "2024/02/29/eu", "at=2024/02/29 (file) region=eu"},
		{"slash", "hoodie.table.version=9 hoodie.timeline.layout.version=2 hoodie.table.partition.fields=dt hoodie.datasource.write.slash.separated.date.partitioning=true", "2026/01/05", "dt=2026-01-05"},
		{"slash null", "hoodie.table.version=9 hoodie.timeline.layout.version=2 hoodie.table.partition.fields=dt hoodie.datasource.write.slash.separated.date.partitioning=true", "__HIVE_DEFAULT_PARTITION__", "dt null"},
		{"many levels by name", "hoodie.table.partition.fields=a,b" + hive, "a=x/y/b=z", "a=x/y b=z"},
		{"many levels without names", "hoodie.table.partition.fields=a,b", "x/y/z", "a null (file) b null (file)"},
		{"default of version 4 (C015)", "hoodie.table.version=4 hoodie.table.partition.fields=dt" + hive, "dt=default", "dt null (file)"},
		{"default of version 6 (C015)", "hoodie.table.partition.fields=dt" + hive, "dt=default", "dt=default"},
	}
	for _, c := range cases {
		values, err := PartitionValues(tableOf(t, c.properties), c.path)
		var got []string
		for _, v := range values {
			text := v.Column + "=" + v.Text
			if v.IsNull {
				text = v.Column + " null"
			}
			if v.InFile {
				text += " (file)"
			}
			got = append(got, text)
		}
		if s := strings.Join(got, " "); err != nil || s != c.want {
			t.Errorf("%s: got %s %v, want %s", c.name, s, err, c.want)
		}
	}
}

// The values and types that Spark reads from cow_partitions_typed, cow_partitions_two_levels and
// cow_drop_partition_columns, whose int column comes back as text.
func TestPartitionColumnTypes(t *testing.T) {
	declared := func(name string) (arrow.DataType, bool) {
		dt := map[string]arrow.DataType{"d": arrow.FixedWidthTypes.Date32, "n": arrow.PrimitiveTypes.Int32, "b": arrow.FixedWidthTypes.Boolean,
			"m": &arrow.Decimal128Type{Precision: 6, Scale: 2}}[name]
		return dt, dt != nil
	}
	fields := "hoodie.table.partition.fields=d,n,b,m" + hive
	cases := []struct{ properties, path, want string }{
		{fields, "d=1969-12-31/n=-7/b=false/m=-0.25", "date32 1969-12-31, int32 -7, bool false, decimal(6, 2) -0.25"},
		{fields, "d=2024-02-29/n=7/b=true/m=1.50", "date32 2024-02-29, int32 7, bool true, decimal(6, 2) 1.50"},
		{fields, "d=__HIVE_DEFAULT_PARTITION__/n=7/b=true/m=1.50", "date32 null, int32 7, bool true, decimal(6, 2) 1.50"},
		{fields + " hoodie.datasource.write.drop.partition.columns=true", "d=2024-02-29/n=7/b=true/m=1.50", "utf8 2024-02-29, utf8 7, utf8 true, utf8 1.50"},
		{fields, "d=2024-02-30/n=7/b=true/m=1.50", "error d"},
		{fields, "d=2024-02-29/n=99999999999/b=true/m=1.50", "error n"},
		{fields, "d=2024-02-29/n=7/b=yes/m=1.50", "error b"},
		{fields, "d=2024-02-29/n=7/b=true/m=1.505", "error m"},
	}
	for _, c := range cases {
		rule := NewPathRule(tableOf(t, c.properties))
		values, err := rule.Values(c.path)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i, f := range rule.Columns(declared) {
			s, err := values[i].Typed(f.Type)
			if err != nil {
				got = []string{"error " + f.Name}
				break
			}
			text := "null"
			if s.IsValid() {
				text = s.String()
				if d, ok := s.(*scalar.Decimal128); ok {
					text = d.Value.ToString(2)
				}
			}
			got = append(got, f.Type.String()+" "+text)
		}
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%s: got %s, want %s", c.path, s, c.want)
		}
	}
}
