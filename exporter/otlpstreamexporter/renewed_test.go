// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/metadata"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/server"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
	"github.com/godwit-otel/godwit/internal/certtest"
)

// guarded is a server of OTLP behind a proxy that requires one certificate of clients. As nginx, it accepts any during
// the handshake, and refuses requests with a page.
type guarded struct {
	*httptest.Server

	own      atomic.Pointer[tls.Certificate]
	clients  atomic.Pointer[tls.Certificate]
	refusals atomic.Int64
}

func startGuarded(t *testing.T, kind string) *guarded {
	g := &guarded{}
	g.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch given := r.TLS.PeerCertificates; {
		case len(given) == 0 || string(given[0].Raw) != string(g.clients.Load().Certificate[0]):
			g.refusals.Add(1)
			writePage(w, http.StatusBadRequest)
		case kind == transport.GRPC:
			w.Header().Set("Content-Type", "application/grpc")
			w.Header().Set("Trailer", "Grpc-Status")
			_, _ = w.Write(make([]byte, 5)) // an empty message
			w.Header().Set("Grpc-Status", "0")
		}
	}))
	g.EnableHTTP2 = true
	g.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes
	g.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{
			Certificates: []tls.Certificate{*g.own.Load()}, ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12,
			NextProtos: []string{"h2", "http/1.1"},
		}, nil
	}}
	t.Cleanup(g.Close)
	return g
}

// First the certificate of clients changes, on connections that stay open, then the authority of the server's.
func TestCertificatesAreRenewedWithoutARestart(t *testing.T) {
	allTransports(t, func(t *testing.T, kind string) {
		folder := t.TempDir()
		write := func(name, text string) string {
			path := filepath.Join(folder, name)
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			return path
		}
		pair := func(certificate, key string) *tls.Certificate {
			c, err := tls.X509KeyPair([]byte(certificate), []byte(key))
			require.NoError(t, err)
			return &c
		}
		own, ownKey := certtest.SelfSigned(t)
		expired, expiredKey := certtest.SelfSigned(t)
		renewed, renewedKey := certtest.SelfSigned(t)
		g := startGuarded(t, kind)
		g.own.Store(pair(own, ownKey))
		g.clients.Store(pair(renewed, renewedKey))
		g.StartTLS()

		core, logs := observer.New(zap.InfoLevel)
		set := exportertest.NewNopSettings(metadata.Type)
		set.Logger = zap.New(core)
		e := startExporter(t, set, componenttest.NewNopHost(), testConfig(kind, strings.TrimPrefix(g.URL, "https://"), func(cfg *Config) {
			cfg.Mode, cfg.Client.Compression, cfg.Client.TLS.Insecure = server.Unary, "none", false
			cfg.Client.TLS.CAFile, cfg.Client.TLS.CertFile, cfg.Client.TLS.KeyFile = write("ca.pem", own), write("cert.pem", expired), write("key.pem", expiredKey)
		}))
		e.export(0, 1)
		eventually(t, func() bool { return g.refusals.Load() > 1 }, "the expired certificate is refused")
		write("cert.pem", renewed) // with another key, for a moment
		write("key.pem", renewedKey)
		require.Equal(t, int64(1), e.settled().Acked)

		next, nextKey := certtest.SelfSigned(t)
		g.own.Store(pair(next, nextKey))
		g.CloseClientConnections()
		e.export(1, 1)
		eventually(t, func() bool { return logs.FilterMessageSnippet("does not answer").Len() == 2 }, "the authority is unknown")
		write("ca.pem", next)
		require.Equal(t, int64(2), e.settled().Acked)
		require.Positive(t, logs.FilterMessageSnippet("have changed, and are used").Len())
	})
}
