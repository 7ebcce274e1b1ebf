package transform

import (
	"context"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/sluicelake/sluice/streamer/transform/sparksql"
)

// sourceName is what <SRC> becomes in a statement: an identifier, so that <SRC>.column works too.
const sourceName = "hoodie_src_tmp_table"

// MaxSQLFile bounds the file of SqlFileBasedTransformer, in bytes.
const MaxSQLFile = 16 << 20

// SQL runs Spark SQL over the rows of a round (tools C.9). The rows are gathered in an embedded DuckDB, which spills to
// Options.TempDir beyond Options.Memory; the result streams out. Every Apply has a database of its own.
type SQL struct {
	query, file string
	options     Options
}

func newSQLQuery(props properties, o Options) (Transformer, error) {
	query, err := props.need(KeySQL)
	if err != nil {
		return nil, err
	}
	return NewSQL(query, o)
}

func newSQLFile(props properties, o Options) (Transformer, error) {
	file, err := props.need(KeySQLFile)
	if err != nil {
		return nil, err
	}
	return NewSQLFile(file, o)
}

// NewSQL is the transformer of one query, in which <SRC> stands for the rows.
func NewSQL(query string, o Options) (*SQL, error) {
	if !haveSQL {
		return nil, ErrNoSQL
	}
	return &SQL{query: query, options: o.withDefaults()}, nil
}

// NewSQLFile is the transformer of a file of statements, separated by semicolons outside of quotes and comments; the last one
// that is not empty gives the rows. The file is read anew for every round.
func NewSQLFile(file string, o Options) (*SQL, error) {
	if !haveSQL {
		return nil, ErrNoSQL
	}
	return &SQL{file: file, options: o.withDefaults()}, nil
}

// Apply implements [Transformer]. Statements are read and typed here, so every error of a query shows before rows are read.
func (t *SQL) Apply(ctx context.Context, in *arrow.Schema, rows iter.Seq2[arrow.RecordBatch, error]) (*arrow.Schema, iter.Seq2[arrow.RecordBatch, error], error) {
	text := t.query
	if t.file != "" {
		var err error
		if text, err = t.read(ctx); err != nil {
			return nil, nil, err
		}
	}
	plan, err := sparksql.Compile(statements(text), sourceName, in)
	if err != nil {
		if t.file != "" {
			err = fmt.Errorf("SQL file %s: %w", t.file, err)
		}
		return nil, nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	out, err := plan.Schema()
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return out, run(ctx, plan, in, out, rows, t.options), nil
}

func (t *SQL) read(ctx context.Context) (string, error) {
	f, err := t.options.Open(ctx, t.file)
	if err != nil {
		return "", fmt.Errorf("%w: SQL file %s: %w", ErrConfig, t.file, err)
	}
	text, err := io.ReadAll(io.LimitReader(f, MaxSQLFile+1))
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err == nil && len(text) > MaxSQLFile {
		err = fmt.Errorf("it has more than %d bytes", MaxSQLFile)
	}
	if err != nil {
		return "", fmt.Errorf("%w: SQL file %s: %w", ErrConfig, t.file, err)
	}
	return string(text), nil
}

// statements splits a text and puts the source's name for <SRC>; statements of blanks and comments alone are left out.
func statements(text string) (list []string) {
	for _, s := range splitSQL(text) {
		if blank(s) {
			continue
		}
		list = append(list, strings.ReplaceAll(s, Source, sourceName))
	}
	return list
}

// blank reports that a statement has nothing outside of comments.
func blank(s string) bool {
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		switch {
		case strings.HasPrefix(s, "--"):
			_, s, _ = strings.Cut(s, "\n")
		case strings.HasPrefix(s, "/*"):
			_, s, _ = strings.Cut(s[2:], "*/")
		default:
			return false
		}
	}
	return true
}

// splitSQL cuts at semicolons outside of quotes and comments.
func splitSQL(text string) (list []string) {
	from := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\'' || c == '"' || c == '`':
			for i++; i < len(text) && text[i] != c; i++ {
				if text[i] == '\\' && c != '`' {
					i++
				}
			}
		case strings.HasPrefix(text[i:], "--"):
			for i < len(text) && text[i] != '\n' {
				i++
			}
		case strings.HasPrefix(text[i:], "/*"):
			end := strings.Index(text[i+2:], "*/")
			if end < 0 {
				i = len(text)
			} else {
				i += 2 + end + 1
			}
		case c == ';':
			list = append(list, text[from:i])
			from = i + 1
		}
	}
	return append(list, text[from:])
}
