// Package azuretest is a server of the Azure Blob service's documented behaviour, inside a test process and with its blobs in
// memory: the requests that storage/azure sends, with their conditions, errors and signatures (Shared Key). No real server
// can be had as a Go module; the same tests run against Azurite in interop/stores.
package azuretest

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/xml"
	"fmt"
	"hash/crc64"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/azure"
)

// Server is a running server with one account.
type Server struct {
	Endpoint string // "http://127.0.0.1:port/account"
	Account  string
	Key      string // base64; for this process only

	mu         sync.Mutex
	containers map[string]map[string]*blob
	staged     map[string]map[string][]byte // container/blob: uncommitted blocks
	version    int
}

type blob struct {
	data     []byte
	etag     string
	modified time.Time
	metadata map[string]string // by lower-case name
}

// Start runs a server until the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{
		Account: "lake", Key: base64.StdEncoding.EncodeToString([]byte(storage.NewToken())),
		containers: map[string]map[string]*blob{}, staged: map[string]map[string][]byte{},
	}
	front := httptest.NewServer(s)
	t.Cleanup(front.Close)
	s.Endpoint = front.URL + "/" + s.Account
	return s
}

// Container makes a new, empty container.
func (s *Server) Container(testing.TB) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := fmt.Sprintf("container-%d", len(s.containers)+1)
	s.containers[name] = map[string]*blob{}
	return name
}

// Put stores a blob as another tool would, with metadata by lower-case name.
func (s *Server) Put(containerName, name string, data []byte, metadata map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store(containerName, name, data, metadata)
}

// Uncommitted counts the blobs that have staged blocks.
func (s *Server) Uncommitted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.staged)
}

// Options reach the server without the environment.
func (s *Server) Options() azure.Options {
	return azure.Options{Endpoint: s.Endpoint, Account: s.Account, AccountKey: s.Key}
}

// Store opens a folder in a new container.
func (s *Server) Store(t testing.TB) *azure.Store {
	t.Helper()
	store, err := azure.New(t.Context(), "az://"+s.Container(t)+"/lake/table", s.Options())
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func (s *Server) store(containerName, name string, data []byte, metadata map[string]string) *blob {
	s.version++
	b := &blob{data: data, etag: fmt.Sprintf(`"0x8D%013X"`, s.version), modified: time.Now().UTC().Truncate(time.Second), metadata: metadata}
	s.containers[containerName][name] = b
	delete(s.staged, containerName+"/"+name)
	return b
}

// request is one request taken apart.
type request struct {
	out http.ResponseWriter
	*http.Request
	container, blob string
	query           url.Values
	body            []byte
}

func (r *request) refuse(status int, code string) {
	r.out.Header().Set("x-ms-error-code", code)
	r.out.Header().Set("Content-Type", "application/xml")
	r.out.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = fmt.Fprintf(r.out, `<?xml version="1.0" encoding="utf-8"?><Error><Code>%s</Code><Message>%s</Message></Error>`, code, code)
	}
}

// ServeHTTP answers one request, all of it under one lock: conditions and effects are one step.
func (s *Server) ServeHTTP(w http.ResponseWriter, in *http.Request) {
	body, err := io.ReadAll(in.Body)
	if err != nil {
		return // the client is gone
	}
	path, _ := strings.CutPrefix(in.URL.Path, "/"+s.Account+"/")
	r := &request{out: w, Request: in, query: in.URL.Query(), body: body}
	r.container, r.blob, _ = strings.Cut(path, "/")
	r.blob = strings.ReplaceAll(r.blob, `\`, "/") // as the service does
	w.Header().Set("x-ms-request-id", "1")
	w.Header().Set("x-ms-version", in.Header.Get("x-ms-version"))

	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.signed(in):
		r.refuse(http.StatusForbidden, "AuthenticationFailed")
	case s.containers[r.container] == nil:
		r.refuse(http.StatusNotFound, "ContainerNotFound")
	case r.query.Get("comp") == "list":
		s.list(r)
	case !r.intact():
		r.refuse(http.StatusBadRequest, "Crc64Mismatch")
	case in.Method == http.MethodPut:
		s.put(r)
	case in.Method == http.MethodGet || in.Method == http.MethodHead:
		s.get(r)
	case in.Method == http.MethodDelete:
		if s.containers[r.container][r.blob] == nil {
			r.refuse(http.StatusNotFound, "BlobNotFound")
			return
		}
		delete(s.containers[r.container], r.blob)
		w.WriteHeader(http.StatusAccepted)
	default:
		r.refuse(http.StatusMethodNotAllowed, "UnsupportedHttpVerb")
	}
}

// signed checks a Shared Key ("Authorize with Shared Key", Blob service, 2015-02-21 and later). Reads with a shared access
// signature only need to have one.
func (s *Server) signed(r *http.Request) bool {
	if sig := r.URL.Query().Get("sig"); sig != "" {
		return r.Method == http.MethodGet && r.URL.Query().Get("sp") == "r"
	}
	length := strconv.FormatInt(r.ContentLength, 10)
	if r.ContentLength <= 0 {
		length = ""
	}
	parts := []string{r.Method}
	for _, name := range []string{"Content-Encoding", "Content-Language"} {
		parts = append(parts, r.Header.Get(name))
	}
	parts = append(parts, length)
	for _, name := range []string{"Content-MD5", "Content-Type", "Date", "If-Modified-Since", "If-Match", "If-None-Match", "If-Unmodified-Since", "Range"} {
		parts = append(parts, r.Header.Get(name))
	}
	var headers []string
	for name, values := range r.Header {
		if name = strings.ToLower(name); strings.HasPrefix(name, "x-ms-") {
			headers = append(headers, name+":"+strings.Join(values, ","))
		}
	}
	slices.Sort(headers)
	parts = append(parts, headers...)
	resource := "/" + s.Account + r.URL.EscapedPath()
	query := r.URL.Query()
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range query {
			if !yield(name) {
				return
			}
		}
	}) {
		slices.Sort(query[name])
		resource += "\n" + strings.ToLower(name) + ":" + strings.Join(query[name], ",")
	}
	key, err := base64.StdEncoding.DecodeString(s.Key)
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, key)
	_, _ = io.WriteString(mac, strings.Join(append(parts, resource), "\n"))
	return r.Header.Get("Authorization") == "SharedKey "+s.Account+":"+base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// crc64Polynomial is that of the service, reflected.
const crc64Polynomial = 0x9A6C9329AC4BC9B5

// intact checks the checksum that came with a body.
func (r *request) intact() bool {
	told := r.Header.Get("x-ms-content-crc64")
	if told == "" {
		return true
	}
	sum := binary.LittleEndian.AppendUint64(nil, crc64.Checksum(r.body, crc64.MakeTable(crc64Polynomial)))
	return told == base64.StdEncoding.EncodeToString(sum)
}

func (s *Server) put(r *request) {
	id := r.container + "/" + r.blob
	there := s.containers[r.container][r.blob]
	switch comp, source := r.query.Get("comp"), r.Header.Get("x-ms-copy-source"); {
	case r.Header.Get("If-None-Match") == "*" && there != nil && comp != "block":
		r.refuse(http.StatusConflict, "BlobAlreadyExists")
	case comp == "block" && source != "":
		if data, ok := s.source(r, source); ok {
			s.stage(r, id, data)
		}
	case comp == "block":
		s.stage(r, id, r.body)
	case comp == "blocklist":
		s.commit(r, id)
	case source != "":
		s.copy(r, source)
	case r.Header.Get("x-ms-blob-type") != "BlockBlob":
		r.refuse(http.StatusBadRequest, "InvalidHeaderValue")
	default:
		r.created(s.store(r.container, r.blob, r.body, r.metadata()), http.StatusCreated)
	}
}

func (r *request) metadata() map[string]string {
	out := map[string]string{}
	for name, values := range r.Header {
		if key, ok := strings.CutPrefix(strings.ToLower(name), "x-ms-meta-"); ok {
			out[key] = values[0]
		}
	}
	return out
}

func (r *request) created(b *blob, status int) {
	r.out.Header().Set("ETag", b.etag)
	r.out.Header().Set("Last-Modified", b.modified.Format(http.TimeFormat))
	r.out.WriteHeader(status)
}

// stage keeps a block. All ids of a blob must have one length.
func (s *Server) stage(r *request, id string, data []byte) {
	block := r.query.Get("blockid")
	if raw, err := base64.StdEncoding.DecodeString(block); err != nil || len(raw) == 0 || len(raw) > 64 || len(data) == 0 {
		r.refuse(http.StatusBadRequest, "InvalidQueryParameterValue")
		return
	}
	for other := range s.staged[id] {
		if len(other) != len(block) {
			r.refuse(http.StatusBadRequest, "InvalidBlobOrBlock")
			return
		}
	}
	if s.staged[id] == nil {
		s.staged[id] = map[string][]byte{}
	}
	s.staged[id][block] = data
	r.out.WriteHeader(http.StatusCreated)
}

// commit makes a blob of staged blocks and forgets all that were staged.
func (s *Server) commit(r *request, id string) {
	var wanted struct {
		Latest      []string `xml:"Latest"`
		Uncommitted []string `xml:"Uncommitted"`
	}
	if err := xml.Unmarshal(r.body, &wanted); err != nil {
		r.refuse(http.StatusBadRequest, "InvalidXmlDocument")
		return
	}
	var data []byte
	for _, block := range append(wanted.Latest, wanted.Uncommitted...) {
		part, ok := s.staged[id][block]
		if !ok {
			r.refuse(http.StatusBadRequest, "InvalidBlockList")
			return
		}
		data = append(data, part...)
	}
	r.created(s.store(r.container, r.blob, data, r.metadata()), http.StatusCreated)
}

// source gives the bytes of a copy's source, which must be opened by a signature of its own.
func (s *Server) source(r *request, source string) ([]byte, bool) {
	u, err := url.Parse(source)
	if err != nil || u.Query().Get("sig") == "" || u.Query().Get("sp") != "r" {
		r.refuse(http.StatusForbidden, "CannotVerifyCopySource")
		return nil, false
	}
	path, _ := strings.CutPrefix(u.Path, "/"+s.Account+"/")
	container, name, _ := strings.Cut(path, "/")
	from := s.containers[container][name]
	if from == nil {
		r.refuse(http.StatusNotFound, "CannotVerifyCopySource")
		return nil, false
	}
	if match := r.Header.Get("x-ms-source-if-match"); match != "" && match != from.etag {
		r.refuse(http.StatusPreconditionFailed, "SourceConditionNotMet")
		return nil, false
	}
	data := from.data
	if span := r.Header.Get("x-ms-source-range"); span != "" {
		first, last, ok := parseRange(span, len(data))
		if !ok {
			r.refuse(http.StatusRequestedRangeNotSatisfiable, "InvalidRange")
			return nil, false
		}
		data = data[first : last+1]
	}
	return data, true
}

func (s *Server) copy(r *request, source string) {
	if r.Header.Get("x-ms-requires-sync") != "true" {
		r.refuse(http.StatusNotImplemented, "NotImplemented")
		return
	}
	data, ok := s.source(r, source)
	if !ok {
		return
	}
	r.out.Header().Set("x-ms-copy-status", "success")
	r.out.Header().Set("x-ms-copy-id", "1")
	r.created(s.store(r.container, r.blob, data, r.metadata()), http.StatusAccepted)
}

// parseRange reads "bytes=0-99"; last is the index of the last byte that there is.
func parseRange(span string, size int) (first, last int, ok bool) {
	from, to, _ := strings.Cut(strings.TrimPrefix(span, "bytes="), "-")
	first, err := strconv.Atoi(from)
	if err != nil || first >= size {
		return 0, 0, false
	}
	if last, err = strconv.Atoi(to); err != nil || last >= size {
		last = size - 1
	}
	return first, last, last >= first
}

func (s *Server) get(r *request) {
	b := s.containers[r.container][r.blob]
	if b == nil {
		r.refuse(http.StatusNotFound, "BlobNotFound")
		return
	}
	if match := r.Header.Get("If-Match"); match != "" && match != b.etag {
		r.refuse(http.StatusPreconditionFailed, "ConditionNotMet")
		return
	}
	head := r.out.Header()
	head.Set("ETag", b.etag)
	head.Set("Last-Modified", b.modified.Format(http.TimeFormat))
	head.Set("x-ms-blob-type", "BlockBlob")
	for name, v := range b.metadata {
		head.Set("x-ms-meta-"+name, v)
	}
	data, status := b.data, http.StatusOK
	if span := first(r.Header.Get("x-ms-range"), r.Header.Get("Range")); span != "" && r.Method == http.MethodGet {
		from, to, ok := parseRange(span, len(data))
		if !ok {
			r.refuse(http.StatusRequestedRangeNotSatisfiable, "InvalidRange")
			return
		}
		head.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, len(data)))
		data, status = data[from:to+1], http.StatusPartialContent
	}
	head.Set("Content-Length", strconv.Itoa(len(data)))
	r.out.WriteHeader(status)
	if r.Method == http.MethodGet {
		_, _ = io.Copy(r.out, bytes.NewReader(data))
	}
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// list answers in pages of at most 1000, fewer than the service's 5000, each in an order that nobody may rely on: how the
// service sorts depends on the kind of the account.
func (s *Server) list(r *request) {
	prefix, delimiter, marker := r.query.Get("prefix"), r.query.Get("delimiter"), r.query.Get("marker")
	var names []string
	folders := map[string]bool{}
	for name := range s.containers[r.container] {
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		if at := strings.Index(rest, "/"); delimiter == "/" && at >= 0 {
			if folder := prefix + rest[:at+1]; !folders[folder] {
				folders[folder] = true
				names = append(names, folder)
			}
			continue
		}
		names = append(names, name)
	}
	slices.Sort(names)
	from, _ := slices.BinarySearch(names, marker)
	to := min(from+1000, len(names))
	next := ""
	if to < len(names) {
		next = names[to]
	}
	page := names[from:to]
	if strings.Contains(r.query.Get("include"), "metadata") {
		slices.Reverse(page) // nobody may rely on an order
	}
	var out bytes.Buffer
	out.WriteString(`<?xml version="1.0" encoding="utf-8"?><EnumerationResults><Blobs>`)
	for _, name := range page {
		s.entry(&out, r, name, folders[name])
	}
	out.WriteString("</Blobs><NextMarker>" + escaped(next) + "</NextMarker></EnumerationResults>")
	r.out.Header().Set("Content-Type", "application/xml")
	_, _ = r.out.Write(out.Bytes())
}

func (s *Server) entry(out *bytes.Buffer, r *request, name string, folder bool) {
	if folder {
		out.WriteString("<BlobPrefix><Name>" + escaped(name) + "</Name></BlobPrefix>")
		return
	}
	b := s.containers[r.container][name]
	out.WriteString("<Blob><Name>" + escaped(name) + "</Name><Properties><Last-Modified>" + b.modified.Format(http.TimeFormat) +
		"</Last-Modified><Etag>" + strings.Trim(b.etag, `"`) + "</Etag><Content-Length>" + strconv.Itoa(len(b.data)) +
		"</Content-Length><BlobType>BlockBlob</BlobType></Properties><Metadata>")
	if strings.Contains(r.query.Get("include"), "metadata") {
		for key, v := range b.metadata {
			out.WriteString("<" + key + ">" + escaped(v) + "</" + key + ">")
		}
	}
	out.WriteString("</Metadata></Blob>")
}

func escaped(text string) string {
	var out bytes.Buffer
	_ = xml.EscapeText(&out, []byte(text))
	return out.String()
}
