// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/basicauthextension"
	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/bearertokenauthextension"
	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/headerssetterextension"
	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/oauth2clientauthextension"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensionauth"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.uber.org/zap/zaptest/observer"
)

// add runs an extension in the host until the test ends.
func (f files) add(t *testing.T, factory extension.Factory, settings map[string]any) component.ID {
	t.Helper()
	cfg := factory.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(settings).Unmarshal(cfg))
	require.NoError(t, cfg.(interface{ Validate() error }).Validate())
	e, err := factory.Create(t.Context(), extensiontest.NewNopSettings(factory.Type()), cfg)
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context(), f))
	t.Cleanup(func() { require.NoError(t, e.Shutdown(context.Background())) })
	id := component.NewID(factory.Type())
	f[id] = e
	return id
}

// by configures an extension as the authenticator of requests.
func by(t *testing.T, c *Config, id component.ID) {
	t.Helper()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{"http::auth::authenticator": id.String()}).Unmarshal(c))
}

// lockedUnless refuses requests without the current key.
func lockedUnless(key func() string) func(int, http.ResponseWriter, *http.Request) bool {
	return func(_ int, w http.ResponseWriter, r *http.Request) bool {
		locked := r.Header.Get("Authorization") != key()
		if locked {
			http.Error(w, "whose bird is this?", http.StatusUnauthorized)
		}
		return locked
	}
}

// carried is the authorization that an extension adds to a request.
type carried string

func (c *carried) RoundTrip(r *http.Request) (*http.Response, error) {
	*c = carried(r.Header.Get("Authorization"))
	return httptest.NewRecorder().Result(), nil
}

func authorization(t *testing.T, of component.Component) string {
	t.Helper()
	var c carried
	way, err := of.(extensionauth.HTTPClient).RoundTripper(&c)
	require.NoError(t, err)
	answer, err := way.RoundTrip(httptest.NewRequest(http.MethodPost, "/", http.NoBody))
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return string(c)
}

// tokens is an authorization server whose tokens are numbered.
func tokens(t *testing.T, answer func(w http.ResponseWriter) (taken bool)) *httptest.Server {
	t.Helper()
	var issued atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if answer != nil && answer(w) {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		// It expires so soon that the extension requests a new one each time.
		_, _ = fmt.Fprintf(w, `{"access_token":"token-%d","token_type":"Bearer","expires_in":1}`, issued.Add(1))
	}))
	t.Cleanup(s.Close)
	return s
}

func oauth(endpoint string) map[string]any {
	return map[string]any{"client_id": "godwit", "client_secret": "secret", "token_url": endpoint}
}

func TestCredentialsOfExtensionsArrive(t *testing.T) {
	const basic = "Basic Z29kd2l0OnNlY3JldA==" // godwit:secret
	password := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(password, []byte("secret"), 0o600))
	clientAuth := map[string]any{"client_auth": map[string]any{"username": "godwit", "password": "secret"}}
	for name, test := range map[string]struct {
		want string
		add  func(t *testing.T, host files) component.ID
	}{
		"basicauth": {basic, func(t *testing.T, host files) component.ID {
			return host.add(t, basicauthextension.NewFactory(), clientAuth)
		}},
		"basicauth, file": {basic, func(t *testing.T, host files) component.ID {
			return host.add(t, basicauthextension.NewFactory(), map[string]any{
				"client_auth": map[string]any{"username": "godwit", "password_file": password},
			})
		}},
		"bearertokenauth": {"Bearer feather", func(t *testing.T, host files) component.ID {
			return host.add(t, bearertokenauthextension.NewFactory(), map[string]any{"token": "feather"})
		}},
		"oauth2client": {"Bearer token-1", func(t *testing.T, host files) component.ID {
			return host.add(t, oauth2clientauthextension.NewFactory(), oauth(tokens(t, nil).URL))
		}},
		"headers_setter": {"Nest 7", func(t *testing.T, host files) component.ID {
			return host.add(t, headerssetterextension.NewFactory(), map[string]any{
				"headers": []any{map[string]any{"key": "Authorization", "value": "Nest 7"}},
			})
		}},
		"headers_setter, basicauth": {basic, func(t *testing.T, host files) component.ID {
			return host.add(t, headerssetterextension.NewFactory(), map[string]any{
				"headers":         []any{map[string]any{"key": "X-Team", "value": "ours"}},
				"additional_auth": host.add(t, basicauthextension.NewFactory(), clientAuth).String(),
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newReceived(t, lockedUnless(func() string { return test.want }))
			host := files{}
			e := start(t, host, func(c *Config) { c.Endpoint = d.URL; by(t, c, test.add(t, host)) })
			require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 0)))
			eventually(t, func() bool { return d.samples() == 10 }, "the samples arrive")
			require.Len(t, d.headers(), 1, "with the first request")
			require.Equal(t, zstd, d.headers()[0].Get("Content-Encoding"))
		})
	}
}

// Data that a destination refuses because of its credentials waits until they are right, or is lost if the
// configuration says so.
func TestATokenThatChangesIsPickedUp(t *testing.T) {
	line := func(logs *observer.ObservedLogs, message string) map[string]any {
		t.Helper()
		found := logs.FilterMessage(message).All()
		require.Len(t, found, 1)
		return found[0].ContextMap()
	}
	for name, test := range map[string]struct {
		change func(*Config)
		lost   int
		check  func(t *testing.T, counted func(name string, attributes ...string) float64, logs *observer.ObservedLogs)
	}{
		"waits": {
			func(*Config) {}, 0,
			func(t *testing.T, counted func(string, ...string) float64, logs *observer.ObservedLogs) {
				require.Positive(t, counted("retries", "reason=refused"))
				said := line(logs, "destination accepts no data; it stays in the queue and is retried")
				require.EqualValues(t, http.StatusUnauthorized, said["code"])
				require.Contains(t, said["answer"], "whose bird is this?")
				line(logs, "destination accepts data again")
			},
		},
		"is lost": {
			func(c *Config) { c.Retry.StatusCodes = nil }, 10,
			func(t *testing.T, counted func(string, ...string) float64, logs *observer.ObservedLogs) {
				require.InDelta(t, 10, counted("dropped_items", "item=sample", "reason=rejected"), 0)
				require.InDelta(t, 1, counted("dropped_blocks", "reason=rejected"), 0)
				said := line(logs, "lost data of a block; more of the same is counted, not logged")
				require.EqualValues(t, http.StatusUnauthorized, said["code"])
				require.Contains(t, said["answer"], "whose bird is this?")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			token := filepath.Join(t.TempDir(), "token")
			write := func(s string) { require.NoError(t, os.WriteFile(token, []byte(s), 0o600)) }
			write("old")
			var want atomic.Value
			want.Store("Bearer old")
			d := newReceived(t, lockedUnless(func() string { return want.Load().(string) }))
			host := files{}
			id := host.add(t, bearertokenauthextension.NewFactory(), map[string]any{"filename": token})
			e, tel, logs := instrumentedOn(t, host, d.URL, func(c *Config) { by(t, c, id); test.change(c) })
			counted := func(name string, attributes ...string) float64 {
				return value(t, tel, "otelcol_exporter_remotewrite_"+name, append([]string{"destination=" + d.URL}, attributes...)...)
			}
			require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 0)))
			eventually(t, func() bool { return d.samples() == 10 }, "the old token is good")

			want.Store("Bearer new")
			require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 1)))
			eventually(t, func() bool { return e.Snapshot().Destinations[0].Outcome.Requests[http.StatusUnauthorized] > 0 }, "the old token is refused")
			write("new")
			eventually(t, func() bool { return authorization(t, host[id]) == "Bearer new" }, "the extension reads the new token")
			require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 2)))
			eventually(t, func() bool { return d.samples() == 30-test.lost && e.Snapshot().Destinations[0].QueuedBlocks == 0 }, "the new token is good")
			d.requireOrdered(t)
			test.check(t, counted, logs)
		})
	}
}

func TestWithoutATokenNoRequestIsMade(t *testing.T) {
	var moulting atomic.Bool
	authority := tokens(t, func(w http.ResponseWriter) bool {
		if moulting.Load() {
			http.Error(w, "moulting", http.StatusServiceUnavailable)
			return true
		}
		return false
	})
	d := newReceived(t, nil)
	host := files{}
	id := host.add(t, oauth2clientauthextension.NewFactory(), oauth(authority.URL))
	e := start(t, host, func(c *Config) { c.Endpoint = d.URL; by(t, c, id) })
	require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 0)))
	eventually(t, func() bool { return d.samples() == 10 }, "the first token is good")
	moulting.Store(true)
	require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 1)))
	eventually(t, func() bool { return e.Snapshot().Destinations[0].Outcome.Requests[0] > 0 }, "there is no other token")
	moulting.Store(false)
	eventually(t, func() bool { return d.samples() == 20 }, "the samples arrive")
	d.requireOrdered(t)
	got := d.headers()
	require.Len(t, got, 2)
	require.NotEqual(t, got[0].Get("Authorization"), got[1].Get("Authorization"))
	require.Empty(t, e.Snapshot().Destinations[0].Outcome.Dropped)
}

// Requests are sent long after the pipeline's call has returned: nothing is left of its context except the tenant.
func TestTheTenantIsKeptWhereTheContextIsNot(t *testing.T) {
	for name, stored := range map[string]*component.ID{"memory": nil, "storage": &storageID} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			seen := map[string]bool{}
			d := newReceived(t, func(_ int, _ http.ResponseWriter, r *http.Request) bool {
				mu.Lock()
				defer mu.Unlock()
				seen[r.Header.Get("X-Scope-Orgid")+" "+r.Header.Get("X-Context")] = true
				return false
			})
			host := newFiles(t, t.TempDir(), nil)
			id := host.add(t, headerssetterextension.NewFactory(), map[string]any{"headers": []any{
				map[string]any{"key": "X-Context", "from_context": "x-tenant", "default_value": "nobody"},
			}})
			e := start(t, host, func(c *Config) {
				c.Endpoint, c.Queue.Storage = d.URL, stored
				c.Tenant.Header, c.Tenant.FromMetadata = "X-Scope-OrgID", "x-tenant"
				by(t, c, id)
			})
			for _, tenant := range []string{"a", "b"} {
				ctx := client.NewContext(t.Context(), client.Info{Metadata: client.NewMetadata(map[string][]string{"X-Tenant": {tenant}})})
				require.NoError(t, e.ConsumeMetrics(ctx, gauges(10, 0)))
			}
			eventually(t, func() bool {
				mu.Lock()
				defer mu.Unlock()
				return maps.Equal(map[string]bool{"a nobody": true, "b nobody": true}, seen)
			}, "requests of both tenants arrive, and no others")
		})
	}
}

func TestTenantsSurviveARestart(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]bool{}
	d := newReceived(t, status(1<<30, http.StatusServiceUnavailable))
	directory := t.TempDir()
	byTenant := func(c *Config) {
		c.Endpoint, c.Queue.Storage, c.ShutdownTimeout = d.URL, &storageID, time.Millisecond
		c.Tenant.Header, c.Tenant.FromResourceAttribute = "X-Scope-OrgID", "tenant"
	}
	e := create(t, byTenant)
	require.NoError(t, e.Start(t.Context(), newFiles(t, directory, nil)))
	for _, tenant := range []string{"a", "b"} {
		md := gauges(10, 0)
		md.ResourceMetrics().At(0).Resource().Attributes().PutStr("tenant", tenant)
		require.NoError(t, e.ConsumeMetrics(t.Context(), md))
	}
	require.NoError(t, e.Shutdown(t.Context()))
	d.setAnswer(func(_ int, _ http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		seen[r.Header.Get("X-Scope-Orgid")] = true
		return false
	})
	start(t, newFiles(t, directory, nil), byTenant)
	eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return maps.Equal(map[string]bool{"a": true, "b": true}, seen)
	}, "requests of both tenants arrive, and no others")
}

func TestMissingAuthenticatorIsNamed(t *testing.T) {
	missing := component.MustNewID("nobody")
	e := create(t, func(c *Config) { c.Endpoint = "http://127.0.0.1:1"; by(t, c, missing) })
	err := e.Start(t.Context(), componenttest.NewNopHost())
	require.ErrorContains(t, err, "cannot make the client for `endpoint`")
	require.ErrorContains(t, err, missing.String())
	require.NoError(t, e.Shutdown(t.Context()))
}

// Both sides have a certificate that the other one trusts.
func TestMutualTLS(t *testing.T) {
	directory := t.TempDir()
	save := func(name, kind string, der []byte) string {
		path := filepath.Join(directory, name)
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return path
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	own, err := x509.ParseCertificate(der)
	require.NoError(t, err)

	d := &received{t: t, series: map[string][]point{}}
	d.Server = httptest.NewUnstartedServer(http.HandlerFunc(d.serve))
	d.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	d.TLS.ClientCAs.AddCert(own)
	d.StartTLS()
	t.Cleanup(d.Close)

	e := start(t, componenttest.NewNopHost(), func(c *Config) {
		c.Endpoint = d.URL
		require.NoError(t, confmap.NewFromStringMap(map[string]any{"http::tls": map[string]any{
			"ca_file":   save("ca.pem", "CERTIFICATE", d.Certificate().Raw),
			"cert_file": save("cert.pem", "CERTIFICATE", der),
			"key_file":  save("key.pem", "PRIVATE KEY", keyDER),
		}}).Unmarshal(c))
	})
	require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 0)))
	eventually(t, func() bool { return d.samples() == 10 }, "the samples arrive")
}
