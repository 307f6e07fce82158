// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"errors"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configauth"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/extension/extensionauth"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"google.golang.org/grpc/credentials"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter"
	"github.com/godwit-otel/godwit/internal/certtest"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver"
)

// guard is an authenticator for both sides: clients send a token, and servers require it.
type guard struct{ token string }

var guardID = component.MustNewID("guard")

var (
	_ extensionauth.Server     = guard{}
	_ extensionauth.GRPCClient = guard{}
	_ extensionauth.HTTPClient = guard{}
)

func (g guard) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{guardID: g}
}

func (guard) Start(context.Context, component.Host) error { return nil }

func (guard) Shutdown(context.Context) error { return nil }

func (g guard) Authenticate(ctx context.Context, headers map[string][]string) (context.Context, error) {
	for name, values := range headers {
		if http.CanonicalHeaderKey(name) == "Authorization" && len(values) == 1 && values[0] == g.token {
			return ctx, nil
		}
	}
	return ctx, errors.New("wrong token")
}

func (g guard) PerRPCCredentials() (credentials.PerRPCCredentials, error) { return g, nil }

func (g guard) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": g.token}, nil
}

func (guard) RequireTransportSecurity() bool { return true }

func (g guard) RoundTripper(base http.RoundTripper) (http.RoundTripper, error) {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", g.token)
		return base.RoundTrip(r)
	}), nil
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// tenants records the tenant header of each batch.
type tenants struct {
	consumertest.TracesSink

	mu   sync.Mutex
	seen []string
}

func (s *tenants) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	s.mu.Lock()
	s.seen = append(s.seen, client.FromContext(ctx).Metadata.Get("tenant")...)
	s.mu.Unlock()
	return s.TracesSink.ConsumeTraces(ctx, td)
}

func TestMutualTLSAuthAndHeaders(t *testing.T) {
	serverCert, serverKey := certtest.SelfSigned(t)
	clientCert, clientKey := certtest.SelfSigned(t)
	bothTransports(t, func(t *testing.T, transport string) {
		for _, mode := range []string{"stream", "unary"} {
			t.Run(mode, func(t *testing.T) {
				to, addr := &tenants{}, freePort(t)
				ca := t.TempDir() + "/clients.pem"
				require.NoError(t, os.WriteFile(ca, []byte(clientCert), 0o600))
				protocol := map[string]string{transportGRPC: "grpc", transportWebSocket: "http"}[transport]
				f := otlpstreamreceiver.NewFactory()
				serverCfg := f.CreateDefaultConfig()
				require.NoError(t, confmap.NewFromStringMap(map[string]any{"protocols": map[string]any{protocol: map[string]any{
					"endpoint": addr, "include_metadata": true, "auth": map[string]any{"authenticator": "guard"},
					"tls": map[string]any{"cert_pem": serverCert, "key_pem": serverKey, "client_ca_file": ca},
				}}}).Unmarshal(serverCfg))
				r, err := f.CreateTraces(context.Background(), receivertest.NewNopSettings(f.Type()), serverCfg, to)
				require.NoError(t, err)
				require.NoError(t, r.Start(context.Background(), guard{"secret"}))
				defer func() { require.NoError(t, r.Shutdown(context.Background())) }()

				configure := func() *otlpstreamexporter.Config {
					return testConfig(transport, addr, func(cfg *otlpstreamexporter.Config) {
						cfg.Mode = mode
						cfg.Client.TLS.Insecure = false
						cfg.Client.TLS.ServerName = "localhost"
						cfg.Client.TLS.CAPem = configopaque.String(serverCert)
						cfg.Client.TLS.CertPem, cfg.Client.TLS.KeyPem = configopaque.String(clientCert), configopaque.String(clientKey)
						cfg.Client.Headers = configopaque.MapList{{Name: "tenant", Value: "blue"}}
						cfg.Client.Auth = configoptional.Some(configauth.Config{AuthenticatorID: guardID})
					})
				}
				set := exportertest.NewNopSettings(otlpstreamexporter.NewFactory().Type())
				e := startExporter(t, set, guard{"secret"}, configure())
				e.export(0, 10)
				require.Equal(t, int64(10), e.settled().Acked)
				require.NoError(t, e.Shutdown(context.Background()))
				require.Len(t, to.seen, 10)
				require.Equal(t, "blue", to.seen[0])

				for name, wrong := range map[string]*testExporter{
					"token": startExporter(t, set, guard{"guess"}, withLimit(configure())),
					"certificate": startExporter(t, set, guard{"secret"}, withLimit(func() *otlpstreamexporter.Config {
						cfg := configure()
						cfg.Client.TLS.CertPem, cfg.Client.TLS.KeyPem = "", ""
						return cfg
					}())),
				} {
					wrong.export(0, 1)
					b := wrong.settled()
					require.Equal(t, int64(1), b.Dropped["retries_exhausted"]+b.Dropped["rejected"], name)
				}
				require.Len(t, to.seen, 10)
			})
		}
	})
}

// withLimit makes the exporter give up soon.
func withLimit(cfg *otlpstreamexporter.Config) *otlpstreamexporter.Config {
	cfg.Retry.MaxElapsedTime = 200 * time.Millisecond
	cfg.AckTimeout = 20 * time.Second // twenty times the interval of checks for overdue requests
	cfg.Shutdown.WaitForAcks = false
	return cfg
}
