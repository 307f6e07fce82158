// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package redact

import (
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
	f("postgres://u:p@a,b/x?sslmode=on", "postgres://[REDACTED]@a,b/x?sslmode=on")
	f("http://host/?a=b&token=x&c=d", "http://host/?a=b&token=[REDACTED]&c=d")
	f("http://host/?match[]=up&key=x", "http://host/?match[]=up&key=[REDACTED]")
	f(`password="a b" user=c`, `password=[REDACTED] user=c`)
	f("me@example.com", "me@example.com")
	f("u:p@host:1", "u:[REDACTED]@host:1")
	f("Bearer of bad news", "Bearer of bad news")
	f("Authorization: Bearer abcdef123456", "Authorization: Bearer [REDACTED]")
	f("eyJhbGciOiJIUzI1NiJ9.e30.x", "[REDACTED]")
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
