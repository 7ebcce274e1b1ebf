// Package formula reads lists of named expressions in the language of expr-lang, "NAME = EXPRESSION; …": what key generators,
// output partitioners and added columns are written in. What a column is in an expression, and what becomes of its result, is
// each user's own.
package formula

import (
	"fmt"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm"
)

// Formula is one expression, compiled.
type Formula struct {
	Head string // what stands before the =
	Text string // the expression
	// Uses are the variables that it does not declare itself, each once, in the order in which they appear.
	Uses []string
	// UsesAll: it looks at all variables, by $env.
	UsesAll bool
	// Alone is the variable that the whole expression is, or empty.
	Alone   string
	Program *vm.Program
}

// Parse compiles the statements of a text. Errors name the statement.
func Parse(text string, options ...expr.Option) ([]Formula, error) {
	var list []Formula
	for pieces := pieces(text); len(pieces) > 0; {
		statement := pieces[0]
		head, body, ok := strings.Cut(statement, "=")
		pieces = pieces[1:]
		for last := body; len(pieces) > 0 && strings.HasPrefix(strings.TrimSpace(last), "let "); pieces = pieces[1:] {
			last = pieces[0] // let NAME = VALUE; EXPRESSION is one expression
			statement += "; " + last
			body += "; " + last
		}
		f := Formula{Head: strings.TrimSpace(head), Text: strings.TrimSpace(body)}
		if !ok || f.Head == "" || f.Text == "" || strings.HasPrefix(body, "=") {
			return nil, fmt.Errorf("%q is not name = expression", statement)
		}
		if err := f.compile(options); err != nil {
			return nil, fmt.Errorf("%q: %w", statement, err)
		}
		list = append(list, f)
	}
	return list, nil
}

func (f *Formula) compile(options []expr.Option) (err error) {
	if f.Program, err = expr.Compile(f.Text, append(options[:len(options):len(options)], expr.AllowUndefinedVariables())...); err != nil {
		return err
	}
	node := f.Program.Node()
	var n names
	ast.Walk(&node, &n)
	for _, name := range n.used {
		switch {
		case name == "$env":
			f.UsesAll = true
		case !slices.Contains(n.declared, name) && !slices.Contains(f.Uses, name):
			f.Uses = append(f.Uses, name)
		}
	}
	if id, ok := node.(*ast.IdentifierNode); ok && id.Value != "$env" {
		f.Alone = id.Value
	}
	return nil
}

// names collects the identifiers of an expression, and those that it declares.
type names struct{ used, declared []string }

// Visit implements the visitor of expr-lang.
func (n *names) Visit(node *ast.Node) {
	switch x := (*node).(type) {
	case *ast.IdentifierNode:
		n.used = append(n.used, x.Value)
	case *ast.VariableDeclaratorNode:
		n.declared = append(n.declared, x.Name)
	}
}

// pieces cuts at semicolons outside of quotes; blank ones are left out. Between ` marks a backslash is a character like others.
func pieces(text string) (list []string) {
	add := func(s string) {
		if s = strings.TrimSpace(s); s != "" {
			list = append(list, s)
		}
	}
	quote, from := byte(0), 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0 && c == '\\' && quote != '`':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'' || c == '`':
			quote = c
		case c == ';':
			add(text[from:i])
			from = i + 1
		}
	}
	add(text[from:])
	return list
}
