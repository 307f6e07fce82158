// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestInClusterConfig(t *testing.T) {
	was := accountDir
	t.Cleanup(func() { accountDir = was })
	accountDir = t.TempDir() + "/"
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	_, err := InClusterConfig()
	require.ErrorIs(t, err, ErrNotInCluster)

	t.Setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
	_, err = InClusterConfig()
	require.ErrorIs(t, err, os.ErrNotExist)
	write(t, accountDir+"token", "secret\n")
	c, err := InClusterConfig()
	require.NoError(t, err)
	base, err := c.BaseURL()
	require.NoError(t, err)
	assert.Equal(t, "https://[fd00::1]:443", base.String())
	_, err = NewClient(c)
	require.ErrorIs(t, err, os.ErrNotExist, "there is no certificate authority")
	write(t, accountDir+"ca.crt", "nothing")
	_, err = NewClient(c)
	require.ErrorContains(t, err, "has no certificate")
}

func TestBaseURL(t *testing.T) {
	for host, want := range map[string]string{
		"": "http://localhost", "api:6443": "http://api:6443", "https://api/": "https://api", "https://api/k8s/c1/?a=b#c": "https://api/k8s/c1",
	} {
		got, err := (&Config{Host: host}).BaseURL()
		require.NoError(t, err)
		assert.Equal(t, want, got.String())
	}
	got, err := (&Config{Host: "api:6443", TLS: TLSClientConfig{Insecure: true}}).BaseURL()
	require.NoError(t, err)
	assert.Equal(t, "https://api:6443", got.String())
	_, err = (&Config{Host: "https://a b"}).BaseURL()
	require.Error(t, err)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// headers returns those of a request with a configuration.
func headers(t *testing.T, c *Config) http.Header {
	t.Helper()
	var got http.Header
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header }))
	defer server.Close()
	client, err := HTTPClientFor(c)
	require.NoError(t, err)
	defer client.CloseIdleConnections()
	response, err := client.Get(server.URL)
	require.NoError(t, err)
	response.Body.Close()
	return got
}

// In a cluster, an API is verified with its certificate authority, and HTTP/2 is used.
func TestTLS(t *testing.T) {
	var proto string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { proto = r.Proto }))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.crt")
	write(t, ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	for _, c := range []*Config{{TLS: TLSClientConfig{CAFile: ca}}, {TLS: TLSClientConfig{Insecure: true}}} {
		client, err := HTTPClientFor(c)
		require.NoError(t, err)
		response, err := client.Get(server.URL)
		require.NoError(t, err)
		response.Body.Close()
		client.CloseIdleConnections()
		assert.Equal(t, "HTTP/2.0", proto)
	}
	client, err := HTTPClientFor(&Config{})
	require.NoError(t, err)
	_, err = client.Get(server.URL)
	require.ErrorContains(t, err, "certificate")
	_, err = HTTPClientFor(&Config{TLS: TLSClientConfig{CertData: []byte("a"), KeyData: []byte("b")}})
	require.ErrorContains(t, err, "cannot use the client's certificate")
}

func TestLogsIn(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	write(t, token, "one\n")
	c := &Config{BearerToken: "fallback", BearerTokenFile: token}
	assert.Equal(t, "Bearer one", headers(t, c).Get("Authorization"))
	write(t, token, "two\n") // as a cluster does
	assert.Equal(t, "Bearer two", headers(t, c).Get("Authorization"))
	require.NoError(t, os.Remove(token))
	assert.Equal(t, "Bearer fallback", headers(t, c).Get("Authorization"))
	assert.Equal(t, "Basic YTpi", headers(t, &Config{Username: "a", Password: "b"}).Get("Authorization"))
	assert.Empty(t, headers(t, &Config{}).Get("Authorization"))

	h := headers(t, &Config{Impersonate: ImpersonationConfig{UserName: "u", UID: "1", Groups: []string{"g", "h"}, Extra: map[string][]string{"a/b": {"c"}}}})
	assert.Equal(t, []string{"u"}, h["Impersonate-User"])
	assert.Equal(t, []string{"1"}, h["Impersonate-Uid"])
	assert.Equal(t, []string{"g", "h"}, h["Impersonate-Group"])
	assert.Equal(t, []string{"c"}, h["Impersonate-Extra-A%2fb"])
}
