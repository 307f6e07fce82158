// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configauth"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensionauth"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/account"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/metadata"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/server"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
	"github.com/godwit-otel/godwit/internal/handback/handbacktest"
)

// plainServer is a common OTLP server: it accepts any path, and responds as configured.
type plainServer struct {
	*httptest.Server

	answer func(n int64, w http.ResponseWriter)
	calls  atomic.Int64

	mu       sync.Mutex
	requests []*http.Request
	bodies   [][]byte
}

func startPlain(t *testing.T, answer func(n int64, w http.ResponseWriter)) *plainServer {
	s := &plainServer{answer: answer}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(decompress(t, r))
		s.mu.Lock()
		s.requests, s.bodies = append(s.requests, r), append(s.bodies, body)
		s.mu.Unlock()
		if n := s.calls.Add(1); err == nil && answer != nil {
			answer(n, w)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *plainServer) last() (*http.Request, []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[len(s.requests)-1], s.bodies[len(s.bodies)-1]
}

func TestPlainServersAreSentWhatTheyExpect(t *testing.T) {
	s := startPlain(t, nil)
	e := newTestExporter(t, transport.HTTP, s.URL+"/otlp/", func(cfg *Config) {
		cfg.Client.Headers = configopaque.MapList{{Name: "tenant", Value: "blue"}, {Name: "Host", Value: "otlp.example"}}
		cfg.Client.UserAgent = "bird"
	})
	e.export(0, 3)
	require.Equal(t, int64(3), e.settled().Acked)
	require.False(t, e.dest.server.Streaming())
	r, body := s.last()
	require.Equal(t, "/otlp/v1/traces", r.URL.Path)
	require.Equal(t, "application/x-protobuf", r.Header.Get("Content-Type"))
	require.Equal(t, "zstd", r.Header.Get("Content-Encoding"))
	require.Equal(t, "blue", r.Header.Get("Tenant"))
	require.Equal(t, "otlp.example", r.Host)
	require.Equal(t, "bird", r.UserAgent())
	require.Contains(t, nameOf(t, body), "batch-")
	require.Equal(t, int64(3), s.calls.Load(), "nothing was tried in vain")
}

func TestSignalsHaveEndpointsOfTheirOwn(t *testing.T) {
	s := startPlain(t, nil)
	cfg := testConfig(transport.HTTP, "nowhere:1", func(cfg *Config) {
		cfg.HTTP.MetricsEndpoint = s.URL + "/receive?tenant=blue"
		cfg.Client.Compression = "none"
	})
	require.NoError(t, cfg.Validate())
	e, err := createMetrics(t.Context(), exportertest.NewNopSettings(metadata.Type), cfg)
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	for n := range 5 {
		handbacktest.Consume(t, func(md pmetric.Metrics) error { return e.ConsumeMetrics(t.Context(), md) }, handbacktest.Metrics(n))
	}
	require.NoError(t, e.Shutdown(t.Context()))
	r, body := s.last()
	require.Equal(t, "/receive?tenant=blue", r.URL.RequestURI())
	require.Empty(t, r.Header.Get("Content-Encoding"))
	request := pmetricotlp.NewExportRequest()
	require.NoError(t, request.UnmarshalProto(body))
	require.Equal(t, handbacktest.Metrics(0).DataPointCount(), request.Metrics().DataPointCount())
}

func TestAPlainServerThatIsBusyIsWaitedFor(t *testing.T) {
	s := startPlain(t, func(n int64, w http.ResponseWriter) {
		switch n {
		case 1:
			w.WriteHeader(http.StatusBadGateway)
		case 2:
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	})
	e := newTestExporter(t, transport.HTTP, s.URL)
	begun := time.Now()
	e.export(0, 1)
	require.Equal(t, int64(1), e.settled().Acked)
	require.Equal(t, int64(3), s.calls.Load())
	require.GreaterOrEqual(t, time.Since(begun), time.Second)
}

func TestWhatAPlainServerRefusesIsCounted(t *testing.T) {
	s := startPlain(t, func(_ int64, w http.ResponseWriter) { w.WriteHeader(http.StatusForbidden) })
	e := newTestExporter(t, transport.HTTP, s.URL)
	e.export(0, 1)
	require.Equal(t, int64(1), e.settled().Dropped[account.Rejected])
}

// A login page that a proxy responds with or redirects to has accepted no data.
func TestAPageOfAProxyHasTakenNothing(t *testing.T) {
	for _, kind := range []string{transport.HTTP, transport.WebSocket} {
		s := startPlain(t, func(n int64, w http.ResponseWriter) {
			switch n {
			case 1:
				w.Header().Set("Location", "/login")
				w.WriteHeader(http.StatusFound)
			case 2:
				_, _ = io.WriteString(w, "\n<!DOCTYPE html><title>Log in</title>")
			case 3:
				w.Header().Set("Location", "/moved")
				w.WriteHeader(http.StatusPermanentRedirect)
			}
		})
		e := newTestExporter(t, kind, s.URL, func(cfg *Config) { cfg.Mode = server.Unary })
		e.export(0, 1)
		require.Equal(t, int64(1), e.settled().Acked)
		require.Equal(t, int64(4), s.calls.Load(), kind)
		r, body := s.last()
		require.Equal(t, http.MethodPost, r.Method)
		require.Equal(t, "/moved", r.URL.Path)
		require.Contains(t, nameOf(t, body), "batch-")
	}
}

func TestAQueueOnDiskServesPlainServers(t *testing.T) {
	const n = 20
	d, set := &disk{data: map[string][]byte{}}, exportertest.NewNopSettings(metadata.Type)
	away := startExporter(t, set, d, testConfig(transport.HTTP, freePort(t), onDisk, impatient))
	away.export(0, n)
	require.NoError(t, away.Shutdown(context.Background()))
	require.Zero(t, away.balanced().Dropped)
	s := startPlain(t, nil)
	e := startExporter(t, set, d, testConfig(transport.HTTP, s.URL, onDisk))
	eventually(t, func() bool { return e.balanced().Acked == n }, "all of it arrives")
}

// signing adds a header to each request.
type signing struct {
	component.StartFunc
	component.ShutdownFunc
	http.RoundTripper
}

var _ extension.Extension = (*signing)(nil)

func (s signing) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("Authorization", "signed")
	return s.RoundTripper.RoundTrip(r)
}

type signer struct {
	component.StartFunc
	component.ShutdownFunc
}

var _ extensionauth.HTTPClient = signer{}

// RoundTripper adds a header.
func (signer) RoundTripper(base http.RoundTripper) (http.RoundTripper, error) {
	return signing{RoundTripper: base}, nil
}

type signersHost struct{ component.Host }

// GetExtensions returns a signer.
func (signersHost) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{component.MustNewID("signer"): signer{}}
}

func TestPlainServersAreSentWhatAnAuthenticatorAdds(t *testing.T) {
	s := startPlain(t, nil)
	e := startExporter(t, exportertest.NewNopSettings(metadata.Type), signersHost{componenttest.NewNopHost()}, testConfig(transport.HTTP, s.URL, func(cfg *Config) {
		cfg.Client.Auth = configoptional.Some(configauth.Config{AuthenticatorID: component.MustNewID("signer")})
	}))
	e.export(0, 1)
	require.Equal(t, int64(1), e.settled().Acked)
	r, _ := s.last()
	require.Equal(t, "signed", r.Header.Get("Authorization"))
}
