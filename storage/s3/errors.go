package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/remote"
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

// wait is how long the store asks to wait, or 0.
func wait(err error) time.Duration {
	var r *awshttp.ResponseError
	if !errors.As(err, &r) || r.Response == nil {
		return 0
	}
	return remote.Wait(r.Response.Response)
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
		return &remote.Answer{Text: describe(err, code), Kind: kindOf(err, code), Cause: err, Wait: wait(err)}
	}
	if text := err.Error(); strings.Contains(text, "get credentials") || strings.Contains(text, "get identity") {
		return &remote.Answer{
			Text:  "no AWS credentials were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE (" + op.Err.Error() + ")",
			Kind:  storage.ErrPermission,
			Cause: err,
		}
	}
	var kind error
	if retryable(err) {
		kind = storage.ErrTemporary
	}
	return &remote.Answer{Text: op.OperationName + ": " + op.Err.Error(), Kind: kind, Cause: err, Wait: wait(err)}
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
