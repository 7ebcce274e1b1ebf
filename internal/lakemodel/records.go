package lakemodel

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/sluicelake/sluice/interop/rows"
)

var keyColumns = []string{"id", "shop", "region", "level", "day", "made"}

// newKey is the key of a row that the table never had: the columns that keys and partition paths are made of.
func (m *Maker) newKey() rows.Row {
	n := m.next
	m.next++
	key := m.place()
	key["id"] = m.id(n)
	key["shop"] = number(m.rand.Int64N(4))
	if len(m.config.Keys) > 1 && !m.config.PlainKeys {
		if m.rand.IntN(10) == 0 {
			key["shop"] = nil // __null__
		}
	}
	return key
}

// id numbers rows in ways that are hard on quoting and on the order of keys.
func (m *Maker) id(n int) string {
	if m.config.PlainKeys {
		return fmt.Sprintf("k%04d", n)
	}
	switch n % 11 {
	case 3:
		return fmt.Sprintf("it's %d", n)
	case 5:
		return fmt.Sprintf("ключ-%d", n)
	case 7:
		return fmt.Sprintf(`a/"%d"\`, n)
	case 8:
		return fmt.Sprintf("😀%d", n)
	case 9:
		return fmt.Sprintf("\ue000,%d:", n)
	}
	return fmt.Sprintf("k%04d", n)
}

// place is a random partition. Its columns are not null where columns are merged one by one and rows can move: a null would be
// filled from the stored row while the row itself goes to the null partition.
func (m *Maker) place() rows.Row {
	whole := m.config.Global() && (m.config.Payload == PartialUpdate || m.config.Payload == OverwriteNonDefaults)
	regions := []any{"eu", "us", "två ord"}
	switch {
	case m.config.URLEncode:
		regions = append(regions, "a/b", "50%", "x=y", "it's")
	case len(m.config.Partitions) == 1 && !m.config.HiveStyle:
		regions = append(regions, "asia/jp")
	}
	place := rows.Row{
		"region": pick(m.rand, regions),
		"level":  pick(m.rand, []any{number(0), number(1), number(-7), number(2)}),
		"day":    pick(m.rand, []any{"2024-02-29", "1969-12-31", "2026-11-30"}),
		"made":   m.made(),
	}
	if !whole && m.rand.IntN(8) == 0 {
		place[pick(m.rand, []string{"region", "level", "day", "made"})] = nil
	}
	return place
}

// made is a value for the timestamp key generator.
func (m *Maker) made() any {
	at := time.Date(2026, 3, 1+m.rand.IntN(3), 15+m.rand.IntN(3), 30, 0, 0, time.UTC)
	switch m.config.Clock.Type {
	case "UNIX_TIMESTAMP":
		return number(at.Unix())
	case "DATE_STRING":
		return at.Format(time.DateTime)
	}
	return number(at.UnixMilli())
}

// storedKey is the key of a row that is in the table.
func (m *Maker) storedKey() rows.Row { return m.keyOf(pick(m.rand, m.table.Rows).Row) }

func (m *Maker) keyOf(r rows.Row) rows.Row {
	key := rows.Row{}
	for _, name := range keyColumns {
		key[name] = r[name]
	}
	return key
}

// row fills a key up with random values.
func (m *Maker) row(key rows.Row) rows.Row {
	v := values{m.rand, m.config.NullElements}
	r := rows.Row{}
	for _, c := range m.columns {
		switch c.Name {
		case "Op":
			r[c.Name] = pick(m.rand, []any{"I", "U", nil, ""})
		case "state":
			r[c.Name] = pick(m.rand, []any{"here", "Gone", nil})
		case "_hoodie_is_deleted":
			r[c.Name] = pick(m.rand, []any{false, nil})
		case "count":
			r[c.Name] = number(m.rand.Int64N(1000))
			if m.widened {
				r[c.Name] = number(1<<40 + m.rand.Int64N(1000))
			}
		default:
			r[c.Name] = v.of(c.Type)
		}
	}
	maps.Copy(r, key)
	m.order(r, m.rand.Int64N(50))
	return r
}

// mark lets one of so many rows say that it is deleted.
func (m *Maker) mark(r rows.Row, oneOf int) {
	if m.rand.IntN(oneOf) > 0 {
		return
	}
	switch {
	case m.config.Payload == AWSDms:
		r["Op"] = pick(m.rand, []string{"D", "D", "d"})
	case m.config.DeleteMarker:
		r["state"] = "gone"
	case m.config.Flag:
		r["_hoodie_is_deleted"] = true
	}
}

// order sets the ordering value, so far from the step's own time.
func (m *Maker) order(r rows.Row, away int64) {
	at := 10000 + m.clock + away
	switch m.config.OrderingType {
	case "long", "int":
		r["ts"] = number(at)
	case "text":
		r["ts"] = fmt.Sprintf("v%08d", at)
	case "timestamp":
		r["ts"] = time.UnixMicro(1_700_000_000_000_000 + at).UTC().Format("2006-01-02T15:04:05.000000Z")
	case "double":
		r["ts"] = json.Number(strconv.FormatFloat(float64(at)+0.5, 'f', -1, 64))
	case "decimal":
		r["ts"] = strconv.FormatInt(at, 10) + ".125"
	}
}
