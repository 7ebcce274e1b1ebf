package splice

import (
	"errors"
	"fmt"
	"hash/crc32"
)

// maxPageHeader bounds a page header: statistics of wide text are in it.
const maxPageHeader = 16 << 20

// The kinds of pages, and the fields of a page header.
const (
	dataPage       = 0
	dictionaryPage = 2
	dataPageV2     = 3

	pageKind       = 1
	pageCompressed = 3
	pageCRC        = 4
	pageData       = 5
	pageDataV2     = 8
	pageValues     = 1 // of both kinds of data page
)

// walker follows the pages of one column chunk while its bytes pass in pieces, and says what is wrong with them.
type walker struct {
	at    int64 // place in the file of the next byte
	end   int64
	head  []byte // of a page header whose end has not come yet
	left  int64  // bytes of the current page that have not come yet
	check bool   // the page has a checksum
	want  uint32
	sum   uint32

	dataAt   int64 // place of the first data page that the footer tells
	dictAt   int64 // and of the dictionary; 0: none
	values   int64 // that have not come yet
	pages    []pagePlace
	keepEach bool
}

// pagePlace is where a data page lies: header and body.
type pagePlace struct{ at, size int64 }

func newWalker(c *chunk, keepPages bool) walker {
	return walker{at: c.start, end: c.start + c.size, values: c.meta.number(metaValues, 0), dataAt: c.meta.number(metaDataPage, 0),
		dictAt: c.meta.number(metaDictionary, 0), keepEach: keepPages}
}

// write takes the next bytes of the chunk.
func (w *walker) write(p []byte) error {
	for len(p) > 0 {
		if w.left == 0 {
			n, err := w.header(p)
			if err != nil {
				return err
			}
			p = p[n:]
			w.at += int64(n)
			if w.left > 0 || len(w.head) > 0 {
				continue
			}
			if err := w.ended(); err != nil { // a page without a body
				return err
			}
			continue
		}
		n := min(w.left, int64(len(p)))
		if w.check {
			w.sum = crc32.Update(w.sum, crc32.IEEETable, p[:n])
		}
		w.left -= n
		w.at += n
		p = p[n:]
		if w.left == 0 {
			if err := w.ended(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *walker) ended() error {
	if w.check && w.sum != w.want {
		return errors.New("the page's checksum differs")
	}
	return nil
}

// headerGuess is more than most page headers take.
const headerGuess = 512

// skip takes the start of a page, be it the whole header or not, and goes on behind its body, which need not come.
func (w *walker) skip(p []byte) error {
	n, err := w.header(p)
	if err != nil {
		return err
	}
	w.at += int64(n) + w.left
	w.left = 0
	return nil
}

// header reads a page header of which earlier pieces may hold the start, and gives how many bytes of p belong to it. All of p
// where it does not end in it: then head is what there is so far.
func (w *walker) header(p []byte) (int, error) {
	text := p
	before := len(w.head)
	if before > 0 {
		text = append(w.head, p[:min(len(p), headerStep(before))]...)
	}
	h, n, err := parseFields(text)
	if errors.Is(err, errCut) {
		took := len(text) - before
		if w.at+int64(took) >= w.end || len(text) > maxPageHeader {
			return 0, fmt.Errorf("page header: %w", err)
		}
		w.head = append(w.head[:0], text...)
		return took, nil
	}
	if err != nil {
		return 0, fmt.Errorf("page header: %w", err)
	}
	w.head = w.head[:0]
	return n - before, w.page(h, w.at-int64(before), int64(n))
}

// headerStep is how many bytes are added to a header that is not whole: as many again, so that a long one is not parsed for
// every few bytes.
func headerStep(have int) int { return max(have, 512) }

// page begins the page of a header of n bytes that starts at a place.
func (w *walker) page(h fields, at, n int64) error {
	size := h.number(pageCompressed, -1)
	if size < 0 || size > w.end-at-n {
		return fmt.Errorf("a page of %d bytes where %d are left", size, w.end-at-n)
	}
	var crc int64
	crc, w.check = h.integer(pageCRC)
	w.want, w.sum, w.left = uint32(crc), 0, size
	var id int16
	switch kind := h.number(pageKind, -1); kind {
	case dataPage:
		id = pageData
	case dataPageV2:
		id = pageDataV2
	case dictionaryPage:
		if at != w.dictAt && (w.dictAt > 0 || at != w.dataAt) {
			return errors.New("a dictionary that the footer does not know")
		}
		return nil
	default:
		return nil // pages that hold no values
	}
	inner, err := h.structure(id)
	if err != nil {
		return err
	}
	values := inner.number(pageValues, -1)
	if values < 0 || values > w.values {
		return fmt.Errorf("a page of %d values where %d are left", values, w.values)
	}
	if w.keepEach {
		w.pages = append(w.pages, pagePlace{at, n + size})
	}
	w.values -= values
	return nil
}

// close says what is missing when all bytes have come.
func (w *walker) close() error {
	switch {
	case w.left > 0 || len(w.head) > 0:
		return errors.New("the last page is cut")
	case w.values > 0:
		return fmt.Errorf("%d values are missing", w.values)
	}
	return nil
}
