package keygen

import (
	"fmt"
	"strconv"
	"strings"
)

// Release is a release of Apache Hudi whose behaviour is asked for. The zero value is the newest rule: release 1.2.0 with
// the guards of the development line (key generation 1.1).
type Release struct{ major, minor, patch int }

// Current is the newest rule.
var Current = Release{}

// ParseRelease reads "0.15.0". The empty text is Current.
func ParseRelease(text string) (Release, error) {
	if text == "" {
		return Current, nil
	}
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return Release{}, fmt.Errorf("release %q: three numbers are expected, as in 0.15.0", text)
	}
	var n [3]int
	for i, p := range parts {
		v, err := strconv.Atoi(p)
		if err != nil || v < 0 {
			return Release{}, fmt.Errorf("release %q: three numbers are expected, as in 0.15.0", text)
		}
		n[i] = v
	}
	return Release{n[0], n[1], n[2]}, nil
}

func (r Release) String() string {
	if r == Current {
		return "current"
	}
	return fmt.Sprintf("%d.%d.%d", r.major, r.minor, r.patch)
}

// since reports whether r is the given release or a later one.
func (r Release) since(major, minor, patch int) bool {
	if r == Current {
		return true
	}
	if r.major != major {
		return r.major > major
	}
	if r.minor != minor {
		return r.minor > minor
	}
	return r.patch >= patch
}

// The changes of key generation 1.1, one predicate each.

// newTimeNames: options hoodie.keygen.timebased.*; automatic keys; no record key option needed.
func (r Release) newTimeNames() bool { return r.since(0, 14, 0) }

// autoKeys: a missing record key option means automatic keys.
func (r Release) autoKeys() bool { return r.since(0, 14, 0) }

// hiveMarker: null partition values are __HIVE_DEFAULT_PARTITION__, default before.
func (r Release) hiveMarker() bool { return r.since(0, 12, 0) }

// consistentTimestamps: the option of that name is read.
func (r Release) consistentTimestamps() bool { return r.since(0, 10, 1) }

// lenientLookup: a missing field is null; 0.9 fails instead. The patch release of the change is not known.
func (r Release) lenientLookup() bool { return r.since(0, 10, 0) }

// strictKeys: a missing field of a multi-field key is an error.
func (r Release) strictKeys() bool { return r.since(1, 0, 0) }

// hexBytes: bytes are written as hex, as the text of a Java object before.
func (r Release) hexBytes() bool { return r.since(0, 10, 0) }

// bareComplex: one-field complex keys were written bare, whatever the options (6.3).
func (r Release) bareComplex() bool {
	switch {
	case !r.since(0, 14, 1):
		return false
	case !r.since(0, 14, 2):
		return true
	case r.major == 0 && r.minor == 14:
		return false
	case r.major == 0:
		return r.minor == 15 && r.patch == 0
	}
	return !r.since(1, 0, 3)
}

// complexOptions: one-field complex keys follow the options of 6.3.
func (r Release) complexOptions() bool { return r.since(0, 14, 2) && !r.bareComplex() }

// micros: the timestamp type EPOCHMICROSECONDS.
func (r Release) micros() bool { return r.since(1, 0, 0) }

// inferCustom: a type in the first partition entry means the custom generator.
func (r Release) inferCustom() bool { return r.since(1, 0, 0) }

// infers: the generator is inferred from the fields.
func (r Release) infers() bool { return r.since(0, 10, 0) }

// earlyCustom: errors of the custom generator's entries come from the constructor.
func (r Release) earlyCustom() bool { return r.since(0, 15, 0) }

// newKeyParser: keys are parsed by the rule of 6.4.
func (r Release) newKeyParser() bool { return r.since(1, 0, 0) }

// userClasses: any other class name is a generator of the user's.
func (r Release) userClasses() bool { return r.since(1, 1, 0) }

// typedPartitionFields: hoodie.table.partition.fields may hold field:type entries.
func (r Release) typedPartitionFields() bool { return r.since(1, 0, 0) }

// slashDates: the option for slash separated dates.
func (r Release) slashDates() bool { return r.since(1, 2, 0) }

// guarded: the development line's guards of slash dates and partition paths.
func (r Release) guarded() bool { return r == Current }

// newestTableVersion is the newest table version that the release knows; it bounds hoodie.write.table.version.
func (r Release) newestTableVersion() int {
	if r == Current {
		return 10
	}
	return 9
}
