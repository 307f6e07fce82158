// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProxiesThatAreNotForTheServerAreLeftAlone(t *testing.T) {
	const far = "http://gateway.example:4318"
	t.Setenv("HTTP_PROXY", "http://nobody.example:1")
	t.Setenv("NO_PROXY", "gateway.example")
	base := &http.Transport{Proxy: fromEnvironment()}
	require.Same(t, base, tunneling(base, far))
	require.Same(t, base, tunneling(base, "https://gateway.example"), "with TLS the library does it")
	t.Setenv("NO_PROXY", "")
	t.Setenv("HTTP_PROXY", "socks5://nobody.example:1")
	base = &http.Transport{Proxy: fromEnvironment()}
	require.Same(t, base, tunneling(base, far), "it is no HTTP proxy")
	require.Equal(t, "proxy.example:80", hostPort(&url.URL{Scheme: "http", Host: "proxy.example"}))
	require.Equal(t, "proxy.example:443", hostPort(&url.URL{Scheme: "https", Host: "proxy.example"}))
}
