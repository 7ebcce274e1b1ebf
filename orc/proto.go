package orc

import "fmt"

// The messages of the file tail and the stripes, by the names and field numbers of orc_proto.proto.

// Compression is the codec of a file's chunks.
type Compression uint8

// The codecs of the format. LZO is read only; Brotli is refused.
const (
	None   Compression = 0
	Zlib   Compression = 1
	Snappy Compression = 2
	LZO    Compression = 3
	LZ4    Compression = 4
	ZSTD   Compression = 5
	Brotli Compression = 6
)

// String gives the codec's name in lower case.
func (c Compression) String() string {
	switch c {
	case None:
		return "none"
	case Zlib:
		return "zlib"
	case Snappy:
		return "snappy"
	case LZO:
		return "lzo"
	case LZ4:
		return "lz4"
	case ZSTD:
		return "zstd"
	case Brotli:
		return "brotli"
	}
	return fmt.Sprintf("compression %d", uint8(c))
}

type streamKind uint8

const (
	streamPresent        streamKind = 0
	streamData           streamKind = 1
	streamLength         streamKind = 2
	streamDictionaryData streamKind = 3
	streamSecondary      streamKind = 5
	streamRowIndex       streamKind = 6
	streamBloom          streamKind = 7
	streamBloomUTF8      streamKind = 8
)

// isIndex tells the streams that lie in the index part of a stripe.
func (k streamKind) isIndex() bool {
	return k == streamRowIndex || k == streamBloom || k == streamBloomUTF8
}

type encodingKind uint8

const (
	encDirect       encodingKind = 0
	encDictionary   encodingKind = 1
	encDirectV2     encodingKind = 2
	encDictionaryV2 encodingKind = 3
)

// Codes of Footer.writer and Footer.calendar.
const (
	writerJava = 0
	// writerOurs is a code that nobody has registered: readers take the file as one of a writer without known faults.
	writerOurs    = 42
	writerVersion = 6 // the first version that a writer other than the Java one may use

	calendarUnknown   = 0
	calendarProleptic = 2
)

type postScript struct {
	footerLength   int64
	compression    Compression
	blockSize      int64
	version        []uint64
	metadataLength int64
	writerVersion  uint32
	magic          string
}

func parsePostScript(b []byte) (p postScript, err error) {
	var kind uint64
	err = each(b, func(f *fields) (err error) {
		switch f.num {
		case 1:
			p.footerLength = f.length()
		case 2:
			kind = f.u
		case 3:
			p.blockSize = f.length()
		case 4:
			p.version, err = f.uints(p.version)
		case 5:
			p.metadataLength = f.length()
		case 6:
			p.writerVersion = f.uint32()
		case 8000:
			p.magic = f.text()
		}
		return err
	})
	p.compression = Compression(min(kind, 255))
	return p, err
}

func (p *postScript) marshal() []byte {
	var m message
	m.uint(1, uint64(p.footerLength))
	m.uint(2, uint64(p.compression))
	if p.compression != None {
		m.uint(3, uint64(p.blockSize))
	}
	m.packed(4, p.version)
	m.uint(5, uint64(p.metadataLength))
	m.uint(6, uint64(p.writerVersion))
	m.text(8000, p.magic)
	return m
}

type stripeInformation struct {
	offset, indexLength, dataLength, footerLength, rows int64
}

func (s *stripeInformation) end() int64 {
	return s.offset + s.indexLength + s.dataLength + s.footerLength
}

type typeMessage struct {
	kind                        typeKind
	subtypes                    []uint64
	names                       []string
	maxLength, precision, scale uint32
	wallClock                   bool // a bigint that Spark's attribute declares a timestamp without zone, in microseconds
}

// Spark has no ORC type for a timestamp without zone: it writes a bigint, and says so in an attribute of the type.
const (
	sparkAttribute = "spark.sql.catalyst.type"
	sparkWallClock = "timestamp_ntz"
)

type footer struct {
	contentLength  int64
	stripes        []stripeInformation
	types          []typeMessage
	metadata       []userMetadata
	rows           int64
	statistics     [][]byte // ColumnStatistics, not parsed
	rowIndexStride uint32
	writer         uint32
	encrypted      bool
	calendar       uint32
	software       string
}

type userMetadata struct {
	name  string
	value []byte
}

// What the parsed form of a message costs, to be counted against the budget: the wire form may be far smaller.
const (
	costOfType   = 256
	costOfStripe = 64
	costOfItem   = 64
)

func parseFooter(b []byte, m *budget) (ft footer, err error) {
	err = each(b, func(f *fields) error {
		switch f.num {
		case 2:
			ft.contentLength = f.length()
		case 3:
			s, err := parseStripeInformation(f.v)
			if err != nil {
				return err
			}
			ft.stripes = append(ft.stripes, s)
			return m.grow(costOfStripe, "the list of stripes")
		case 4:
			t, err := parseType(f.v, m)
			if err != nil {
				return err
			}
			ft.types = append(ft.types, t)
			return m.grow(costOfType, "the types")
		case 5:
			var u userMetadata
			err := each(f.v, func(f *fields) error {
				switch f.num {
				case 1:
					u.name = f.text()
				case 2:
					u.value = append([]byte{}, f.v...)
				}
				return nil
			})
			if err != nil {
				return err
			}
			ft.metadata = append(ft.metadata, u)
			return m.grow(costOfItem+int64(len(f.v)), "the user metadata")
		case 6:
			ft.rows = f.length()
		case 7:
			ft.statistics = append(ft.statistics, f.v)
			return m.grow(costOfItem, "the statistics")
		case 8:
			ft.rowIndexStride = f.uint32()
		case 9:
			ft.writer = f.uint32()
		case 10:
			ft.encrypted = true
		case 11:
			ft.calendar = f.uint32()
		case 12:
			ft.software = f.text()
		}
		return nil
	})
	return ft, err
}

func (ft *footer) marshal() []byte {
	var m message
	m.uint(1, uint64(len(magic)))
	m.uint(2, uint64(ft.contentLength))
	for _, s := range ft.stripes {
		var sm message
		sm.uint(1, uint64(s.offset))
		sm.uint(2, uint64(s.indexLength))
		sm.uint(3, uint64(s.dataLength))
		sm.uint(4, uint64(s.footerLength))
		sm.uint(5, uint64(s.rows))
		m.bytes(3, sm)
	}
	for i := range ft.types {
		m.bytes(4, ft.types[i].marshal())
	}
	for _, u := range ft.metadata {
		var um message
		um.text(1, u.name)
		um.bytes(2, u.value)
		m.bytes(5, um)
	}
	m.uint(6, uint64(ft.rows))
	for _, s := range ft.statistics {
		m.bytes(7, s)
	}
	m.uint(8, uint64(ft.rowIndexStride))
	m.uint(9, uint64(ft.writer))
	m.uint(11, uint64(ft.calendar))
	m.text(12, ft.software)
	return m
}

func parseStripeInformation(b []byte) (s stripeInformation, err error) {
	err = each(b, func(f *fields) error {
		switch f.num {
		case 1:
			s.offset = f.length()
		case 2:
			s.indexLength = f.length()
		case 3:
			s.dataLength = f.length()
		case 4:
			s.footerLength = f.length()
		case 5:
			s.rows = f.length()
		}
		return nil
	})
	return s, err
}

func parseType(b []byte, m *budget) (t typeMessage, err error) {
	kind := uint64(0)
	err = each(b, func(f *fields) (err error) {
		switch f.num {
		case 1:
			kind = f.u
		case 2:
			if err := m.grow(8*int64(len(f.v)+1), "the types"); err != nil {
				return err
			}
			t.subtypes, err = f.uints(t.subtypes)
		case 3:
			t.names = append(t.names, f.text())
			return m.grow(16+int64(len(f.v)), "the names of columns")
		case 4:
			t.maxLength = f.uint32()
		case 5:
			t.precision = f.uint32()
		case 6:
			t.scale = f.uint32()
		case 7:
			var key, value string
			err = each(f.v, func(f *fields) error {
				switch f.num {
				case 1:
					key = f.text()
				case 2:
					value = f.text()
				}
				return nil
			})
			t.wallClock = t.wallClock || key == sparkAttribute && value == sparkWallClock
		}
		return err
	})
	t.kind = typeKind(min(kind, 255))
	return t, err
}

func (t *typeMessage) marshal() []byte {
	var m message
	m.uint(1, uint64(t.kind))
	m.packed(2, t.subtypes)
	for _, n := range t.names {
		m.text(3, n)
	}
	if t.kind == kindDecimal {
		m.uint(5, uint64(t.precision))
		m.uint(6, uint64(t.scale))
	}
	return m
}

type streamInfo struct {
	kind   streamKind
	column uint32
	length int64
}

type columnEncoding struct {
	kind           encodingKind
	dictionarySize uint32
	bloomUTC       bool
}

type stripeFooter struct {
	streams   []streamInfo
	encodings []columnEncoding
	zone      string
	encrypted bool
}

func parseStripeFooter(b []byte, m *budget) (sf stripeFooter, err error) {
	err = each(b, func(f *fields) error {
		switch f.num {
		case 1:
			var s streamInfo
			kind := uint64(0)
			err := each(f.v, func(f *fields) error {
				switch f.num {
				case 1:
					kind = f.u
				case 2:
					s.column = f.uint32()
				case 3:
					s.length = f.length()
				}
				return nil
			})
			s.kind = streamKind(min(kind, 255))
			sf.streams = append(sf.streams, s)
			if err == nil {
				err = m.grow(costOfItem, "the list of streams")
			}
			return err
		case 2:
			var e columnEncoding
			kind := uint64(0)
			err := each(f.v, func(f *fields) error {
				switch f.num {
				case 1:
					kind = f.u
				case 2:
					e.dictionarySize = f.uint32()
				case 3:
					e.bloomUTC = f.u == 1
				}
				return nil
			})
			e.kind = encodingKind(min(kind, 255))
			sf.encodings = append(sf.encodings, e)
			if err == nil {
				err = m.grow(costOfItem, "the encodings")
			}
			return err
		case 3:
			sf.zone = f.text()
		case 4:
			sf.encrypted = true
		}
		return nil
	})
	return sf, err
}

func (sf *stripeFooter) marshal() []byte {
	var m message
	for _, s := range sf.streams {
		var sm message
		sm.uint(1, uint64(s.kind))
		sm.uint(2, uint64(s.column))
		sm.uint(3, uint64(s.length))
		m.bytes(1, sm)
	}
	for _, e := range sf.encodings {
		var em message
		em.uint(1, uint64(e.kind))
		if e.kind == encDictionary || e.kind == encDictionaryV2 {
			em.uint(2, uint64(e.dictionarySize))
		}
		m.bytes(2, em)
	}
	m.text(3, sf.zone)
	return m
}

// rowIndexEntry is one row group of one column.
type rowIndexEntry struct {
	positions  []uint64
	statistics []byte // ColumnStatistics, not parsed
}

func parseRowIndex(b []byte, m *budget) (entries []rowIndexEntry, err error) {
	err = each(b, func(f *fields) error {
		if f.num != 1 {
			return nil
		}
		var e rowIndexEntry
		err := each(f.v, func(f *fields) (err error) {
			switch f.num {
			case 1:
				e.positions, err = f.uints(e.positions)
			case 2:
				e.statistics = f.v
			}
			return err
		})
		if err != nil {
			return err
		}
		entries = append(entries, e)
		return m.grow(costOfItem+8*int64(len(f.v)), "the row index")
	})
	return entries, err
}

// bloomFilter is the filter of one row group of one column, as 64-bit words.
type bloomFilter struct {
	hashes uint32
	words  []byte // little-endian 64-bit words
}

func parseBloomIndex(b []byte, m *budget) (filters []bloomFilter, err error) {
	err = each(b, func(f *fields) error {
		if f.num != 1 {
			return nil
		}
		var bf bloomFilter
		err := each(f.v, func(f *fields) error {
			switch {
			case f.num == 1:
				bf.hashes = f.uint32()
			case f.num == 3 && f.typ == wireBytes:
				bf.words = f.v
			}
			return nil
		})
		if err != nil {
			return err
		}
		filters = append(filters, bf)
		return m.grow(costOfItem, "the bloom filters")
	})
	return filters, err
}
