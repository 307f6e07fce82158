// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package clientcmd

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"k8s.io/client-go/rest"
)

func build(t *testing.T, text string) (*rest.Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return BuildConfigFromFlags("", path)
}

const whole = `
apiVersion: v1
kind: Config
current-context: two
contexts:
  - {name: one, context: {cluster: a, user: x}}
  - {name: two, context: {cluster: b, user: y, namespace: shop}}
clusters:
  - {name: a, cluster: {server: "https://a"}}
  - name: b
    cluster:
      server: https://b:6443/prefix
      certificate-authority: ca.crt
      tls-server-name: api
      proxy-url: http://proxy:3128
      disable-compression: true
      extensions: [{name: client.authentication.k8s.io/exec, extension: {audience: test}}]
users:
  - {name: x, user: {token: secret}}
  - name: y
    user:
      client-certificate: /certs/tls.crt
      client-key-data: a2V5
      tokenFile: token
      username: me
      password: mine
      as: other
      as-groups: [g]
      exec: {apiVersion: client.authentication.k8s.io/v1, command: ./login, args: [get], env: [{name: A, value: b}], provideClusterInfo: true, interactiveMode: Never}
`

func TestReadsAFile(t *testing.T) {
	_, err := build(t, whole)
	require.ErrorIs(t, err, os.ErrNotExist, "the program is to be told of a certificate authority that is not there")

	dir := t.TempDir()
	path := filepath.Join(dir, "config")
	require.NoError(t, os.WriteFile(path, []byte(whole), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ca.crt"), []byte("ca"), 0o600))
	c, err := BuildConfigFromFlags("", path)
	require.NoError(t, err)
	request, err := http.NewRequest(http.MethodGet, c.Host, http.NoBody)
	require.NoError(t, err)
	proxy, err := c.Proxy(request)
	require.NoError(t, err)
	assert.Equal(t, "http://proxy:3128", proxy.String())
	c.Proxy = nil
	var about map[string]any
	require.NoError(t, json.Unmarshal(c.Exec.Cluster, &about))
	assert.Equal(t, map[string]any{
		"server": "https://b:6443/prefix", "tls-server-name": "api", "insecure-skip-tls-verify": false, "certificate-authority-data": "Y2E=",
		"proxy-url": "http://proxy:3128", "disable-compression": true, "config": map[string]any{"audience": "test"},
	}, about)
	c.Exec.Cluster = nil
	assert.Equal(t, &rest.Config{
		Host:               "https://b:6443/prefix",
		DisableCompression: true,
		TLS:                rest.TLSClientConfig{ServerName: "api", CAFile: filepath.Join(dir, "ca.crt"), CertFile: "/certs/tls.crt", KeyData: []byte("key")},
		Impersonate:        rest.ImpersonationConfig{UserName: "other", Groups: []string{"g"}},
		BearerTokenFile:    filepath.Join(dir, "token"),
		Username:           "me",
		Password:           "mine",
		Exec:               &rest.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: filepath.Join(dir, "login"), Args: []string{"get"}, Env: []string{"A=b"}},
	}, c)
}

// Credentials are only used with TLS, which a host without a scheme has if the configuration mentions its certificate.
func TestLogsInByTLSAlone(t *testing.T) {
	const text = `{current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], users: [{name: a, user: {token: secret}}], clusters: [{name: a, cluster: {%}}]}`
	for cluster, want := range map[string]string{
		`server: "http://api"`:                               "",
		`server: "api:8080"`:                                 "",
		`server: "https://api"`:                              "secret",
		`server: "api:6443", insecure-skip-tls-verify: true`: "secret",
	} {
		c, err := build(t, strings.Replace(text, "%", cluster, 1))
		require.NoError(t, err)
		assert.Equal(t, want, c.BearerToken, cluster)
	}
}

func TestFilesThatNobodyCanUse(t *testing.T) {
	const head = `{current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], clusters: [{name: a, cluster: {server: "https://a"}}], `
	for text, want := range map[string]string{
		``:                        "no configuration has been provided",
		`a:`:                      "no configuration has been provided",
		`{clusters: [{name: a}]}`: `context "" does not exist`,
		`{current-context: a, contexts: [{name: a, context: {cluster: b}}], clusters: [{name: a}]}`: `cluster "b" does not exist`,
		head + `}`: `auth info "a" does not exist`,
		head + `users: [{name: a, user: {auth-provider: {name: gcp}}}]}`:                                 `no Auth Provider found for name "gcp"`,
		head + `users: [{name: a, user: {exec: {command: a}}}]}`:                                         "apiVersion",
		head + `users: [{name: a, user: {exec: {command: a, apiVersion: b, interactiveMode: Always}}}]}`: "nobody answers",
		head + `users: [{name: a, user: {client-key-data: "!"}}]}`:                                       "illegal base64",
		`{current-context: a, contexts: [{name: a, context: {cluster: a}}], clusters: [{name: a, cluster: {server: "https://a", insecure-skip-tls-verify: true, certificate-authority: b}}]}`: "exclude each other",
		`[`: "error loading config file",
	} {
		_, err := build(t, text)
		require.ErrorContains(t, err, want, text)
	}
	_, err := BuildConfigFromFlags("", filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
