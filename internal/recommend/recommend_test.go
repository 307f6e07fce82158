// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const help = "--help"

// ask runs the command.
func ask(t *testing.T, args ...string) (exit int, stderr string) {
	t.Helper()
	exit, done, _, stderr := run(append([]string{group, verb}, args...)...)
	require.True(t, done)
	return exit, stderr
}

func run(args ...string) (exit int, done bool, stdout, stderr string) {
	var out, errs strings.Builder
	c := Command{Distribution: "godwit-agent", Args: args, Stdout: &out, Stderr: &errs}
	exit, done = c.Run()
	return exit, done, out.String(), errs.String()
}

func console(t *testing.T, status int, body string, asked func(*http.Request)) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked(r)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestOtherCommandsAreLeftAlone(t *testing.T) {
	for _, args := range [][]string{nil, {"validate"}, {"--config", group}} {
		_, done, _, _ := run(args...)
		require.False(t, done, args)
	}
}

func TestRulesArePrinted(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("Bearer abc\n"), 0o600))
	var asked *http.Request
	at := console(t, http.StatusOK, `{"yaml":"rules: []\n"}`, func(r *http.Request) { asked = r })
	exit, done, stdout, stderr := run(group, verb, "--console", at+"/behind/", "--rules=5", "--processor", "cardinality/a b", "--authorization-file", secret)
	require.True(t, done)
	require.Zero(t, exit, stderr)
	require.Equal(t, "rules: []\n", stdout)
	require.Equal(t, "/behind/api/v1/cardinality/recommendations", asked.URL.Path)
	require.Equal(t, "5", asked.URL.Query().Get("n"))
	require.Equal(t, "cardinality/a b", asked.URL.Query().Get("processor"))
	require.Equal(t, "Bearer abc", asked.Header.Get("Authorization"))
}

func TestCertificatesAreTrusted(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"yaml":"rules: []\n"}`)) }))
	t.Cleanup(s.Close)
	dir := t.TempDir()
	ca, none := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "none.pem")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600))
	require.NoError(t, os.WriteFile(none, nil, 0o600))
	exit, stderr := ask(t, "--console", s.URL, "--ca-file", ca)
	require.Zero(t, exit, stderr)
	exit, stderr = ask(t, "--console", s.URL)
	require.Equal(t, 1, exit)
	require.Contains(t, stderr, "by --ca-file")
	_, stderr = ask(t, "--console", s.URL, "--ca-file", none)
	require.Contains(t, stderr, "there is no certificate in it")
}

func TestMistakesSayWhatToDo(t *testing.T) {
	nothing := func(*http.Request) {}
	for want, args := range map[string][]string{
		"write godwit-agent cardinality recommend": {group},
		"godwit-agent cardinality recommend":       {group, "list"},
		"must be a URL":                            {group, verb, "--console", "localhost:13155"},
		"all of it is flags":                       {group, verb, "prometheus.yml"},
		"flag provided but not defined":            {group, verb, "--config", "x"},
		"extension `console`":                      {group, verb, "--console", "http://secret:word@127.0.0.1:1"},
		"cannot read --ca-file":                    {group, verb, "--ca-file", "missing"},
		"cannot read --authorization-file":         {group, verb, "--authorization-file", "missing"},
		"there is no cardinality processor":        {group, verb, "--console", console(t, 404, `{"error":{"message":"there is no cardinality processor in the pipelines"}}`, nothing)},
		"answered 401: name a file":                {group, verb, "--console", console(t, 401, "no", nothing)},
		"no password: name a file":                 {group, verb, "--console", console(t, 401, `{"error":{"message":"no password"}}`, nothing)},
		"answered 502":                             {group, verb, "--console", console(t, 502, "no", nothing)},
		"cannot read the console's answer":         {group, verb, "--console", console(t, 200, "no", nothing)},
		"is no console":                            {group, verb, "--console", console(t, 200, "{}", nothing)},
	} {
		exit, done, stdout, stderr := run(args...)
		require.True(t, done)
		require.Equal(t, 1, exit, args)
		require.Empty(t, stdout)
		require.Contains(t, stderr, want)
		require.NotContains(t, stderr, "word@")
	}
	for _, args := range [][]string{{group, help}, {group, verb, help}} {
		exit, done, _, stderr := run(args...)
		require.True(t, done)
		require.Zero(t, exit)
		require.Contains(t, stderr, "--rules 5")
	}
}
