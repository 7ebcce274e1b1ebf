package azure_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/azure"
)

func TestURL(t *testing.T) {
	t.Setenv("AZURE_STORAGE_ACCOUNT", "lake")
	for url, want := range map[string]string{
		"abfss://c@lake.dfs.core.windows.net":        "https://lake.blob.core.windows.net/c/x",
		"ABFS://c@lake.dfs.core.windows.net//a/b c/": "https://lake.blob.core.windows.net/c/a%2Fb%20c%2Fx",
		"wasbs://c@lake.blob.core.chinacloudapi.cn":  "https://lake.blob.core.chinacloudapi.cn/c/x",
		"az://c/a%20": "https://lake.blob.core.windows.net/c/a%2520%2Fx",
		"abfs://c/a":  "https://lake.blob.core.windows.net/c/a%2Fx",
	} {
		asked := ""
		s := open(t, url, azure.Options{Anonymous: true, HTTPClient: &http.Client{Transport: answers(func(r *http.Request) int {
			asked = strings.ReplaceAll(r.URL.String(), "/a/", "/a%2F")
			return http.StatusNotFound
		})}})
		if _, err := s.Stat(t.Context(), "x"); !errors.Is(err, storage.ErrNotExist) {
			t.Errorf("%s: %v", url, err)
		}
		if asked != want {
			t.Errorf("%s asked for %s, want %s", url, asked, want)
		}
	}
	if s := open(t, "ABFSS://c@lake.dfs.core.windows.net//a/b/", azure.Options{Anonymous: true}); s.URL() != "abfss://c@lake.dfs.core.windows.net/a/b" {
		t.Errorf("opened %s", s.URL())
	}
	for url, hint := range map[string]string{
		"az:/c":                                 "not an Azure URL",
		"az:///x":                               "no container",
		"abfss://lake.dfs.core.windows.net@c/x": "no account",
		"wasb://c/x":                            "the account is missing",
		"az://c/../x":                           "unsafe object name",
		`az://c/a\b`:                            "backslash",
		"abfss://c:key@lake.dfs.core.windows.net": "AZURE_STORAGE_KEY",
		"s3://c": "not an Azure URL",
	} {
		if _, err := azure.New(t.Context(), url, azure.Options{}); err == nil || !strings.Contains(err.Error(), hint) {
			t.Errorf("%s: %v, want a hint at %q", url, err, hint)
		}
	}
	t.Setenv("AZURE_STORAGE_ACCOUNT", "")
	if _, err := azure.New(t.Context(), "az://c", azure.Options{}); err == nil || !strings.Contains(err.Error(), "AZURE_STORAGE_ACCOUNT") {
		t.Errorf("no account: %v", err)
	}
}

// answers is a transport that answers each request with a status and no body.
type answers func(*http.Request) int

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	w.Header().Set("ETag", `"1"`)
	w.Header().Set("Content-Length", "1")
	w.WriteHeader(a(r))
	got := w.Result()
	got.Request = r
	return got, nil
}

// The variables of Azure's tools, each with the request that it leads to.
func TestEnvironment(t *testing.T) {
	const key = "a2V5" // base64
	for name, c := range map[string]struct {
		env                      map[string]string
		url, host, authorization string
		query                    string
	}{
		"connection string": {
			env: map[string]string{"AZURE_STORAGE_CONNECTION_STRING": "DefaultEndpointsProtocol=https;AccountName=lake;AccountKey=" + key + ";EndpointSuffix=core.windows.net"},
			url: "az://c", host: "https://lake.blob.core.windows.net", authorization: "SharedKey lake:",
		},
		"connection string with an endpoint": {
			env: map[string]string{"AZURE_STORAGE_CONNECTION_STRING": "AccountName=lake;AccountKey=" + key + ";BlobEndpoint=http://127.0.0.1:10000/lake;"},
			url: "abfss://c@lake.dfs.core.windows.net", host: "http://127.0.0.1:10000", authorization: "SharedKey lake:",
		},
		"connection string with a signature": {
			env: map[string]string{"AZURE_STORAGE_CONNECTION_STRING": "BlobEndpoint=https://lake.blob.core.windows.net;SharedAccessSignature=sv=1&sig=abc"},
			url: "az://c", host: "https://lake.blob.core.windows.net", query: "sig=abc&sv=1",
		},
		"emulator": {
			env: map[string]string{"AZURE_STORAGE_CONNECTION_STRING": "UseDevelopmentStorage=true"},
			url: "az://c", host: "http://127.0.0.1:10000", authorization: "SharedKey devstoreaccount1:",
		},
		"key": {
			env: map[string]string{"AZURE_STORAGE_ACCOUNT": "lake", "AZURE_STORAGE_KEY": key},
			url: "az://c", host: "https://lake.blob.core.windows.net", authorization: "SharedKey lake:",
		},
		"key, the account in the URL": {
			env: map[string]string{"AZURE_STORAGE_ACCOUNT_KEY": key},
			url: "abfss://c@lake.dfs.core.windows.net", host: "https://lake.blob.core.windows.net", authorization: "SharedKey lake:",
		},
		"signature": {
			env: map[string]string{"AZURE_STORAGE_ACCOUNT": "lake", "AZURE_STORAGE_SAS_TOKEN": "?sv=1&sig=abc"},
			url: "az://c", host: "https://lake.blob.core.windows.net", query: "sig=abc&sv=1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			clearEnvironment(t)
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			var asked *http.Request
			s := open(t, c.url, azure.Options{HTTPClient: &http.Client{Transport: answers(func(r *http.Request) int {
				asked = r
				return http.StatusOK
			})}})
			if _, err := s.Stat(t.Context(), "x"); err != nil {
				t.Fatal(err)
			}
			authorization := asked.Header.Get("Authorization")
			if got := asked.URL.Scheme + "://" + asked.URL.Host; got != c.host || !strings.HasPrefix(authorization, c.authorization) ||
				c.authorization == "" && authorization != "" || asked.URL.Query().Encode() != c.query {
				t.Errorf("asked %s, signed %q", asked.URL, authorization)
			}
			if strings.Contains(s.URL(), "abc") {
				t.Errorf("the URL %s tells a secret", s.URL())
			}
		})
	}
}

func clearEnvironment(t *testing.T) {
	t.Helper()
	for _, name := range []string{
		"AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_KEY",
		"AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SERVICE_ENDPOINT", "AZURE_CLIENT_ID",
		"AZURE_TENANT_ID", "AZURE_CLIENT_SECRET",
	} {
		t.Setenv(name, "")
	}
}

// The key of one account is never used for another, whose URL would then show it to a stranger's server or just fail.
func TestKeyOfAnotherAccount(t *testing.T) {
	clearEnvironment(t)
	t.Setenv("AZURE_STORAGE_ACCOUNT", "lake")
	t.Setenv("AZURE_STORAGE_KEY", "a2V5")
	t.Setenv("AZURE_STORAGE_CONNECTION_STRING", "AccountName=lake;AccountKey=a2V5;BlobEndpoint=http://127.0.0.1:1/lake")
	t.Setenv("AZURE_TOKEN_CREDENTIALS", "EnvironmentCredential") // of the default credentials only what is not set
	s := open(t, "abfss://c@pond.dfs.core.windows.net", azure.Options{HTTPClient: &http.Client{Transport: answers(func(r *http.Request) int {
		t.Errorf("asked %s, signed %q", r.URL, r.Header.Get("Authorization"))
		return http.StatusOK
	})}})
	if _, err := s.Stat(t.Context(), "x"); !errors.Is(err, storage.ErrPermission) || !strings.Contains(err.Error(), "az login") {
		t.Errorf("got %v, want ErrPermission and what to do", err)
	}
}

type fixedToken struct{}

func (fixedToken) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: "the token"}, nil
}

// With an identity instead of a key the service reads the source of a copy by the same token.
func TestCopyByIdentity(t *testing.T) {
	clearEnvironment(t)
	var source, authorization string
	client := &http.Client{Transport: answers(func(r *http.Request) int {
		if r.Method == http.MethodPut {
			for name, values := range r.Header { // not yet in the form that Header.Get asks for
				switch strings.ToLower(name) {
				case "x-ms-copy-source":
					source = values[0]
				case "x-ms-copy-source-authorization":
					authorization = values[0]
				}
			}
			return http.StatusAccepted
		}
		if r.Header.Get("Authorization") != "Bearer the token" {
			t.Errorf("signed %q", r.Header.Get("Authorization"))
		}
		return http.StatusOK
	})}
	opts := azure.Options{Credential: fixedToken{}, HTTPClient: client}
	from, to := open(t, "abfss://c@lake.dfs.core.windows.net", opts), open(t, "abfss://c@pond.dfs.core.windows.net", opts)
	// The answers say nothing of the copy's state, which is not "success".
	if _, err := to.CopyFrom(t.Context(), from, "x", "y"); !errors.Is(err, storage.ErrTemporary) || !strings.Contains(err.Error(), "that the copy is") {
		t.Errorf("a copy of unknown state: %v", err)
	}
	if source != "https://lake.blob.core.windows.net/c/x" || authorization != "Bearer the token" {
		t.Errorf("copied %q with %q", source, authorization)
	}
}
