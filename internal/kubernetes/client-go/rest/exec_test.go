// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// program writes a script that prints the contents of a file, and records its arguments and environment.
func program(t *testing.T, says string) (c *ExecConfig, dir string) {
	t.Helper()
	dir = t.TempDir()
	path := filepath.Join(dir, "login")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\necho \"$1 $MORE $KUBERNETES_EXEC_INFO\" >>"+dir+"/told\ncat "+dir+"/says\n"), 0o700))
	write(t, dir+"/says", says)
	return &ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: path, Args: []string{"get"}, Env: []string{"MORE=more"}, Cluster: json.RawMessage(`{"server":"s"}`)}, dir
}

const credential = `{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":`

// A program runs once, until its credentials expire or are refused.
func TestProgramLogsIn(t *testing.T) {
	c, dir := program(t, credential+`{"token":"one"}}`)
	var tokens []string
	refuse := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tokens = append(tokens, r.Header.Get("Authorization"))
		if refuse {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer server.Close()
	client, err := HTTPClientFor(&Config{Exec: c})
	require.NoError(t, err)
	defer client.CloseIdleConnections()
	get := func() {
		t.Helper()
		response, err := client.Get(server.URL)
		require.NoError(t, err)
		response.Body.Close()
	}
	told := func() []string {
		text, err := os.ReadFile(dir + "/told")
		require.NoError(t, err)
		return strings.Split(strings.TrimSpace(string(text)), "\n")
	}
	get()
	get()
	assert.Equal(t, []string{
		`get more {"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"cluster":{"server":"s"},"interactive":false}}`,
	}, told())
	write(t, dir+"/says", credential+`{"token":"two","expirationTimestamp":"2020-01-01T00:00:00Z"}}`)
	refuse = true
	get()
	refuse = false
	get()
	assert.Len(t, told(), 2)
	write(t, dir+"/says", credential+`{"token":"three"}}`)
	get() // the second one had expired
	assert.Equal(t, []string{"Bearer one", "Bearer one", "Bearer one", "Bearer two", "Bearer three"}, tokens)
	assert.Len(t, told(), 3)
}

func TestProgramFails(t *testing.T) {
	for says, want := range map[string]string{
		``:                       "cannot understand",
		`{"apiVersion":"other"}`: "speaks other",
		strings.TrimSuffix(credential, `,"status":`) + `}`: "nothing of a status",
		credential + `{}}`: "neither a token nor a certificate",
		credential + `{"clientCertificateData":"a"}}`:                     "not both",
		credential + `{"clientCertificateData":"a","clientKeyData":"b"}}`: "cannot use the certificate",
	} {
		c, _ := program(t, says)
		_, err := (&plugin{config: c}).token(t.Context())
		require.ErrorContains(t, err, want, says)
	}
	_, err := (&plugin{config: &ExecConfig{Command: "no-such-program-of-a-test", InstallHint: "get it there"}}).token(t.Context())
	require.ErrorContains(t, err, "get it there")
}
