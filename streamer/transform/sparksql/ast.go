package sparksql

// expr is a node of an expression as it was written.
type expr interface{}

type (
	textLit   struct{ s string }
	numLit    struct{ s string } // with its suffix
	nullLit   struct{}
	boolLit   struct{ v bool }
	typedLit  struct{ typ, s string } // DATE '…', TIMESTAMP '…', X'…'
	intervals struct{ parts []intervalPart }
	nameRef   struct{ parts []string }
	starRef   struct{ qualifier []string }
	callExpr  struct {
		name        string // lower case
		args        []node
		distinct    bool
		star        bool // count(*)
		ignoreNulls bool
		filter      *node
		over        *window
	}
	unaryExpr struct {
		op string
		x  node
	}
	binaryExpr struct {
		op   string
		l, r node
	}
	castExpr struct {
		x   node
		typ *Type
		try bool
	}
	caseExpr struct {
		operand    *node
		when, then []node
		other      *node
	}
	betweenExpr struct {
		x, low, high node
		not          bool
	}
	inExpr struct {
		x     node
		list  []node
		query *query
		not   bool
	}
	likeExpr struct {
		x, pattern node
		op         string // like, ilike, rlike
		escape     string
		quantifier string // any, all: pattern list in list
		list       []node
		not        bool
	}
	isExpr struct {
		x    node
		what string // null, true, false
		not  bool
	}
	distinctFrom struct {
		l, r node
		not  bool
	}
	existsExpr struct{ query *query }
	subquery   struct{ query *query }
	indexExpr  struct{ x, i node }
	fieldExpr  struct {
		x    node
		name string
	}
	lambdaExpr struct {
		params []string
		body   node
	}
	tupleExpr struct{ list []node }
)

// node is an expression with its place.
type node struct {
	expr
	pos int
}

type intervalPart struct {
	value node
	unit  string
}

type window struct {
	name      string // OVER name
	partition []node
	order     []orderItem
	frame     string // as DuckDB reads it
	pos       int
}

type orderItem struct {
	x          node
	desc       bool
	nullsFirst bool
}

type selectItem struct {
	x       node
	alias   string
	aliases []string // of a generator: AS (k, v)
}

// query is a whole SELECT with what stands around it.
type query struct {
	with   []cte
	body   queryBody
	order  []orderItem
	limit  *node
	offset *node
	pos    int
}

type cte struct {
	name    string
	columns []string
	query   *query
}

// queryBody is a *selectBody, *setBody, *valuesBody or *query (in brackets).
type queryBody interface{}

type selectBody struct {
	distinct bool
	items    []selectItem
	from     []relation
	views    []lateralView
	where    *node
	group    *grouping
	having   *node
	windows  map[string]*window
	pos      int
}

type grouping struct {
	all  bool
	list []node
	sets string   // "", rollup, cube, grouping sets
	of   [][]node // the sets
	pos  int
}

type setBody struct {
	op          string // UNION, EXCEPT, INTERSECT
	all         bool
	left, right queryBody
	pos         int
}

type valuesBody struct {
	rows [][]node
	pos  int
}

// relation is one element of FROM.
type relation struct {
	name    []string
	query   queryBody
	lateral bool
	alias   string
	columns []string
	joins   []join
	call    *callExpr // range(…), explode(…)
	pos     int
}

type join struct {
	kind    string // inner, left, right, full, cross, semi, anti
	natural bool
	right   relation
	on      *node
	using   []string
	pos     int
}

type lateralView struct {
	outer   bool
	call    callExpr
	alias   string
	columns []string
	pos     int
}

// statement is one of a file of statements.
type statement struct {
	view  string // CREATE TEMPORARY VIEW view AS query
	query *query // nil: a statement without effect (SET, CACHE TABLE …)
}
