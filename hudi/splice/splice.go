// Package splice makes Parquet files out of the column chunks of others without decoding them: pages are copied as bytes, and
// a footer of our own says what they are. It costs about what a copy of the bytes costs, a twentieth and less of decoding and
// encoding them.
//
// [Open] a file, ask [CanCopy] whether the columns that are wanted are there in the form in which they are promised, and
// [Writer.Append] what it gives. Where the answer is no, it says why, and the file is decoded and encoded instead.
//
// What the copy promises: the rows of the source in its order; columns under the names and with the logical types that were
// asked for; column indexes, offset indexes and bloom filters where the source has them; statistics of column chunks as far as
// every reader may trust them. Key-value metadata (Avro schemas, record key ranges, the key bloom filter of Apache Hudi) stays
// behind, as it speaks of columns that are gone. A column that is required in its file stays required, since its pages hold no
// definition levels.
//
// Every page header is looked at: the pages of a chunk must fill it exactly and hold as many values as the footer says. Where
// the bytes of pages pass through this process they must fit their checksums too, if there are any. They do not pass where the
// target takes ranges of the source by itself (storage.RangeWriter), as from file to file, unless [WriterOptions] demand it: a
// page's checksum goes with it. A damaged source gives an error that wraps [basefile.ErrDamaged].
package splice

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/storage"
)

// File is an open Parquet file whose column chunks can be copied. It is for one goroutine at a time.
type File struct {
	name    string
	obj     storage.Object
	base    basefile.File
	tree    []*element // top-level columns
	leaves  []*element // by the number of their column chunk
	groups  []rowGroup
	version int64
	creator string
}

// rowGroup is a row group of a source.
type rowGroup struct {
	rows    int64
	sorting []fields // sorting_columns
	columns []chunk
}

// chunk is a column chunk of a source.
type chunk struct {
	head  fields // ColumnChunk
	meta  fields // ColumnMetaData
	stats fields // Statistics
	start int64  // of the dictionary page, or the first data page
	size  int64
}

// Open opens a Parquet file. The File owns the object, which is closed also when opening fails.
func Open(ctx context.Context, name string, obj storage.Object, o basefile.Options) (*File, error) {
	base, err := basefile.OpenObject(ctx, name, obj, o)
	if err != nil {
		return nil, err
	}
	f := &File{name: name, obj: obj, base: base}
	text, ok := basefile.Footer(base)
	if !ok {
		return nil, errors.Join(fmt.Errorf("%s is no Parquet file", name), base.Close())
	}
	if err := f.read(text); err != nil {
		return nil, errors.Join(f.damaged(-1, "footer", err), base.Close())
	}
	return f, nil
}

func (f *File) damaged(off int64, where string, err error) error {
	if !errors.Is(err, basefile.ErrDamaged) {
		err = fmt.Errorf("%w: %w", basefile.ErrDamaged, err)
	}
	return &basefile.Error{File: f.name, Offset: off, Where: where, Err: err}
}

// Name that the file was opened with.
func (f *File) Name() string { return f.name }

// Rows in the file.
func (f *File) Rows() int64 { return f.base.Rows() }

// Schema of the file's columns.
func (f *File) Schema() *arrow.Schema { return f.base.Schema() }

// Close closes the object.
func (f *File) Close() error { return f.base.Close() }

// Numbers of fields in FileMetaData, RowGroup, ColumnChunk and ColumnMetaData of the Parquet format.
const (
	fileVersion   = 1
	fileSchema    = 2
	fileRows      = 3
	fileRowGroups = 4
	fileCreatedBy = 6
	fileOrders    = 7

	groupColumns    = 1
	groupBytes      = 2
	groupRows       = 3
	groupSorting    = 4
	groupOffset     = 5
	groupCompressed = 6
	groupOrdinal    = 7

	chunkOffset      = 2
	chunkMeta        = 3
	chunkOffsetIndex = 4 // and its length, 5
	chunkColumnIndex = 6 // and its length, 7
	chunkCrypto      = 8
	metaEncodings    = 2
	metaPath         = 3
	metaCodec        = 4
	metaValues       = 5
	metaUncompressed = 6
	metaCompressed   = 7
	metaKeyValue     = 8
	metaDataPage     = 9
	metaIndexPage    = 10
	metaDictionary   = 11
	metaStatistics   = 12
	metaBloom        = 14 // and its length, 15
	metaGeospatial   = 17
	statsMax         = 1
	statsMin         = 2
	statsNulls       = 3
	statsMaxValue    = 5
	statsMinValue    = 6
	statsMaxExact    = 7
	statsMinExact    = 8
	sortingColumn    = 1
	typeDefinedOrder = 1
)

// read takes the footer apart. That row groups have as many chunks as the schema has leaves, and that chunks lie in the file,
// was checked when it was opened.
func (f *File) read(text []byte) error {
	md, _, err := parseFields(text)
	if err != nil {
		return err
	}
	f.version = md.number(fileVersion, 1)
	f.creator = string(md.binary(fileCreatedBy))
	elements, err := md.structures(fileSchema)
	if err != nil {
		return err
	}
	if f.tree, f.leaves, err = readTree(elements); err != nil {
		return err
	}
	orders, err := md.structures(fileOrders)
	if err != nil {
		return err
	}
	for i, l := range f.leaves {
		l.ordered = len(orders) == len(f.leaves) && orders[i].has(typeDefinedOrder)
	}
	groups, err := md.structures(fileRowGroups)
	if err != nil {
		return err
	}
	f.groups = make([]rowGroup, len(groups))
	for i, g := range groups {
		if err := f.groups[i].read(g, len(f.leaves), f.obj.Size()); err != nil {
			return fmt.Errorf("row group %d: %w", i, err)
		}
	}
	return nil
}

func (g *rowGroup) read(in fields, leaves int, size int64) (err error) {
	g.rows = in.number(groupRows, -1)
	if g.sorting, err = in.structures(groupSorting); err != nil {
		return err
	}
	chunks, err := in.structures(groupColumns)
	if err != nil {
		return err
	}
	if len(chunks) != leaves || g.rows < 0 {
		return fmt.Errorf("%d columns where the schema has %d, %d rows", len(chunks), leaves, g.rows)
	}
	g.columns = make([]chunk, len(chunks))
	for i, c := range chunks {
		if err := g.columns[i].read(c, size); err != nil {
			return fmt.Errorf("column %d: %w", i, err)
		}
	}
	return nil
}

func (c *chunk) read(in fields, size int64) (err error) {
	c.head = in
	if c.meta, err = in.structure(chunkMeta); err != nil {
		return err
	}
	if c.stats, err = c.meta.structure(metaStatistics); err != nil {
		return err
	}
	c.start = c.meta.number(metaDataPage, -1)
	if d := c.meta.number(metaDictionary, 0); d > 0 && d < c.start {
		c.start = d
	}
	c.size = c.meta.number(metaCompressed, -1)
	if c.start < 0 || c.size < 0 || c.start > size || c.size > size-c.start {
		return fmt.Errorf("%d bytes at %d in a file of %d", c.size, c.start, size)
	}
	return nil
}

// element is a node of the file's Parquet schema.
type element struct {
	name       string
	physical   int64 // of a leaf; -1 for groups
	length     int64 // of fixed-length values
	repetition int64
	list       bool // annotated LIST
	mapping    bool // annotated MAP (or the old MAP_KEY_VALUE)
	children   []*element
	column     int  // of a leaf
	ordered    bool // of a leaf: min_value and max_value follow the order of its type
}

// Physical types, repetitions and converted types of the Parquet format.
const (
	boolean   = 0
	int32Type = 1
	int64Type = 2
	int96     = 3
	float     = 4
	double    = 5
	byteArray = 6
	fixedLen  = 7

	required = 0
	optional = 1
	repeated = 2

	convertedUTF8      = 0
	convertedMap       = 1
	convertedKeyValue  = 2
	convertedList      = 3
	convertedDecimal   = 5
	convertedDate      = 6
	convertedTimeMilli = 7
	convertedTimeMicro = 8
	convertedMicros    = 10

	logicalString    = 1
	logicalMap       = 2
	logicalList      = 3
	logicalDecimal   = 5
	logicalDate      = 6
	logicalTime      = 7
	logicalTimestamp = 8
)

// Numbers of the fields of SchemaElement.
const (
	elementType       = 1
	elementLength     = 2
	elementRepetition = 3
	elementName       = 4
	elementChildren   = 5
	elementConverted  = 6
	elementScale      = 7
	elementPrecision  = 8
	elementLogical    = 10
)

// readTree makes a tree of the schema's elements, which stand in depth-first order behind the root.
func readTree(in []fields) (tree, leaves []*element, err error) {
	if len(in) == 0 {
		return nil, nil, errors.New("no schema")
	}
	next := 1
	var read func(depth int) (*element, error)
	read = func(depth int) (*element, error) {
		if next >= len(in) || depth > 2*maxNesting {
			return nil, errors.New("a schema that ends too early, or is nested too deeply")
		}
		e, err := newElement(in[next])
		if err != nil {
			return nil, err
		}
		children := in[next].number(elementChildren, 0)
		next++
		if children <= 0 {
			e.column = len(leaves)
			leaves = append(leaves, e)
			return e, nil
		}
		e.physical = -1
		for range children {
			c, err := read(depth + 1)
			if err != nil {
				return nil, err
			}
			e.children = append(e.children, c)
		}
		return e, nil
	}
	for range in[0].number(elementChildren, 0) {
		e, err := read(0)
		if err != nil {
			return nil, nil, err
		}
		tree = append(tree, e)
	}
	if next != len(in) {
		return nil, nil, fmt.Errorf("a schema of %d elements where the root has %d", len(in), next)
	}
	return tree, leaves, nil
}

func newElement(in fields) (*element, error) {
	logical, err := in.structure(elementLogical)
	if err != nil {
		return nil, err
	}
	converted := in.number(elementConverted, -1)
	return &element{
		name: string(in.binary(elementName)), physical: in.number(elementType, -1), length: in.number(elementLength, 0),
		repetition: in.number(elementRepetition, required),
		list:       logical.has(logicalList) || converted == convertedList,
		mapping:    logical.has(logicalMap) || converted == convertedMap || converted == convertedKeyValue,
	}, nil
}

var creator = regexp.MustCompile(`^(parquet-mr|parquet-cpp-arrow|parquet-cpp) version (\d+)\.(\d+)`)

// oldWriter names a writer that left files which readers know to be odd by its name: sizes of column chunks that lack the
// dictionary's header and delta encodings across pages (parquet-mr before 1.8), compressed flags of pages of version 2 (Arrow
// before 3). The copy would not bear its name.
func oldWriter(createdBy string) (string, bool) {
	m := creator.FindStringSubmatch(createdBy)
	if m == nil {
		return "", false
	}
	major, _ := strconv.Atoi(m[2])
	minor, _ := strconv.Atoi(m[3])
	old := map[string]bool{
		"parquet-mr":        major < 1 || major == 1 && minor < 8,
		"parquet-cpp-arrow": major < 3,
		"parquet-cpp":       true,
	}
	return m[0], old[m[1]]
}
