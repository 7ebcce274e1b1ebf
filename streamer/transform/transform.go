// Package transform changes the rows of one streamer round before they are written: the transformers of the Java streamer
// (flattening, AWS DMS, SQL query, SQL file, chains of them) and one of our own that adds columns (tools C.9).
//
// A transformer takes Arrow record batches and gives Arrow record batches; it knows nothing of tables. The exporter uses the
// same transformers (tools A.1: --transformer-class, --transformer-sql, --transformer-sql-file).
//
// SQL is Spark's: the text is read, typed and translated by package sparksql and runs in an embedded DuckDB, which needs cgo.
// A program built without cgo, or with the tag nocgo, has everything else and refuses the SQL transformers ([ErrNoSQL]).
package transform

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/sluicelake/sluice/hudi/config"
)

// The properties of transformers, by their present names; hoodie.deltastreamer.transformer.* is read too.
const (
	KeySQL     = "hoodie.streamer.transformer.sql"
	KeySQLFile = "hoodie.streamer.transformer.sql.file"
	// KeyAddColumns holds the columns that [AddColumns] makes.
	KeyAddColumns = "sluice.add.columns"
)

// Source is what stands for the rows in the text of a SQL transformer.
const Source = "<SRC>"

// ErrConfig is wrapped by every error about class names and properties: it is found before anything is read.
var ErrConfig = errors.New("transformer configuration")

// ErrNoSQL says that this program was built without cgo and so has no SQL.
var ErrNoSQL = errors.New("this build of sluice has no SQL engine: SQL transformers need a program built with cgo (CGO_ENABLED=1, a C compiler, and not the tag nocgo)")

// Transformer turns the rows of one round into others. It keeps state only inside one call of Apply, so one transformer may
// serve several rounds at once.
type Transformer interface {
	// Apply says which schema the rows of a schema come out with, and gives the rows. Errors name what is wrong before any row is
	// read; rows is not touched before result is ranged over, and is read once. Every batch of rows has the schema in. Whoever
	// ranges over result releases its batches; it may stop early. Apply releases the batches of rows.
	Apply(ctx context.Context, in *arrow.Schema, rows iter.Seq2[arrow.RecordBatch, error]) (out *arrow.Schema, result iter.Seq2[arrow.RecordBatch, error], err error)
}

// Options of transformers. The zero value works.
type Options struct {
	// Memory is what SQL may hold, in bytes; what doesn't fit goes to files below TempDir. Default 1 GiB, at least 64 MiB.
	Memory int64
	// TempDir is a folder for what doesn't fit into memory. Default: the system's.
	TempDir string
	// Threads of SQL. Default: one for each processor.
	Threads int
	// Allocator of the batches that transformers make. Default: Go's heap.
	Allocator memory.Allocator
	// Open opens the file of SqlFileBasedTransformer. Default: a file of this machine, also as file:/path.
	Open func(ctx context.Context, name string) (io.ReadCloser, error)
}

func (o Options) withDefaults() Options {
	if o.Memory <= 0 {
		o.Memory = 1 << 30
	}
	o.Memory = max(o.Memory, 64<<20)
	if o.TempDir == "" {
		o.TempDir = os.TempDir()
	}
	if o.Allocator == nil {
		o.Allocator = memory.DefaultAllocator
	}
	if o.Open == nil {
		o.Open = func(_ context.Context, name string) (io.ReadCloser, error) {
			if path, ok := strings.CutPrefix(name, "file:"); ok {
				name = "/" + strings.TrimLeft(path, "/")
			}
			return os.Open(name)
		}
	}
	return o
}

// maker makes one transformer from the properties meant for it.
type maker func(props properties, o Options) (Transformer, error)

// makers knows a transformer by the last part of its class name.
func makers() map[string]maker {
	return map[string]maker{
		"SqlQueryBasedTransformer": newSQLQuery,
		"SqlFileBasedTransformer":  newSQLFile,
		"FlatteningTransformer":    func(_ properties, o Options) (Transformer, error) { return Flatten{Allocator: o.Allocator}, nil },
		"AWSDmsTransformer":        func(_ properties, o Options) (Transformer, error) { return AWSDms{Allocator: o.Allocator}, nil },
		"IdentityTransformer":      func(properties, Options) (Transformer, error) { return Identity{}, nil },
		"AddColumnsTransformer":    newAddColumns,
	}
}

// lookup finds a transformer by class name, with or without the package, or by short name.
func lookup(class string) (maker, bool) {
	name := class
	if pkg, last, ok := cutLast(class, "."); ok {
		// A class of somebody else's package is another class, whatever its last part.
		if pkg != "org.apache.hudi.utilities.transform" && pkg != "sluice" {
			return nil, false
		}
		name = last
	}
	all := makers()
	if m, ok := all[name]; ok {
		return m, true
	}
	if strings.Contains(class, ".") {
		return nil, false
	}
	short := map[string]string{"sql": "SqlQueryBasedTransformer", "sql-query": "SqlQueryBasedTransformer", "sql-file": "SqlFileBasedTransformer", "flatten": "FlatteningTransformer",
		"dms": "AWSDmsTransformer", "aws-dms": "AWSDmsTransformer", "identity": "IdentityTransformer", "add-columns": "AddColumnsTransformer"}
	m, ok := all[short[strings.ToLower(name)]]
	return m, ok
}

// New builds the chain of the given classes, applied left to right: Java class names with or without their package
// ("org.apache.hudi.utilities.transform.FlatteningTransformer", "FlatteningTransformer") or short names (sql, sql-file,
// flatten, dms, identity, add-columns). An element may hold several, joined by commas. With identifiers ("tr1:sql,tr2:sql", all or
// none) the property <key>.tr1 stands for <key> in the first. No class at all is the identity.
//
// The errors have the texts of the Java tool (tools C.9) and wrap [ErrConfig], or [ErrNoSQL] where the program has no SQL.
func New(classes []string, props map[string]string, o Options) (Transformer, error) {
	o = o.withDefaults()
	var names []string
	for _, class := range classes {
		for name := range strings.SplitSeq(class, ",") {
			if name = strings.TrimSpace(name); name != "" {
				names = append(names, name)
			}
		}
	}
	links, err := parse(names)
	if err != nil {
		return nil, fmt.Errorf("%w: Could not load transformer class(es) [%s]: %w", ErrConfig, strings.Join(names, ", "), err)
	}
	all := newProperties(props)
	chain := make(Chain, len(links))
	for i, l := range links {
		if chain[i], err = l.make(all.of(l.id), o); err != nil {
			return nil, fmt.Errorf("transformer %s: %w", names[i], err)
		}
	}
	if len(chain) == 1 {
		return chain[0], nil
	}
	return chain, nil
}

type link struct {
	id   string
	make maker
}

// parse reads class names with their identifiers, with the checks and texts of the Java tool, in its order.
func parse(names []string) ([]link, error) {
	links := make([]link, len(names))
	seen := map[string]bool{}
	for i, name := range names {
		class := name
		if parts := strings.Split(name, ":"); len(parts) > 2 {
			return nil, errors.New("There should only be one colon in a configured transformer") //nolint:staticcheck // the Java tool's text
		} else if len(parts) == 2 {
			switch links[i].id, class = parts[0], parts[1]; {
			case links[i].id == "":
				return nil, fmt.Errorf("Transformer identifier is empty for %s", name) //nolint:staticcheck // the Java tool's text
			case seen[links[i].id]:
				return nil, fmt.Errorf("Duplicate identifier %s found for transformer %s", links[i].id, name) //nolint:staticcheck // the Java tool's text
			}
			seen[links[i].id] = true
		}
		var ok bool
		if links[i].make, ok = lookup(class); !ok {
			return nil, fmt.Errorf("Unable to load class: %s is none of SqlQueryBasedTransformer, SqlFileBasedTransformer, FlatteningTransformer, AWSDmsTransformer, IdentityTransformer, AddColumnsTransformer; Java classes of your own can't run here, say in SQL what they do", class) //nolint:staticcheck // begins with the Java tool's text
		}
	}
	if len(seen) != 0 && len(seen) != len(names) {
		return nil, errors.New("Either all transformers should have identifier or none should") //nolint:staticcheck // the Java tool's text
	}
	return links, nil
}

// properties are what a transformer reads, by present names.
type properties map[string]string

func newProperties(props map[string]string) properties {
	p := make(properties, len(props))
	for k, v := range props {
		p[present(k)] = v
	}
	for k, v := range props {
		if present(k) == k { // a present name wins over an old one
			p[k] = v
		}
	}
	return p
}

// present is the present name of a key, which may end in an identifier.
func present(key string) string {
	if rest, ok := strings.CutPrefix(key, "hoodie.deltastreamer.transformer."); ok {
		return "hoodie.streamer.transformer." + rest
	}
	return config.Canonical(key)
}

// of gives the properties as the transformer with an identifier sees them: <key>.<id> in place of <key>.
func (p properties) of(id string) properties {
	if id == "" {
		return p
	}
	own := make(properties, len(p))
	for k, v := range p {
		own[k] = v
	}
	for k, v := range p {
		if key, ok := strings.CutSuffix(k, "."+id); ok {
			own[key] = v
		}
	}
	return own
}

// need gives a property that must be there.
func (p properties) need(key string) (string, error) {
	if v, ok := p[key]; ok && strings.TrimSpace(v) != "" {
		return v, nil
	}
	return "", fmt.Errorf("%w: Property %s not found", ErrConfig, key)
}

// PerRow reports whether a transformer looks at each row by itself: then the rows may be given to it in parts, in any order.
func PerRow(t Transformer) bool {
	switch t := t.(type) {
	case Identity, Flatten, AWSDms, *AddColumns:
		return true
	case Chain:
		return !slices.ContainsFunc(t, func(t Transformer) bool { return !PerRow(t) })
	}
	return false
}

// Chain applies transformers left to right; each one gets the schema that the one before it gives.
type Chain []Transformer

// Apply implements [Transformer].
func (c Chain) Apply(ctx context.Context, in *arrow.Schema, rows iter.Seq2[arrow.RecordBatch, error]) (*arrow.Schema, iter.Seq2[arrow.RecordBatch, error], error) {
	var err error
	for i, t := range c {
		if in, rows, err = t.Apply(ctx, in, rows); err != nil {
			if len(c) > 1 {
				err = fmt.Errorf("transformer %d of %d: %w", i+1, len(c), err)
			}
			return nil, nil, err
		}
	}
	return in, rows, nil
}

// Identity gives the rows as they are.
type Identity struct{}

// Apply implements [Transformer].
func (Identity) Apply(_ context.Context, in *arrow.Schema, rows iter.Seq2[arrow.RecordBatch, error]) (*arrow.Schema, iter.Seq2[arrow.RecordBatch, error], error) {
	return in, rows, nil
}

// each gives the batches of rows, changed one by one. change doesn't release its argument.
func each(ctx context.Context, in *arrow.Schema, rows iter.Seq2[arrow.RecordBatch, error], change func(arrow.RecordBatch) (arrow.RecordBatch, error)) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for batch, err := range rows {
			if err == nil {
				err = ctx.Err()
			}
			var out arrow.RecordBatch
			if err == nil {
				if err = sameShape(in, batch); err == nil {
					out, err = change(batch)
				}
			}
			if batch != nil {
				batch.Release()
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(out, nil) {
				return
			}
		}
	}
}

// sameShape checks that a batch has the columns that Apply was told of. Names are compared at the top alone: the types are.
func sameShape(in *arrow.Schema, batch arrow.RecordBatch) error {
	if int(batch.NumCols()) != in.NumFields() {
		return fmt.Errorf("a batch has %d columns where its schema has %d", batch.NumCols(), in.NumFields())
	}
	for i, f := range in.Fields() {
		if got := batch.Column(i).DataType(); got.ID() != f.Type.ID() {
			return fmt.Errorf("column %s of a batch is %s where its schema says %s", f.Name, got, f.Type)
		}
	}
	return nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return "", s, false
}
