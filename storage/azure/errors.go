package azure

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"

	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/remote"
)

// status is the HTTP status of an error that is an answer of the store, else 0.
func status(err error) int {
	var answer *azcore.ResponseError
	if errors.As(err, &answer) {
		return answer.StatusCode
	}
	return 0
}

func is(err error, codes ...bloberror.Code) bool { return bloberror.HasCode(err, codes...) }

// classify gives an error of the SDK the meaning that callers ask for. Errors that have one already pass.
func classify(err error) error {
	err = withoutURL(err)
	for _, known := range []error{
		storage.ErrName, storage.ErrNotExist, storage.ErrExist, storage.ErrChanged, storage.ErrTemporary,
		context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, known) {
			return err
		}
	}
	var r *azcore.ResponseError
	if errors.As(err, &r) {
		text := fmt.Sprintf("the store answered %d %s", r.StatusCode, r.ErrorCode)
		if r.RawResponse != nil {
			if id := r.RawResponse.Header.Get("x-ms-request-id"); id != "" {
				text += ", request " + id
			}
		}
		return &remote.Answer{Text: text + hint(r), Kind: kindOf(r), Cause: err, Wait: remote.Wait(r.RawResponse)}
	}
	var refused *azidentity.AuthenticationFailedError
	var unset interface{ NonRetriable() } // also: no credential was found
	if errors.As(err, &refused) || errors.As(err, &unset) {
		return &remote.Answer{
			Text: "no Azure credentials were accepted; set AZURE_STORAGE_KEY or run 'az login' (" + err.Error() + ")",
			Kind: storage.ErrPermission, Cause: err,
		}
	}
	var network net.Error
	var broken *away
	var stranger x509.UnknownAuthorityError
	var misnamed x509.HostnameError
	if (errors.As(err, &broken) || errors.As(err, &network)) && !errors.As(err, &stranger) && !errors.As(err, &misnamed) {
		return fmt.Errorf("%w: %w", storage.ErrTemporary, err)
	}
	return err
}

// away is an error of the connection.
type away struct {
	op  string
	err error
}

func (a *away) Error() string { return a.op + ": " + a.err.Error() }
func (a *away) Unwrap() error { return a.err }

// withoutURL hides the URL of a failed request, which may hold a shared access signature.
func withoutURL(err error) error {
	var told *url.Error
	if errors.As(err, &told) {
		return &away{op: told.Op, err: told.Err}
	}
	return err
}

func kindOf(r *azcore.ResponseError) error {
	switch bloberror.Code(r.ErrorCode) {
	case bloberror.ContainerNotFound, bloberror.ContainerDisabled: // a wrong URL, not a missing object
		return nil
	case bloberror.ServerBusy, bloberror.OperationTimedOut, bloberror.InternalError, bloberror.ContainerBeingDeleted, bloberror.InvalidBlockList:
		return storage.ErrTemporary
	case bloberror.ConditionNotMet:
		return storage.ErrChanged
	case bloberror.CannotVerifyCopySource: // the blob is there, but the service may not read it for us
		return storage.ErrPermission
	}
	switch code := r.StatusCode; {
	case code == http.StatusNotFound:
		return storage.ErrNotExist
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return storage.ErrPermission
	case code == http.StatusInsufficientStorage:
		return storage.ErrNoSpace
	case code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= 500 && code != http.StatusNotImplemented:
		return storage.ErrTemporary
	}
	return nil
}

// hint says what to do about the usual mistakes.
func hint(r *azcore.ResponseError) string {
	switch bloberror.Code(r.ErrorCode) {
	case bloberror.AuthenticationFailed:
		return "; the key or signature is not of this account, or this machine's clock is wrong"
	case bloberror.AuthorizationPermissionMismatch:
		return "; the identity needs a role such as Storage Blob Data Contributor"
	case bloberror.ContainerNotFound:
		return "; there is no such container"
	case bloberror.SnapshotsPresent:
		return "; the blob has snapshots, which are not deleted with it"
	}
	return ""
}
