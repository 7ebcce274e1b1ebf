package export

import (
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// grouper numbers the folders of rows in the order in which they first occur.
type grouper struct {
	columns []*coder
	pairs   []map[uint64]int32 // of each further column: the number so far and the column's code give a number
	dirs    []string           // by number
	steps   [][]string         // folders by the numbers of the first columns, by how many they are
	codes   []int32
}

func newGrouper(names []string, zone *time.Location) *grouper {
	g := &grouper{}
	for _, name := range names {
		g.columns = append(g.columns, &coder{name: name, zone: zone, numbers: map[int64]int32{}, words: map[string]int32{}, byText: map[string]int32{}, null: -1})
		g.pairs = append(g.pairs, map[uint64]int32{})
		g.steps = append(g.steps, nil)
	}
	return g
}

// group numbers the folders of a batch's rows. ids has room for as many.
func (g *grouper) group(columns []arrow.Array, ids []int32) {
	for i, col := range columns {
		if i == 0 {
			g.columns[0].code(col, ids)
			continue
		}
		g.codes = sized(g.codes, len(ids))
		g.columns[i].code(col, g.codes)
		g.join(i, ids)
	}
	if len(columns) == 1 {
		g.dirs = g.columns[0].texts
	} else {
		g.dirs = g.steps[len(columns)-1]
	}
}

// join makes the numbers of the first columns and the codes of the next one numbers of both.
func (g *grouper) join(step int, ids []int32) {
	before := g.columns[0].texts
	if step > 1 {
		before = g.steps[step-1]
	}
	lastKey, lastID := ^uint64(0), int32(-1)
	for row, id := range ids {
		key := uint64(uint32(id))<<32 | uint64(uint32(g.codes[row]))
		if key != lastKey {
			n, ok := g.pairs[step][key]
			if !ok {
				n = int32(len(g.steps[step]))
				g.pairs[step][key] = n
				g.steps[step] = append(g.steps[step], before[id]+"/"+g.columns[step].texts[g.codes[row]])
			}
			lastKey, lastID = key, n
		}
		ids[row] = lastID
	}
}

func sized(in []int32, n int) []int32 {
	if cap(in) < n {
		return make([]int32, n)
	}
	return in[:n]
}

// coder numbers the values of one column by the text that they give. Each value is made to text once.
type coder struct {
	name string
	zone *time.Location

	numbers map[int64]int32  // code of a value, for types that are numbers
	words   map[string]int32 // for the others
	null    int32
	byText  map[string]int32
	texts   []string // "name=value", escaped
}

// learn gives the code of the value of a row that was not seen before.
func (c *coder) learn(col arrow.Array, row int) int32 {
	var b strings.Builder
	folder(&b, c.name, col, row, c.zone)
	code, ok := c.byText[b.String()]
	if !ok {
		code = int32(len(c.texts))
		c.byText[b.String()] = code
		c.texts = append(c.texts, b.String())
	}
	return code
}

func (c *coder) code(col arrow.Array, out []int32) {
	switch col := col.(type) {
	case *array.Int32:
		codeNumbers(c, col, col.Int32Values(), out)
	case *array.Int64:
		codeNumbers(c, col, col.Int64Values(), out)
	case *array.Date32:
		codeNumbers(c, col, col.Date32Values(), out)
	case *array.Timestamp:
		codeNumbers(c, col, col.TimestampValues(), out)
	case *array.Boolean:
		c.codeWords(col, out, func(row int) string {
			if col.Value(row) {
				return "true"
			}
			return "false"
		})
	case *array.String:
		c.codeWords(col, out, col.Value)
	default:
		c.codeWords(col, out, func(row int) string { return partitionText(col, row, c.zone) })
	}
}

func (c *coder) codeNull(col arrow.Array, row int) int32 {
	if c.null < 0 {
		c.null = c.learn(col, row)
	}
	return c.null
}

func codeNumbers[T ~int32 | ~int64](c *coder, col arrow.Array, values []T, out []int32) {
	var last T
	lastCode := int32(-1)
	for row, v := range values {
		switch {
		case col.IsNull(row):
			out[row] = c.codeNull(col, row)
			continue
		case lastCode >= 0 && v == last:
		default:
			code, ok := c.numbers[int64(v)]
			if !ok {
				code = c.learn(col, row)
				c.numbers[int64(v)] = code
			}
			last, lastCode = v, code
		}
		out[row] = lastCode
	}
}

func (c *coder) codeWords(col arrow.Array, out []int32, value func(row int) string) {
	last, lastCode := "", int32(-1)
	for row := range col.Len() {
		if col.IsNull(row) {
			out[row] = c.codeNull(col, row)
			continue
		}
		v := value(row)
		if lastCode < 0 || v != last {
			code, ok := c.words[v]
			if !ok {
				code = c.learn(col, row)
				c.words[strings.Clone(v)] = code
			}
			last, lastCode = v, code
		}
		out[row] = lastCode
	}
}
