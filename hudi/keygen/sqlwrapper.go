package keygen

import (
	"strconv"
	"strings"
)

// The Spark SQL wrapper (key generation 11.3): the origin's keys, with timestamp columns of the partition path rewritten as
// text in the process zone.

func (c *setup) sqlOrigin() Type {
	if name, ok := classes[c.props[KeySQLOrigin]]; ok {
		return baseType(name)
	}
	return Complex
}

// readSQLSchema reads the columns of hoodie.sql.partition.schema, "name type, name type".
func (k *Keygen) readSQLSchema(c *setup) {
	ddl := c.props[KeySQLSchema]
	if ddl == "" {
		return
	}
	for column := range strings.SplitSeq(ddl, ",") {
		name, typ, _ := strings.Cut(strings.TrimSpace(column), " ")
		k.sqlNames = append(k.sqlNames, strings.Trim(name, "`"))
		k.sql = append(k.sql, strings.ToLower(strings.TrimSpace(typ)))
	}
}

// appendSQL rewrites the path that begins at start.
func (k *Keygen) appendSQL(dst []byte, start int) ([]byte, *Error) {
	segments := strings.Split(string(dst[start:]), "/")
	if len(segments) != len(k.sql) {
		return dst, nil
	}
	dst = dst[:start]
	for i, segment := range segments {
		if i > 0 {
			dst = append(dst, '/')
		}
		if k.sql[i] != "timestamp" {
			dst = append(dst, segment...)
			continue
		}
		value := segment
		if rest, ok := strings.CutPrefix(segment, k.sqlNames[i]+"="); ok {
			dst = append(dst, segment[:len(segment)-len(rest)]...)
			value = rest
		}
		var err *Error
		if dst, err = k.appendSQLTimestamp(dst, value); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

func (k *Keygen) appendSQLTimestamp(dst []byte, value string) ([]byte, *Error) {
	if value == NullPartition || value == OldNullPartition {
		return append(dst, value...), nil
	}
	ms, err := k.sqlMillis(value)
	if err != nil {
		return dst, err
	}
	local := ms + k.config.zone.offset(ms)
	days := floorDiv(local, msPerDay)
	y, m, d := civil(days)
	text := appendPadded(nil, y, 4)
	text = append(text, '-')
	text = appendPadded(text, m, 2)
	text = append(text, '-')
	text = appendPadded(text, d, 2)
	text = append(text, ' ')
	text = appendClock(text, (local-days*msPerDay)/1000)
	return appendEscaped(dst, text), nil
}

// sqlMillis: microseconds as a number on the Avro path, else the text of a timestamp.
func (k *Keygen) sqlMillis(value string) (int64, *Error) {
	fail := func(class, message string) *Error {
		return &Error{Class: class, Stage: StagePartition, Message: message, Hint: "switch off " + KeyURLEncode + " or write timestamps as numbers"}
	}
	if k.path == PathAvro && !k.texts.consistent {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return 0, fail(classNumber, "For input string: \""+value+"\"")
		}
		return n / 1000, nil
	}
	head, _, _ := strings.Cut(value, ".")
	p, err := compilePattern("yyyy-MM-dd HH:mm:ss")
	if err == nil {
		var b bucket
		var ms int64
		if ms, _, err = (formats{p}).parse(&b, head, k.config.zone, &span{}, k.config.year); err == nil {
			return ms, nil
		}
	}
	return 0, fail(classArgument, err.Error())
}
