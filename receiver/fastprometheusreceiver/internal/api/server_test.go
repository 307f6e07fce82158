// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configauth"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configtls"
	"go.opentelemetry.io/collector/confmap"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// fetch sends a request to a running server over a new connection.
func fetch(t *testing.T, s *Server, change func(*http.Request)) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.address.String()+"/api/v1/targets", http.NoBody)
	require.NoError(t, err)
	if change != nil {
		change(r)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response, string(body)
}

// A web page whose host name resolves to a loopback address cannot read the API (DNS rebinding). Nothing in a response
// depends on the host name.
func TestHostileHosts(t *testing.T) {
	s := serve(t, nil)
	_, port, err := net.SplitHostPort(s.address.String())
	require.NoError(t, err)
	_, want := fetch(t, s, nil)
	for host, status := range map[string]int{
		"127.0.0.1:" + port:         http.StatusOK,
		"127.0.0.1":                 http.StatusOK,
		"[::1]:" + port:             http.StatusOK,
		"[::1]":                     http.StatusOK,
		"LOCALHOST:1":               http.StatusOK,
		"godwit.localhost":          http.StatusOK,
		"10.0.0.1":                  http.StatusOK, // an address cannot be made to resolve to another one
		"evil.example":              http.StatusForbidden,
		"evil.example:" + port:      http.StatusForbidden,
		"localhost.evil.example":    http.StatusForbidden,
		"127.0.0.1.evil.example":    http.StatusForbidden,
		"notlocalhost":              http.StatusForbidden,
		"a:b:c":                     http.StatusForbidden,
		strings.Repeat("x.", 5000):  http.StatusForbidden,
		"evil.example:80:localhost": http.StatusForbidden,
	} {
		response, body := fetch(t, s, func(r *http.Request) { r.Host = host })
		assert.Equal(t, status, response.StatusCode, host)
		if status == http.StatusOK {
			assert.Equal(t, want, body, host)
		} else {
			assert.NotContains(t, body, "evil")
			assert.NotContains(t, body, "instance")
		}
	}
}

// A server that listens on other addresses answers to any host name.
func TestOtherHosts(t *testing.T) {
	s := serve(t, func(c *Config) { c.Server.NetAddr.Endpoint = "0.0.0.0:0" })
	response, _ := fetch(t, s, func(r *http.Request) { r.Host = "collector.example" })
	assert.Equal(t, http.StatusOK, response.StatusCode)
}

func TestMalformedRequests(t *testing.T) {
	s := serve(t, nil)
	for _, text := range []string{
		"GET /api/v1/targets HTTP/1.1\r\n\r\n",
		"GET /api/v1/targets HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
		"GET /api/v1/targets HTTP/1.1\r\nHost: a b\r\n\r\n",
		"GET http://evil.example/api/v1/targets HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
		"\x00\x01\x02\r\n\r\n",
	} {
		conn, err := net.Dial("tcp", s.address.String())
		require.NoError(t, err)
		require.NoError(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
		_, err = conn.Write([]byte(text))
		require.NoError(t, err)
		answer, err := io.ReadAll(conn)
		require.NoError(t, err)
		assert.Contains(t, string(answer), " 40", text)
		assert.NotContains(t, string(answer), "activeTargets")
		require.NoError(t, conn.Close())
	}
}

// Connections beyond the limit wait for their turn.
func TestMaxConnections(t *testing.T) {
	s := serve(t, func(c *Config) { c.MaxConnections = 1 })
	idle, err := net.Dial("tcp", s.address.String())
	require.NoError(t, err)
	_, err = idle.Write([]byte("GET /-/ready HTTP/1.1\r\nHost: localhost\r\n\r\n"))
	require.NoError(t, err)
	_, err = idle.Read(make([]byte, 1))
	require.NoError(t, err) // this connection is the one
	answered := make(chan int, 1)
	go func() {
		response, err := http.Get("http://" + s.address.String() + "/-/ready")
		if err != nil {
			answered <- 0
			return
		}
		_ = response.Body.Close()
		http.DefaultClient.CloseIdleConnections()
		answered <- response.StatusCode
	}()
	select {
	case <-answered:
		assert.Fail(t, "answered beyond the limit")
	case <-time.After(50 * time.Millisecond):
	}
	require.NoError(t, idle.Close())
	assert.Equal(t, http.StatusOK, <-answered)
}

// The server waits for an address that is in use.
func TestAddressInUse(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer busy.Close()
	address := busy.Addr().String()
	core, logs := observer.New(zap.InfoLevel)
	set := componenttest.NewNopTelemetrySettings()
	set.Logger = zap.New(core)
	cfg := NewDefaultConfig()
	cfg.Server.NetAddr.Endpoint = address
	s := New(cfg, set, component.BuildInfo{}, newScene())
	require.NoError(t, s.Start(t.Context(), componenttest.NewNopHost()))
	require.Len(t, logs.FilterMessageSnippet("not served").All(), 1)
	require.NoError(t, busy.Close())
	require.Eventually(t, func() bool { return logs.FilterMessageSnippet("Serving the API").Len() == 1 }, time.Minute, 10*time.Millisecond)
	response, _ := fetch(t, s, func(r *http.Request) { r.Host = "evil.example" })
	require.Equal(t, http.StatusForbidden, response.StatusCode, "it is guarded as one that had its address at once")
	require.NoError(t, s.Shutdown(t.Context()))
	require.Len(t, logs.FilterMessageSnippet("not served").All(), 1, "said once")
}

// Nothing is served without the configured authenticator.
func TestMissingAuth(t *testing.T) {
	cfg := NewDefaultConfig()
	cfg.Server.NetAddr.Endpoint = "127.0.0.1:0"
	auth := confighttp.AuthConfig{Config: configauth.Config{AuthenticatorID: component.MustNewID("absent")}}
	cfg.Server.Auth = configoptional.Some(auth)
	s := New(cfg, componenttest.NewNopTelemetrySettings(), component.BuildInfo{}, newScene())
	require.Error(t, s.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, s.Shutdown(t.Context()))
}

func TestShutdownWithoutStart(t *testing.T) {
	require.NoError(t, New(NewDefaultConfig(), componenttest.NewNopTelemetrySettings(), component.BuildInfo{}, newScene()).Shutdown(t.Context()))
	require.NoError(t, (*Server)(nil).Shutdown(t.Context()))
}

// Shutdown stops waiting for requests when its context ends.
func TestShutdownDoesNotWaitForEver(t *testing.T) {
	s := serve(t, nil)
	conn, err := net.Dial("tcp", s.address.String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("GET /-/ready HTTP/1.1\r\nHost: localhost\r\n\r\nGET /"))
	require.NoError(t, err)
	_, err = conn.Read(make([]byte, 1))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = s.Shutdown(ctx) // whether half a request counts as one depends on net/http
	_, err = net.Dial("tcp", s.address.String())
	require.Error(t, err)
}

func TestTLS(t *testing.T) {
	certificate := selfSigned(t)
	s := serve(t, func(c *Config) { c.Server.TLS = configoptional.Some(certificate) })
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	response, err := client.Get("https://" + s.address.String() + "/-/ready")
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Equal(t, http.StatusOK, response.StatusCode)
}

func TestCORS(t *testing.T) {
	s := serve(t, func(c *Config) {
		cors := confighttp.NewDefaultCORSConfig()
		cors.AllowedOrigins = []string{"https://console.example"}
		c.Server.CORS = configoptional.Some(cors)
	})
	for origin, allowed := range map[string]string{"https://console.example": "https://console.example", "https://evil.example": ""} {
		response, _ := fetch(t, s, func(r *http.Request) { r.Header.Set("Origin", origin) })
		assert.Equal(t, allowed, response.Header.Get("Access-Control-Allow-Origin"))
	}
}

func TestConfig(t *testing.T) {
	load := func(text string) (Config, error) {
		retrieved, err := confmap.NewRetrievedFromYAML([]byte(text))
		require.NoError(t, err)
		conf, err := retrieved.AsConf()
		require.NoError(t, err)
		cfg := NewDefaultConfig()
		if err := conf.Unmarshal(&cfg); err != nil {
			return cfg, err
		}
		return cfg, confmap.Validate(&cfg)
	}
	cfg, err := load("{}")
	require.NoError(t, err)
	assert.Equal(t, NewDefaultConfig(), cfg)
	assert.False(t, cfg.Enabled)
	assert.Equal(t, "127.0.0.1:9090", cfg.Server.NetAddr.Endpoint)
	cfg, err = load("{enabled: true, max_connections: 3, server_config: {endpoint: 'localhost:1', read_timeout: 1s}}")
	require.NoError(t, err)
	assert.Equal(t, 3, cfg.MaxConnections)
	assert.Equal(t, "localhost:1", cfg.Server.NetAddr.Endpoint)
	assert.Equal(t, time.Second, cfg.Server.ReadTimeout)
	for text, words := range map[string]string{
		"{server_config: {transport: invalid}}":          "transport",
		"{enabled: true, max_connections: 0}":            "`max_connections`",
		"{enabled: true, server_config: {endpoint: ''}}": "`server_config::endpoint`",
		"{surprise: 1}": "surprise",
	} {
		_, err := load(text)
		require.ErrorContains(t, err, words)
	}
}

// selfSigned returns the certificate of Go's own test server.
func selfSigned(t *testing.T) configtls.ServerConfig {
	t.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	key, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	require.NoError(t, err)
	var out configtls.ServerConfig
	out.CertPem = configopaque.String(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	out.KeyPem = configopaque.String(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	return out
}
