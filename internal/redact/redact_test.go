// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"errors"
	"io"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSecretNames(t *testing.T) {
	for _, name := range []string{
		"password", "Password", "db_password", "token", "access-token", "client_secret", "apiKey", "api_key", "api.key", "credentials", "auth",
		"Authorization", "X-Auth-Token", "cookie", "private_key", "dsn", "secret_access_key", "pass", "htpasswd",
	} {
		require.True(t, Secret(name), name)
	}
	for _, name := range []string{
		"endpoint", "username", "key_file", "password_file", "credentials_file", "token_url", "token_file", "auth_type", "key", "author", "passive",
		"secret_name", "token_refresh_interval", "max_series", "compass", "headers",
	} {
		require.False(t, Secret(name), name)
	}
}

func TestText(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		require.Equal(t, want, Text(in))
		require.Equal(t, want, Text(want), "once is enough")
	}
	f("", "")
	f("http://host:80/metrics", "http://host:80/metrics")
	f("http://u:p@host/", "http://[REDACTED]@host/")
	f("http://token@host/", "http://[REDACTED]@host/")
	f("http://u:p@ss@host/x@y", "http://[REDACTED]@host/x@y")
	f("postgres://u:p@a,b/x?sslmode=on", "postgres://[REDACTED]@a,b/x?sslmode=[REDACTED]")
	f("http://host/?a=b&token=x&c=d", "http://host/?a=[REDACTED]&token=[REDACTED]&c=[REDACTED]")
	f("http://host/?match[]=up&key=x", "http://host/?match[]=[REDACTED]&key=[REDACTED]")
	f(`password="a b" user=c`, `password=[REDACTED] user=c`)
	f("me@example.com", "me@example.com")
	f("u:p@host:1", "u:[REDACTED]@host:1")
	f("Bearer of bad news", "Bearer of bad news")
	f("Authorization: Bearer abcdef123456", "Authorization: Bearer [REDACTED]")
	f(`Get "http://h/probe?target=a&x#f": dial tcp`, `Get "http://h/probe?target=[REDACTED]&[REDACTED]#f": dial tcp`)
	f(`Get "http://h/?a=b c&d=e": EOF`, `Get "http://h/?a=[REDACTED]&d=[REDACTED]": EOF`)
	f(`parse "http://u:p/w@h": invalid port ":p" after host`, `parse "http://[REDACTED]@h": invalid port after host`)
	f(`400 Bad Request: {"client_secret": "s", "a":"b"}`, `400 Bad Request: {"client_secret": "[REDACTED]", "a":"b"}`)
	f(`malformed: "{\"api_key\":\"s\"}"`, `malformed: "{\"api_key\":\"[REDACTED]\"}"`)
	f(`malformed MIME header line: "X-Auth-Token : s t"`, `malformed MIME header line: "X-Auth-Token : s t"`)
	f(`malformed MIME header line: "x-auth-token: s t"`, `malformed MIME header line: "x-auth-token: [REDACTED]"`)
	f("address u:p/w@h:4317: too many colons in address", "address [REDACTED]@h:4317: too many colons in address")
	f("from http://h/?key=x: EOF", "from http://h/?key=[REDACTED]: EOF")
	f("401 Authorization: Custom s", "401 Authorization: [REDACTED]")
	f("cannot read the password: no such file", "cannot read the password: no such file")
	f("eyJhbGciOiJIUzI1NiJ9.e30.x", "[REDACTED]")
	f("Basic dTpw refused", "Basic [REDACTED] refused")
	f("token ghp_abcdef", "token [REDACTED]")
	f("oauth2: token expired and refresh token is not set", "oauth2: token expired and refresh token is not set")
	f("server requires basic authentication.", "server requires basic authentication.")
}

func TestURL(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		require.Equal(t, want, URL(in))
		require.Equal(t, want, URL(want), "once is enough")
	}
	f("", "")
	f("gateway:4317", "gateway:4317")
	f("dns:///gateway:4317", "dns:///gateway:4317")
	f("unix:///run/a@b.sock", "unix:///run/a@b.sock")
	f("https://h:1/a@b?c=d@e#f", "https://h:1/a@b?c=[REDACTED]#f")
	f("u:p@gateway:4317", "[REDACTED]@gateway:4317")
	f("u:p/w@gateway:4317", "[REDACTED]@gateway:4317")
	f("https://u:p@h/a?b=c", "https://[REDACTED]@h/a?b=[REDACTED]")
	f("https://u:p/w@h/a?b=c", "https://[REDACTED]@h/a?b=[REDACTED]")
	f("https://u:p?w#x@h", "https://[REDACTED]@h")
	f("https://u:%zz@h", "https://[REDACTED]@h")
	f("https://h/?&a&=b&c=", "https://h/?&[REDACTED]&=[REDACTED]&c=[REDACTED]")
}

func TestErrorStaysWhatItIs(t *testing.T) {
	plain := errors.New("cannot read")
	require.Same(t, plain, Error(plain))
	require.NoError(t, Error(nil))
	err := Error(&url.Error{Op: "Get", URL: "http://h/?a=secret", Err: io.EOF})
	require.EqualError(t, err, `Get "http://h/?a=[REDACTED]": EOF`)
	require.ErrorIs(t, err, io.EOF)
	require.ErrorAs(t, err, new(*url.Error))
}

func TestLabel(t *testing.T) {
	require.Equal(t, Mark, Label("__param_target", "https://example.com"))
	require.Empty(t, Label("__param_target", ""))
	require.Equal(t, "h:1", Label("__address__", "h:1"))
	require.Equal(t, "http://h/?a="+Mark, Label("__meta_url", "http://h/?a=b"))
	require.Equal(t, Mark, Label("__meta_kubernetes_pod_annotation_token", "t"))
}

func TestTreeIsACopy(t *testing.T) {
	in := map[string]any{
		"exporters": map[string]any{"bearertoken/x": map[string]any{
			"a": map[any]any{"password": "x", 1: []any{"y", nil, true, 1.5}}, "headers": []any{map[string]any{"name": "n", "value": "v"}},
			"auth": map[string]any{"authenticator": "basicauth"},
		}},
		"token": "z",
	}
	out, n := Tree(in)
	require.Equal(t, map[string]any{
		"exporters": map[string]any{"bearertoken/x": map[string]any{
			"a":       map[string]any{"password": Mark, "1": []any{"y", nil, true, 1.5}},
			"headers": []any{map[string]any{"name": "n", "value": Mark}},
			"auth":    map[string]any{"authenticator": "basicauth"},
		}},
		"token": Mark,
	}, out)
	require.Equal(t, 3, n)
	require.Equal(t, "z", in["token"])
}

// Redacted text stays redacted, and nothing after a secret's name or before an @ remains.
func FuzzText(f *testing.F) {
	for _, seed := range []string{"http://u:p@h/?token=x", "password=x", "Bearer xyzxyz", "a=b", "%74oken=x", "://@", "=", "\xff@\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		once := Text(text)
		require.LessOrEqual(t, len(once), (len(text)+1)*(len(Mark)+1))
		for _, text := range []string{"http://u:hunter2@h/" + text, "password=hunter2&" + text} {
			require.NotContains(t, Text(text), "hunter2")
		}
	})
}
