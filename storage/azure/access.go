package azure

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"

	"github.com/sluicelake/sluice/storage"
)

// access is how requests are signed: at most one of the fields is set, none is anonymous.
type access struct {
	key   *container.SharedKeyCredential
	sas   string // without question mark
	token azcore.TokenCredential
}

// connect finds the account, its endpoint and the credentials.
func (s *Store) connect(place Place) error {
	settings, err := parseConnection(environment("AZURE_STORAGE_CONNECTION_STRING"))
	if err != nil {
		return err
	}
	envAccount := environment("AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ACCOUNT_NAME")
	s.account = first(place.Account, s.opts.Account, envAccount, settings.account)
	if s.account == "" {
		return errors.New("the URL names no account; set AZURE_STORAGE_ACCOUNT or write abfss://container@account.dfs.core.windows.net/folder")
	}
	if settings.account != s.account {
		settings = connection{} // of another account
	}
	endpoint := first(s.opts.Endpoint, settings.endpoint, environment("AZURE_STORAGE_SERVICE_ENDPOINT"),
		"https://"+s.account+".blob."+first(settings.suffix, place.Suffix))
	base, err := url.Parse(strings.TrimRight(endpoint, "/"))
	if err != nil || base.Host == "" || base.RawQuery != "" {
		return fmt.Errorf("the endpoint %q is no URL; write https://account.blob.core.windows.net", endpoint)
	}
	if s.access, err = s.credentials(settings, envAccount); err != nil {
		return err
	}
	return s.dial(base.String() + "/" + place.Container)
}

func (s *Store) dial(containerURL string) (err error) {
	opts := &container.ClientOptions{}
	if s.opts.HTTPClient != nil {
		opts.Transport = s.opts.HTTPClient
	}
	opts.Retry = policy.RetryOptions{MaxRetries: 2, RetryDelay: 200 * time.Millisecond, MaxRetryDelay: time.Minute}
	opts.Telemetry.ApplicationID = "sluice"
	opts.PerCallPolicies = []policy.Policy{asStored{}}
	switch {
	case s.access.key != nil:
		s.client, err = container.NewClientWithSharedKeyCredential(containerURL, s.access.key, opts)
	case s.access.token != nil:
		s.client, err = container.NewClient(containerURL, s.access.token, opts)
	case s.access.sas != "":
		s.client, err = container.NewClientWithNoCredential(containerURL+"?"+s.access.sas, opts)
	default:
		s.client, err = container.NewClientWithNoCredential(containerURL, opts)
	}
	return err
}

// asStored asks for bytes as they are. Go's client would unpack blobs that were stored with "Content-Encoding: gzip", whose
// sizes and ranges are those of the packed bytes.
type asStored struct{}

func (asStored) Do(r *policy.Request) (*http.Response, error) {
	r.Raw().Header.Set("Accept-Encoding", "identity")
	return r.Next()
}

// credentials takes the first that there are, of those that are for this account.
func (s *Store) credentials(settings connection, envAccount string) (access, error) {
	o := s.opts
	switch {
	case o.Anonymous:
		return access{}, nil
	case o.AccountKey != "":
		return s.withKey(o.AccountKey)
	case o.SAS != "":
		return access{sas: strings.TrimPrefix(o.SAS, "?")}, nil
	case o.Credential != nil:
		return access{token: o.Credential}, nil
	case settings.key != "":
		return s.withKey(settings.key)
	case settings.sas != "":
		return access{sas: settings.sas}, nil
	}
	if envAccount == "" || envAccount == s.account {
		if key := environment("AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCOUNT_KEY"); key != "" {
			return s.withKey(key)
		}
		if token := environment("AZURE_STORAGE_SAS_TOKEN"); token != "" {
			return access{sas: strings.TrimPrefix(token, "?")}, nil
		}
	}
	found, err := azidentity.NewDefaultAzureCredential(nil)
	if err != nil {
		return access{}, fmt.Errorf("%w: no Azure credentials were found; set AZURE_STORAGE_KEY or run 'az login': %w", storage.ErrPermission, err)
	}
	return access{token: found}, nil
}

func (s *Store) withKey(key string) (access, error) {
	credential, err := container.NewSharedKeyCredential(s.account, key)
	if err != nil {
		return access{}, errors.New("the account key is not base64") // the error of the SDK may show a part of it
	}
	return access{key: credential}, nil
}

// connection is a connection string taken apart.
type connection struct{ account, key, sas, endpoint, suffix string }

// The account of every storage emulator, as Microsoft documents it.
const (
	emulatorAccount  = "devstoreaccount1"
	emulatorKey      = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
	emulatorEndpoint = "http://127.0.0.1:10000/" + emulatorAccount
)

func parseConnection(text string) (connection, error) {
	var c connection
	scheme := "https"
	for field := range strings.SplitSeq(text, ";") {
		name, value, ok := strings.Cut(strings.TrimSpace(field), "=")
		if !ok && name != "" {
			return c, errors.New("AZURE_STORAGE_CONNECTION_STRING is not of the form Name=Value;Name=Value")
		}
		switch name {
		case "AccountName":
			c.account = value
		case "AccountKey":
			c.key = value
		case "SharedAccessSignature":
			c.sas = strings.TrimPrefix(value, "?")
		case "BlobEndpoint":
			c.endpoint = value
		case "EndpointSuffix":
			c.suffix = value
		case "DefaultEndpointsProtocol":
			scheme = value
		case "UseDevelopmentStorage":
			if strings.EqualFold(value, "true") {
				return connection{account: emulatorAccount, key: emulatorKey, endpoint: emulatorEndpoint}, nil
			}
		}
	}
	if c.account == "" && c.endpoint != "" { // a shared access signature alone names no account
		if u, err := url.Parse(c.endpoint); err == nil {
			c.account, _, _ = strings.Cut(u.Host, ".")
		}
	}
	if c.endpoint == "" && c.account != "" && scheme != "https" {
		c.endpoint = scheme + "://" + c.account + ".blob." + first(c.suffix, defaultSuffix)
	}
	return c, nil
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// linkLife is how long the service may take to begin with the last part of a copy.
const linkLife = 6 * time.Hour

// link is a blob's URL for a copy, as this store's credentials open it to the service itself, and the value of
// x-ms-copy-source-authorization where it is needed.
func (s *Store) link(ctx context.Context, name string) (source string, authorization *string, err error) {
	blob := s.blob(name)
	switch {
	case s.access.key != nil:
		source, err = blob.GetSASURL(sas.BlobPermissions{Read: true}, time.Now().Add(linkLife), nil)
	case s.access.token != nil:
		source = blob.URL()
		var token azcore.AccessToken
		token, err = s.access.token.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{"https://storage.azure.com/.default"}})
		bearer := "Bearer " + token.Token
		authorization = &bearer
	default: // its signature is a part of it
		source = blob.URL()
	}
	return source, authorization, err
}
