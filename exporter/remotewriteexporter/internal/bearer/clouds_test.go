// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package bearer

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const anyToken = `{"access_token": "text", "expires_in": 3599}`

// without clears the environment variables that a machine in a cloud may have.
func without(t *testing.T) {
	for _, name := range []string{
		"AZURE_AUTHORITY_HOST", "AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_FEDERATED_TOKEN_FILE",
		"AZURE_POD_IDENTITY_AUTHORITY_HOST", "IDENTITY_ENDPOINT", "IDENTITY_HEADER",
		"GOOGLE_APPLICATION_CREDENTIALS", "GCE_METADATA_HOST",
	} {
		t.Setenv(name, "")
	}
	t.Setenv("CLOUDSDK_CONFIG", t.TempDir())
}

func written(t *testing.T, text string) string {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func requireToken(t *testing.T, s Source) {
	t.Helper()
	token, err := s.Token(t.Context())
	require.NoError(t, err)
	require.Equal(t, "text", token.Text)
}

const scope = "https://monitor.azure.com//.default"

func TestAzure(t *testing.T) {
	application := map[string]string{"grant_type": "client_credentials", "client_id": "bird", "client_secret": "secret", "scope": scope}
	workload := map[string]string{
		"grant_type": "client_credentials", "client_id": "bird", "scope": scope, "client_assertion": "of the cluster",
		"client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
	}
	t.Run("secret", func(t *testing.T) {
		without(t)
		at := server(t, wants("/nest/oauth2/v2.0/token", [2]string{}, application), anyToken)
		requireToken(t, &Azure{Authority: at, Scope: scope, Kind: ClientSecret, Tenant: "nest", Client: "bird", Secret: "secret"})
	})
	t.Run("workload", func(t *testing.T) {
		without(t)
		at := server(t, wants("/nest/oauth2/v2.0/token", [2]string{}, workload), anyToken)
		requireToken(t, &Azure{
			Authority: at + "/", Scope: scope, Kind: WorkloadIdentity, Tenant: "nest", Client: "bird", TokenFile: written(t, "of the cluster\n"),
		})
	})
	t.Run("machine", func(t *testing.T) {
		without(t)
		at := server(t, wants("/metadata/identity/oauth2/token", [2]string{"Metadata", "true"}, map[string]string{
			"resource": "https://monitor.azure.com/", "api-version": "2018-02-01", "client_id": "",
		}), anyToken)
		t.Setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", at)
		requireToken(t, &Azure{Scope: scope})
	})
	t.Run("service", func(t *testing.T) {
		without(t)
		at := server(t, wants("/msi", [2]string{"X-IDENTITY-HEADER", "header"}, map[string]string{
			"resource": "https://monitor.azure.com/", "api-version": "2019-08-01", "client_id": "bird",
		}), anyToken)
		t.Setenv("IDENTITY_ENDPOINT", at+"/msi")
		_, err := (&Azure{Scope: scope}).Token(t.Context())
		require.ErrorContains(t, err, "Azure Arc")
		t.Setenv("IDENTITY_HEADER", "header")
		requireToken(t, &Azure{Scope: scope, Client: "bird"})
	})
	t.Run("environment", func(t *testing.T) {
		without(t)
		at := server(t, wants("/metadata/identity/oauth2/token", [2]string{"Metadata", "true"}, map[string]string{"client_id": "bird"}), anyToken)
		t.Setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", at)
		t.Setenv("AZURE_CLIENT_ID", "bird")
		requireToken(t, &Azure{Scope: scope, Kind: Environment})

		t.Setenv("AZURE_AUTHORITY_HOST", server(t, wants("/nest/oauth2/v2.0/token", [2]string{}, workload), anyToken))
		t.Setenv("AZURE_FEDERATED_TOKEN_FILE", written(t, "of the cluster"))
		requireToken(t, &Azure{Scope: scope, Kind: Environment, Tenant: "nest"})

		t.Setenv("AZURE_AUTHORITY_HOST", server(t, wants("/nest/oauth2/v2.0/token", [2]string{}, application), anyToken))
		t.Setenv("AZURE_CLIENT_SECRET", "secret")
		t.Setenv("AZURE_TENANT_ID", "nest")
		requireToken(t, &Azure{Scope: scope, Kind: Environment})
	})
}

// account returns a credentials file, and the key in it.
func account(t *testing.T, tokens string, pkcs8 bool) (file string, key *rsa.PrivateKey) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	der, kind := x509.MarshalPKCS1PrivateKey(key), "RSA PRIVATE KEY"
	if pkcs8 {
		der, err = x509.MarshalPKCS8PrivateKey(key)
		require.NoError(t, err)
		kind = "PRIVATE KEY"
	}
	text, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "bird@nest", "private_key_id": "7", "token_uri": tokens,
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})),
	})
	require.NoError(t, err)
	return written(t, string(text)), key
}

func TestGoogleServiceAccount(t *testing.T) {
	for _, pkcs8 := range []bool{false, true} {
		without(t)
		var public *rsa.PublicKey
		var at string
		at = server(t, func(r *http.Request) error {
			parts := strings.Split(r.Form.Get("assertion"), ".")
			if len(parts) != 3 || r.Form.Get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
				return errors.New("no assertion")
			}
			claim, err := base64.RawURLEncoding.DecodeString(parts[1])
			if err != nil {
				return err
			}
			var c struct {
				Iss   string `json:"iss"`
				Scope string `json:"scope"`
				Aud   string `json:"aud"`
				Iat   int64  `json:"iat"`
				Exp   int64  `json:"exp"`
			}
			if err := json.Unmarshal(claim, &c); err != nil {
				return err
			}
			if c.Iss != "bird@nest" || c.Scope != scopeOfGoogle || c.Aud != at || c.Exp-c.Iat != 3600 {
				return errors.New(string(claim))
			}
			signature, err := base64.RawURLEncoding.DecodeString(parts[2])
			if err != nil {
				return err
			}
			digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
			return rsa.VerifyPKCS1v15(public, crypto.SHA256, digest[:], signature)
		}, anyToken)
		file, key := account(t, at, pkcs8)
		public = &key.PublicKey
		requireToken(t, &Google{File: file})
		t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
		requireToken(t, &Google{})
	}
}

func TestGoogleUser(t *testing.T) {
	without(t)
	at := server(t, wants("/", [2]string{}, map[string]string{
		"grant_type": "refresh_token", "client_id": "bird", "client_secret": "secret", "refresh_token": "fresh",
	}), anyToken)
	text := `{"type": "authorized_user", "client_id": "bird", "client_secret": "secret", "refresh_token": "fresh", "token_uri": "` + at + `"}`
	require.NoError(t, os.WriteFile(filepath.Join(os.Getenv("CLOUDSDK_CONFIG"), "application_default_credentials.json"), []byte(text), 0o600))
	requireToken(t, &Google{})
}

func TestGoogleMachine(t *testing.T) {
	without(t)
	at := server(t, wants("/computeMetadata/v1/instance/service-accounts/default/token", [2]string{"Metadata-Flavor", "Google"},
		map[string]string{"scopes": scopeOfGoogle}), anyToken)
	t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(at, "http://"))
	requireToken(t, &Google{})
}

// TestFaultsOfCredentials: errors name the file, and contain nothing of it except the type.
func TestFaultsOfCredentials(t *testing.T) {
	without(t)
	elliptical, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(elliptical)
	require.NoError(t, err)
	other, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "bird@nest", "private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	require.NoError(t, err)
	for text, want := range map[string]string{
		"secret":                       "it is no JSON object",
		`{"type": "external_account"}`: `its ` + "`type`" + ` must be service_account or authorized_user, got "external_account"`,
		`{"type": "service_account"}`:  "it has no `client_email`",
		`{"type": "service_account", "client_email": "a", "private_key": "secret"}`: "it is no PEM",
		string(other): "it is none of RSA",
	} {
		file := written(t, text)
		_, err := (&Google{File: file}).Token(t.Context())
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, file)
		require.NotContains(t, err.Error(), "secret")
	}
	_, err = (&Google{File: "/no/such/file"}).Token(t.Context())
	require.ErrorContains(t, err, "/no/such/file")
}
