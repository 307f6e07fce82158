// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"

	"github.com/godwit-otel/godwit/internal/certtest"
)

// TestCertificatesAreRenewedWithoutARestart: first the server's certificate and its authority change, then the one that
// it demands of clients. What is sent meanwhile waits. A file with half of a certificate does no harm.
func TestCertificatesAreRenewedWithoutARestart(t *testing.T) {
	folder := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	of := func(server, serverKey, client string) *tls.Config {
		pair, err := tls.X509KeyPair([]byte(server), []byte(serverKey))
		require.NoError(t, err)
		return &tls.Config{
			Certificates: []tls.Certificate{pair}, ClientCAs: certtest.Pool(t, client),
			ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12,
		}
	}
	server, serverKey := certtest.SelfSigned(t)
	client, clientKey := certtest.SelfSigned(t)
	var now atomic.Pointer[tls.Config]
	now.Store(of(server, serverKey, client))
	d := &received{t: t, series: map[string][]point{}}
	d.Server = httptest.NewUnstartedServer(http.HandlerFunc(d.serve))
	d.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return now.Load(), nil }, MinVersion: tls.VersionTLS12}
	d.StartTLS()
	t.Cleanup(d.Close)

	e := start(t, componenttest.NewNopHost(), func(c *Config) {
		c.Endpoint = d.URL
		require.NoError(t, confmap.NewFromStringMap(map[string]any{"http::tls": map[string]any{
			"ca_file": file("ca.pem", server), "cert_file": file("cert.pem", client), "key_file": file("key.pem", clientKey),
		}}).Unmarshal(c))
	})
	require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 0)))
	eventually(t, func() bool { return d.samples() == 10 }, "the samples arrive")

	refused := func(n int) {
		t.Helper()
		d.CloseClientConnections()
		before := e.Snapshot().Destinations[0].Outcome.Requests[0]
		require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, n)))
		eventually(t, func() bool { return e.Snapshot().Destinations[0].Outcome.Requests[0] > before }, "they do not trust each other")
	}
	server, serverKey = certtest.SelfSigned(t)
	now.Store(of(server, serverKey, client))
	refused(1)
	file("ca.pem", server[:len(server)/2])
	refused(2)
	file("ca.pem", server)
	eventually(t, func() bool { return d.samples() == 30 }, "there is a new authority")

	client, clientKey = certtest.SelfSigned(t)
	now.Store(of(server, serverKey, client))
	refused(3)
	file("cert.pem", client)
	refused(4)
	file("key.pem", clientKey)
	eventually(t, func() bool { return d.samples() == 50 }, "there is a new certificate")
	d.requireOrdered(t)
	require.Empty(t, e.Snapshot().Destinations[0].Outcome.Dropped)
}
