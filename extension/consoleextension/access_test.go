// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/extension/extensionauth"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/consoletest"
	"github.com/godwit-otel/godwit/internal/certtest"
)

// doorkeeper is an authentication extension that accepts one user.
type doorkeeper struct {
	component.StartFunc
	component.ShutdownFunc
	extensionauth.ServerAuthenticateFunc
}

const guest = "Basic bWU6czNjcjN0" // me:s3cr3t

func newDoorkeeper() doorkeeper {
	return doorkeeper{ServerAuthenticateFunc: func(ctx context.Context, sources map[string][]string) (context.Context, error) {
		if got := sources["Authorization"]; len(got) != 1 || got[0] != guest {
			return ctx, errors.New("not authenticated")
		}
		return ctx, nil
	}}
}

type doors map[component.ID]component.Component

func (d doors) GetExtensions() map[component.ID]component.Component { return d }

// locked runs a console with TLS and authentication, configured like a user would; it trusts only its own certificate.
func locked(t *testing.T, authenticator string) (url string, trusting *http.Client) {
	t.Helper()
	certificate, key := certtest.SelfSigned(t)
	pool := certtest.Pool(t, certificate)
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, confmap.NewFromStringMap(map[string]any{
		"endpoint": "127.0.0.1:0",
		"tls":      map[string]any{"cert_pem": certificate, "key_pem": key},
		"auth":     map[string]any{"authenticator": authenticator},
	}).Unmarshal(cfg))
	require.NoError(t, confmap.Validate(cfg))
	c := newConsole(cfg, newSettings(), time.Now)
	require.NoError(t, c.Start(t.Context(), doors{consoletest.ID(authenticator): newDoorkeeper()}))
	t.Cleanup(func() { require.NoError(t, c.Shutdown(context.Background())) })
	return c.url(), &http.Client{
		Timeout:   time.Minute,
		Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool}},
	}
}

func TestNothingIsShownWithoutCredentials(t *testing.T) {
	url, client := locked(t, "basicauth/people")
	ask := func(path, credentials string) *http.Response {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path[1:], http.NoBody)
		require.NoError(t, err)
		if credentials != "" {
			request.Header.Set("Authorization", credentials)
		}
		response, err := client.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response
	}
	for _, path := range everything {
		for _, wrong := range []string{"", "Basic bWU6bWU=", "Bearer " + guest, guest + "x"} {
			response := ask(path, wrong)
			require.Equal(t, http.StatusUnauthorized, response.StatusCode, "%s with %q", path, wrong)
			require.Equal(t, `Basic realm="console"`, response.Header.Get("WWW-Authenticate"), "browsers ask by it")
			require.Equal(t, "no-store", response.Header.Get("Cache-Control"))
			require.Equal(t, "nosniff", response.Header.Get("X-Content-Type-Options"))
		}
	}
	for _, path := range []string{"/", "/app.js", "/app.css", "/theme.js", "/icon.svg", "/api/v1/overview", "/api/v1/openapi.yaml"} {
		require.Equal(t, http.StatusOK, ask(path, guest).StatusCode, path)
	}
}

func TestTheChallengeIsOfTheAuthenticator(t *testing.T) {
	url, client := locked(t, "bearertokenauth")
	response, err := client.Get(url)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, `Bearer realm="console"`, response.Header.Get("WWW-Authenticate"))
}

func TestWithTLSThereIsNothingInPlainText(t *testing.T) {
	url, client := locked(t, "basicauth")
	require.Regexp(t, "^https://", url)
	response, err := client.Get("http" + url[len("https"):])
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusBadRequest, response.StatusCode)
	stranger := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	_, err = stranger.Get(url)
	require.ErrorContains(t, err, "certificate")
}
