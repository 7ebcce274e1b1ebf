package sparksql

import (
	"strconv"
	"strings"
)

// autoName is the name that Spark gives a column without an alias: the expression as Spark writes it.
func autoName(x node) string {
	switch e := x.expr.(type) {
	case nameRef:
		return e.parts[len(e.parts)-1]
	case fieldExpr:
		return e.name
	case indexExpr:
		return nameText(x)
	}
	return nameText(x)
}

func nameText(x node) string {
	texts := func(list []node) string {
		parts := make([]string, len(list))
		for i, n := range list {
			parts[i] = nameText(n)
		}
		return strings.Join(parts, ", ")
	}
	not := func(is bool, s string) string {
		if is {
			return "(NOT " + s + ")"
		}
		return s
	}
	switch e := x.expr.(type) {
	case textLit:
		return e.s
	case numLit:
		return strings.TrimRight(strings.ToUpper(e.s), "LSYBD")
	case nullLit:
		return "NULL"
	case boolLit:
		return strconv.FormatBool(e.v)
	case typedLit:
		return strings.ToUpper(e.typ) + " '" + e.s + "'"
	case nameRef:
		return strings.Join(e.parts, ".")
	case fieldExpr:
		return nameText(e.x) + "." + e.name
	case indexExpr:
		return nameText(e.x) + "[" + nameText(e.i) + "]"
	case unaryExpr:
		if e.op == "not" {
			return "(NOT " + nameText(e.x) + ")"
		}
		return "(" + e.op + " " + nameText(e.x) + ")"
	case binaryExpr:
		if e.op == "||" {
			return "concat(" + nameText(e.l) + ", " + nameText(e.r) + ")"
		}
		if e.op == "<>" {
			return "(NOT (" + nameText(e.l) + " = " + nameText(e.r) + "))"
		}
		return "(" + nameText(e.l) + " " + strings.ToUpper(e.op) + " " + nameText(e.r) + ")"
	case castExpr:
		return "CAST(" + nameText(e.x) + " AS " + strings.ToUpper(e.typ.String()) + ")"
	case isExpr:
		if e.what == "null" {
			return "(" + nameText(e.x) + map[bool]string{false: " IS NULL)", true: " IS NOT NULL)"}[e.not]
		}
		return not(e.not, "("+nameText(e.x)+" = "+e.what+")")
	case betweenExpr:
		return not(e.not, "(("+nameText(e.x)+" >= "+nameText(e.low)+") AND ("+nameText(e.x)+" <= "+nameText(e.high)+"))")
	case inExpr:
		return not(e.not, "("+nameText(e.x)+" IN ("+texts(e.list)+"))")
	case likeExpr:
		if e.pattern.expr == nil {
			return "like"
		}
		if e.op == "rlike" {
			return not(e.not, "RLIKE("+nameText(e.x)+", "+nameText(e.pattern)+")")
		}
		return not(e.not, nameText(e.x)+" "+strings.ToUpper(e.op)+" "+nameText(e.pattern))
	case caseExpr:
		s := "CASE"
		for i, w := range e.when {
			if e.operand != nil {
				s += " WHEN (" + nameText(*e.operand) + " = " + nameText(w) + ") THEN " + nameText(e.then[i])
			} else {
				s += " WHEN " + nameText(w) + " THEN " + nameText(e.then[i])
			}
		}
		if e.other != nil {
			s += " ELSE " + nameText(*e.other)
		}
		return s + " END"
	case callExpr:
		arguments := texts(e.args)
		switch {
		case e.star:
			return "count(1)"
		case e.name == "if":
			return "(IF(" + arguments + "))"
		case e.distinct:
			arguments = "DISTINCT " + arguments
		}
		s := e.name + "(" + arguments + ")"
		if e.over != nil {
			s += " OVER (…)"
		}
		return s
	case subquery:
		return "scalarsubquery()"
	}
	return "expression"
}
