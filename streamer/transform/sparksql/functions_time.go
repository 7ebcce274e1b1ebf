package sparksql

import "strings"

// timeDefault is the pattern of unix_timestamp and from_unixtime.
const timeDefault = "yyyy-MM-dd HH:mm:ss"

// pattern is the i-th argument as a date pattern; a constant one is checked now.
func (a *args) pattern(i int) val {
	if !a.has(i) {
		return textVal(timeDefault)
	}
	if v := a.v[i]; v.text != nil {
		if _, err := compilePattern(*v.text); err != nil {
			fail(a.pos, "%s", err)
		}
	}
	return a.str(i)
}

func (a *args) unixTimestamp() val {
	if len(a.v) == 0 {
		return val{sql: "CAST(floor(epoch(get_current_timestamp())) AS BIGINT)", t: simple(Long)}
	}
	v := a.v[0]
	if v.t.Kind == String || v.t.Kind == Null {
		v = maybe(a.udf("spk_parse", simple(Timestamp), a.str(0), a.pattern(1)))
	} else {
		v = a.time(0)
	}
	return a.udf("spk_seconds_toward_zero", simple(Long), v)
}

// addUnit adds a number of units to a time.
func (a *args) addUnit(unit string, n, v val) val {
	if unit == "quarter" {
		return made(v.t, "(%s + to_months(CAST(%s AS INTEGER) * 3))", v, n)
	}
	if unit == "dayofyear" {
		unit = "day"
	}
	count := "CAST(%s AS INTEGER)"
	switch unit {
	case "hour", "minute", "microsecond":
		count = "CAST(%s AS BIGINT)"
	case "second", "millisecond":
		count = "CAST(%s AS DOUBLE)"
	}
	return made(v.t, "(%s + to_"+unit+"s("+count+"))", v, n)
}

func dateFunctions() map[string]builtin {
	part := func(unit string, kind Kind) builtin {
		return builtin{1, 1, func(a *args) val {
			if kind == Date {
				return a.part(unit, a.date(0))
			}
			return a.part(unit, a.time(0))
		}}
	}
	addDays := func(op string) builtin {
		return builtin{2, 2, func(a *args) val {
			return made(simple(Date), "(%s "+op+" %s)", a.date(0), a.int(1))
		}}
	}
	unix := func(k Kind, format string) builtin { return fixed(k, format, Timestamp) }
	return map[string]builtin{
		"year": part("year", Date), "quarter": part("quarter", Date), "month": part("month", Date), "day dayofmonth": part("day", Date),
		"dayofyear": part("doy", Date), "weekofyear": part("week", Date), "dayofweek": part("dow", Date),
		"hour": part("hour", Timestamp), "minute": part("minute", Timestamp),
		"second":  {1, 1, func(a *args) val { return made(simple(Int), "CAST(second(%s) AS INTEGER)", a.time(0)) }},
		"weekday": {1, 1, func(a *args) val { return made(simple(Int), "CAST(isodow(%s) - 1 AS INTEGER)", a.date(0)) }},
		"date_part datepart": {2, 2, func(a *args) val {
			v := a.v[1]
			if v.t.Kind != Date {
				v = a.time(1)
			}
			return a.part(a.text(0), v)
		}},
		"date_add": addDays("+"), "date_sub": addDays("-"),
		"dateadd timestampadd": {2, 3, func(a *args) val {
			if len(a.v) == 2 {
				return made(simple(Date), "(%s + %s)", a.date(0), a.int(1))
			}
			return a.addUnit(a.text(0), a.long(1), a.time(2))
		}},
		"datediff date_diff": {2, 2, func(a *args) val {
			return made(simple(Int), "CAST(%s - %s AS INTEGER)", a.date(0), a.date(1))
		}},
		"add_months": {2, 2, func(a *args) val { return made(simple(Date), "CAST(%s + to_months(%s) AS DATE)", a.date(0), a.int(1)) }},
		"months_between": {2, 3, func(a *args) val {
			return a.udf("spk_months_between", simple(Double), a.time(0), a.time(1), a.optional(2, Boolean, val{sql: "TRUE", t: simple(Boolean)}))
		}},
		"last_day": fixed(Date, "last_day(%s)", Date),
		"next_day": {2, 2, func(a *args) val { return maybe(a.udf("spk_next_day", simple(Date), a.date(0), a.str(1))) }},
		"trunc": {2, 2, func(a *args) val {
			unit, ok := truncUnit(a.text(1))
			if !ok || unit == "day" || unit == "hour" || unit == "minute" || strings.HasSuffix(unit, "second") {
				return val{sql: "CAST(NULL AS DATE)", t: simple(Date), null: true}
			}
			return maybe(made(simple(Date), "CAST(date_trunc('"+unit+"', %s) AS DATE)", a.date(0)))
		}},
		"date_trunc": {2, 2, func(a *args) val {
			unit, ok := truncUnit(a.text(0))
			if !ok {
				return val{sql: "CAST(NULL AS TIMESTAMP)", t: simple(Timestamp), null: true}
			}
			return maybe(made(simple(Timestamp), "CAST(date_trunc('"+unit+"', %s) AS TIMESTAMP)", a.time(1)))
		}},
		"to_date try_to_date": {1, 2, func(a *args) val {
			if len(a.v) == 1 || a.v[0].t.Kind == Date || a.v[0].t.atTime() {
				return maybe(a.date(0))
			}
			return maybe(made(simple(Date), "CAST(%s AS DATE)", a.udf("spk_parse", simple(Timestamp), a.str(0), a.pattern(1))))
		}},
		"to_timestamp try_to_timestamp to_timestamp_ltz": {1, 2, func(a *args) val {
			if len(a.v) == 1 || a.v[0].t.Kind == Date || a.v[0].t.atTime() {
				return maybe(a.time(0))
			}
			return maybe(a.udf("spk_parse", simple(Timestamp), a.str(0), a.pattern(1)))
		}},
		"unix_timestamp":    {0, 2, func(a *args) val { return maybe(a.unixTimestamp()) }},
		"to_unix_timestamp": {1, 2, func(a *args) val { return maybe(a.unixTimestamp()) }},
		"from_unixtime": {1, 2, func(a *args) val {
			return maybe(a.udf("spk_date_format", simple(String), a.udf("spk_from_seconds_wrapped", simple(Timestamp), a.long(0)), a.pattern(1)))
		}},
		"date_format": {2, 2, func(a *args) val { return a.udf("spk_date_format", simple(String), a.time(0), a.pattern(1)) }},
		"make_date":   nulling(Date, "TRY(make_date(CAST(%s AS BIGINT), CAST(%s AS BIGINT), CAST(%s AS BIGINT)))", Int, Int, Int),
		"timestamp_seconds": {1, 1, func(a *args) val {
			if a.v[0].t.integral() {
				return a.udf("spk_from_seconds", simple(Timestamp), a.long(0))
			}
			return a.c.castTimestamp(a.v[0], simple(Timestamp), a.pos)
		}},
		"timestamp_millis": fixed(Timestamp, "make_timestamp(%s * 1000)", Long),
		"timestamp_micros": fixed(Timestamp, "make_timestamp(%s)", Long),
		"unix_seconds":     {1, 1, func(a *args) val { return a.udf("spk_seconds", simple(Long), a.time(0)) }},
		"unix_millis": {1, 1, func(a *args) val {
			return made(simple(Long), "CAST((epoch_us(%[1]s) - ((epoch_us(%[1]s) %% 1000) + 1000) %% 1000) // 1000 AS BIGINT)", a.time(0))
		}},
		"unix_micros":         unix(Long, "epoch_us(%s)"),
		"unix_date":           fixed(Int, "CAST(%s - DATE '1970-01-01' AS INTEGER)", Date),
		"date_from_unix_date": fixed(Date, "(DATE '1970-01-01' + %s)", Int),
		"from_utc_timestamp":  {2, 2, func(a *args) val { return maybe(a.udf("spk_from_utc", simple(Timestamp), a.time(0), a.zone(1))) }},
		"to_utc_timestamp":    {2, 2, func(a *args) val { return maybe(a.udf("spk_to_utc", simple(Timestamp), a.time(0), a.zone(1))) }},
		"convert_timezone": {3, 3, func(a *args) val {
			v := a.udf("spk_to_utc", simple(Timestamp), a.time(2), a.zone(0))
			v = a.udf("spk_from_utc", simple(TimestampNTZ), v, a.zone(1))
			return maybe(v)
		}},
		"current_timezone": {0, 0, func(*args) val { return textVal("UTC") }},
	}
}

// zone is a time zone; a constant one is checked now.
func (a *args) zone(i int) val {
	if v := a.v[i]; v.text != nil {
		if _, ok := parseZone(*v.text); !ok {
			fail(a.pos, "time zone %q is not known", *v.text)
		}
	}
	return a.str(i)
}
