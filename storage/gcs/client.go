package gcs

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/remote"
)

// client sends requests with credentials and turns answers of failure into errors.
type client struct {
	http      *http.Client
	base      string // without slash at the end
	project   string
	anonymous bool

	mu     sync.Mutex
	tokens oauth2.TokenSource // nil until the first request, unless Options had one
}

func (c *client) url(path string, query url.Values) string {
	if c.project != "" {
		if query == nil {
			query = url.Values{}
		}
		query.Set("userProject", c.project)
	}
	if len(query) == 0 {
		return c.base + path
	}
	return c.base + path + "?" + query.Encode()
}

// authorize looks for the credentials once, and again after a failure.
func (c *client) authorize(ctx context.Context, r *http.Request) error {
	if c.anonymous {
		return nil
	}
	c.mu.Lock()
	source := c.tokens
	if source == nil {
		// Tokens are fetched anew long after this request is over.
		found, err := google.FindDefaultCredentials(context.WithValue(context.WithoutCancel(ctx), oauth2.HTTPClient, c.http), scope)
		if err != nil {
			c.mu.Unlock()
			return &remote.Answer{
				Text: "no Google credentials were found; run 'gcloud auth application-default login' or set GOOGLE_APPLICATION_CREDENTIALS (" + err.Error() + ")",
				Kind: storage.ErrPermission, Cause: err,
			}
		}
		source = oauth2.ReuseTokenSource(nil, found.TokenSource)
		c.tokens = source
	}
	c.mu.Unlock()
	token, err := source.Token()
	if err != nil {
		kind := storage.ErrPermission
		var refused *oauth2.RetrieveError
		if !errors.As(err, &refused) || refused.Response != nil && refused.Response.StatusCode >= 500 {
			kind = storage.ErrTemporary
		}
		return &remote.Answer{Text: "Google gave no access token: " + err.Error(), Kind: kind, Cause: err}
	}
	token.SetAuthHeader(r)
	return nil
}

// send sends one request and returns its answer, whose body the caller closes. An answer that is none of the statuses is an
// error.
func (c *client) send(ctx context.Context, method, url string, header http.Header, body []byte, statuses ...int) (*http.Response, error) {
	var reader io.Reader = http.NoBody
	if len(body) > 0 {
		reader = bytes.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, url, reader)
	if err != nil {
		return nil, err
	}
	for k, v := range header {
		r.Header[k] = v
	}
	if err := c.authorize(ctx, r); err != nil {
		return nil, err
	}
	got, err := c.http.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, unreachable(err)
	}
	for _, s := range statuses {
		if got.StatusCode == s {
			return got, nil
		}
	}
	defer got.Body.Close()
	return nil, refusal(got)
}

// unreachable is an error of the connection. All pass with time, except that the server is not who it should be.
func unreachable(err error) error {
	var inner *url.Error
	if errors.As(err, &inner) { // without the URL, which may hold the id of an upload
		err = inner.Err
	}
	var unknown x509.UnknownAuthorityError
	var wrong x509.HostnameError
	if errors.As(err, &unknown) || errors.As(err, &wrong) {
		return err
	}
	return fmt.Errorf("%w: %w", storage.ErrTemporary, err)
}

// again sends a request up to three times while its failure is temporary. It is for requests whose body is in memory and
// that a layer above could not send again.
func (c *client) again(ctx context.Context, send func() (*http.Response, error)) (*http.Response, error) {
	for failed := 1; ; failed++ {
		got, err := send()
		if err == nil || failed == 3 || !errors.Is(classify(err), storage.ErrTemporary) || ctx.Err() != nil {
			return got, err
		}
		if err := pause(ctx, failed, err); err != nil {
			return nil, err
		}
	}
}

// pause waits before another attempt: longer each time, at random, and as long as the service asks for.
func pause(ctx context.Context, failed int, err error) error {
	wait := 200 * time.Millisecond << failed
	wait = wait/2 + rand.N(wait/2)
	var refused *apiError
	if errors.As(err, &refused) && refused.after > wait {
		wait = min(refused.after, time.Minute)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// apiError is an answer of failure.
type apiError struct {
	code            int
	reason, message string
	after           time.Duration // how long to wait, where the service says so
}

func (e *apiError) Error() string {
	text := "the store answered " + strconv.Itoa(e.code)
	if e.reason != "" {
		text += " " + e.reason
	}
	if e.message != "" {
		text += " (" + e.message + ")"
	}
	return text
}

// RetryAfter is how long the service asks to wait, or 0.
func (e *apiError) RetryAfter() time.Duration { return e.after }

func refusal(r *http.Response) *apiError {
	e := &apiError{code: r.StatusCode}
	if seconds, err := strconv.Atoi(r.Header.Get("Retry-After")); err == nil && seconds > 0 {
		e.after = time.Duration(min(seconds, 3600)) * time.Second
	}
	text, _ := io.ReadAll(io.LimitReader(r.Body, 16<<10)) // what can't be read is not told
	var told struct {
		Error struct {
			Message string
			Errors  []struct{ Reason string }
		}
	}
	switch err := json.Unmarshal(text, &told); {
	case err == nil && told.Error.Message != "":
		e.message = told.Error.Message
		if len(told.Error.Errors) > 0 {
			e.reason = told.Error.Errors[0].Reason
		}
	case len(text) > 0:
		e.message = strings.ToValidUTF8(strings.TrimSpace(string(text[:min(len(text), 200)])), "?")
	}
	return e
}

// status is the HTTP status of an error that is an answer of the store, else 0.
func status(err error) int {
	var e *apiError
	if errors.As(err, &e) {
		return e.code
	}
	return 0
}

// classify gives an answer of failure the meaning that callers ask for. Errors that have one already pass.
func classify(err error) error {
	for _, known := range []error{
		storage.ErrName, storage.ErrExist, storage.ErrChanged, storage.ErrTemporary, storage.ErrPermission,
		context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, known) {
			return err
		}
	}
	var e *apiError
	if !errors.As(err, &e) {
		return err
	}
	kind := kindOf(e)
	if kind == nil {
		return err
	}
	text := err.Error()
	if kind == storage.ErrPermission && e.code == http.StatusUnauthorized {
		text += "; the credentials are missing or have expired"
	}
	return &remote.Answer{Text: text, Kind: kind, Cause: err, Wait: e.RetryAfter()}
}

func kindOf(e *apiError) error {
	switch {
	case e.code == http.StatusNotFound && strings.Contains(e.message, "bucket does not exist"):
		return nil // a wrong URL, not a missing object
	case e.code == http.StatusNotFound:
		return storage.ErrNotExist
	case e.reason == "rateLimitExceeded" || e.reason == "userRateLimitExceeded":
		return storage.ErrTemporary
	case e.code == http.StatusUnauthorized || e.code == http.StatusForbidden:
		return storage.ErrPermission
	case e.code == http.StatusTooManyRequests || e.code == http.StatusRequestTimeout || e.code >= 500 && e.code != http.StatusNotImplemented:
		return storage.ErrTemporary
	}
	return nil
}
