package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"github.com/sluicelake/sluice/storage"
)

// status is the HTTP status of an error that is an answer of the store, else 0.
func status(err error) int {
	var answer *awshttp.ResponseError
	if errors.As(err, &answer) {
		return answer.HTTPStatusCode()
	}
	return 0
}

// apiCode is S3's own word for an error, such as "NoSuchKey", or "".
func apiCode(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// answer is an error of the store in few words, with the kind that callers ask for. The SDK's own error stays reachable by
// errors.As.
type answer struct {
	text  string
	kind  error // nil when it is none of ours
	cause error
}

func (a *answer) Error() string {
	if a.kind == nil {
		return a.text
	}
	return a.kind.Error() + ": " + a.text
}

func (a *answer) Unwrap() []error {
	if a.kind == nil {
		return []error{a.cause}
	}
	return []error{a.kind, a.cause}
}

// RetryAfter is how long the store asks to wait, or 0.
func (a *answer) RetryAfter() time.Duration {
	var r *awshttp.ResponseError
	if !errors.As(a.cause, &r) || r.Response == nil || r.Response.Response == nil {
		return 0
	}
	seconds, err := strconv.Atoi(r.Response.Header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(min(seconds, 3600)) * time.Second
}

// classify gives an error of the SDK the meaning that callers ask for. Errors that have one already pass.
func classify(err error) error {
	for _, known := range []error{
		storage.ErrName, storage.ErrExist, storage.ErrChanged, storage.ErrTemporary, context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, known) {
			return err
		}
	}
	var op *smithy.OperationError
	if !errors.As(err, &op) {
		return err // ours, or the body's
	}
	if code := status(err); code != 0 {
		return &answer{text: describe(err, code), kind: kindOf(err, code), cause: err}
	}
	if text := err.Error(); strings.Contains(text, "get credentials") || strings.Contains(text, "get identity") {
		return &answer{
			text:  "no AWS credentials were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE (" + op.Err.Error() + ")",
			kind:  storage.ErrPermission,
			cause: err,
		}
	}
	var kind error
	if retryable(err) {
		kind = storage.ErrTemporary
	}
	return &answer{text: op.OperationName + ": " + op.Err.Error(), kind: kind, cause: err}
}

func kindOf(err error, code int) error {
	switch apiCode(err) {
	case "NoSuchBucket": // a wrong URL, not a missing object
		return nil
	case "SlowDown", "RequestTimeout", "ConditionalRequestConflict", "OperationAborted", "InternalError", "ServiceUnavailable", "NoSuchUpload":
		return storage.ErrTemporary
	case "XMinioStorageFull", "QuotaExceeded", "ServiceQuotaExceededException":
		return storage.ErrNoSpace
	}
	switch {
	case code == http.StatusNotFound:
		return storage.ErrNotExist
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return storage.ErrPermission
	case code == http.StatusInsufficientStorage:
		return storage.ErrNoSpace
	case code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= 500 && code != http.StatusNotImplemented:
		return storage.ErrTemporary
	case retryable(err):
		return storage.ErrTemporary
	}
	return nil
}

func retryable(err error) bool {
	return retry.IsErrorRetryables(retry.DefaultRetryables).IsErrorRetryable(err) == aws.TrueTernary
}

// describe tells what the store said and, for the usual mistakes, what to do.
func describe(err error, code int) string {
	word := apiCode(err)
	var api smithy.APIError
	if errors.As(err, &api) && api.ErrorMessage() != "" && api.ErrorMessage() != word {
		word += " (" + api.ErrorMessage() + ")"
	}
	text := fmt.Sprintf("the store answered %d %s", code, strings.TrimSpace(word))
	var response *awshttp.ResponseError
	if errors.As(err, &response) && response.ServiceRequestID() != "" {
		text += ", request " + response.ServiceRequestID()
	}
	switch {
	case code == http.StatusMovedPermanently || code == http.StatusTemporaryRedirect:
		text += "; the bucket is in another region: set AWS_REGION"
	case code == http.StatusForbidden && word == "Forbidden":
		text += "; the credentials may not read here, or the object is missing and they may not list"
	}
	return text
}
