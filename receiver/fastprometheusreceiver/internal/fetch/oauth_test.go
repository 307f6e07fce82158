// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	promcommon "github.com/prometheus/common/config"
	promconfig "github.com/prometheus/prometheus/config"
	"github.com/stretchr/testify/require"
)

// An issuer is a token server that numbers its tokens.
type issuer struct {
	*httptest.Server

	lifetime atomic.Int64 // of tokens, in seconds
	asked    chan url.Values
	refuse   atomic.Pointer[http.HandlerFunc]
	issued   atomic.Int64
}

func newIssuer(t *testing.T, start func(*httptest.Server)) *issuer {
	t.Helper()
	i := &issuer{asked: make(chan url.Values, 1000)}
	i.lifetime.Store(3600)
	i.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuse := i.refuse.Load(); refuse != nil {
			(*refuse)(w, r)
			return
		}
		if r.ParseForm() != nil {
			return
		}
		client, secret, _ := r.BasicAuth()
		r.Form.Set("as", client+":"+secret)
		r.Form.Set("agent", r.UserAgent())
		i.asked <- r.Form
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token": "t%d", "token_type": "Bearer", "expires_in": %d}`, i.issued.Add(1), i.lifetime.Load())
	}))
	start(i.Server)
	t.Cleanup(i.Close)
	return i
}

// job configures a job to use the issuer.
func (i *issuer) job(edit ...func(*promcommon.OAuth2)) func(*promconfig.ScrapeConfig) {
	o := &promcommon.OAuth2{ClientID: "goose", ClientSecret: "honk", TokenURL: i.URL + "/token"}
	for _, f := range edit {
		f(o)
	}
	return func(c *promconfig.ScrapeConfig) { c.HTTPClientConfig.OAuth2 = o }
}

// echo starts a target whose page is the authorization of the request.
func echo(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Header.Get("Authorization")) }))
	t.Cleanup(server.Close)
	return server.URL + "/metrics"
}

func authorized(t *testing.T, want string, target *Target) {
	t.Helper()
	got, err := get(target)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// A token is requested as the job says, used while it is valid, and then replaced.
func TestAsksForTokens(t *testing.T) {
	i := newIssuer(t, (*httptest.Server).StartTLS)
	authority := filepath.Join(t.TempDir(), "ca")
	require.NoError(t, os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw}), 0o600))
	target := newTarget(t, NetHTTP, echo(t), patient, i.job(func(o *promcommon.OAuth2) {
		o.Scopes = []string{"read", "metrics"}
		o.EndpointParams = map[string]string{"audience": "farm"}
		o.TLSConfig.CAFile = authority
	}))
	for range 3 {
		authorized(t, "Bearer t1", target)
	}
	require.Equal(t, url.Values{
		"grant_type": {"client_credentials"}, "scope": {"read metrics"}, "audience": {"farm"}, "as": {"goose:honk"}, "agent": {agent},
	}, <-i.asked)
	require.Empty(t, i.asked)

	target = newTarget(t, NetHTTP, echo(t), patient, i.job())
	_, err := get(target)
	require.ErrorContains(t, err, "certificate signed by unknown authority")
	require.Equal(t, ReasonCredentials, Reason(err), "it is not the target's certificate")
}

// A reload compares configurations to find out whether anything has changed.
func TestLeavesTheConfigurationAlone(t *testing.T) {
	i := newIssuer(t, (*httptest.Server).Start)
	proxy, err := url.Parse(i.URL)
	require.NoError(t, err)
	through := func(o *promcommon.OAuth2) { o.ProxyURL, o.NoProxy = promcommon.URL{URL: proxy}, "10.0.0.0/8" }
	cfg := jobConfig(i.job(through))
	target := newClient(t, cfg, Options{}).NewTarget(echo(t), "", patient, accept)
	defer target.Close()
	authorized(t, "Bearer t1", target)
	require.True(t, reflect.DeepEqual(jobConfig(i.job(through)), cfg))
}

func TestReplacesTokensThatHaveExpired(t *testing.T) {
	i := newIssuer(t, (*httptest.Server).Start)
	i.lifetime.Store(9) // a token that is about to expire is not used
	target := newTarget(t, NetHTTP, echo(t), patient, i.job())
	authorized(t, "Bearer t1", target)
	i.lifetime.Store(3600)
	authorized(t, "Bearer t2", target)
	authorized(t, "Bearer t2", target)
}

func TestReadsTheSecretForEachToken(t *testing.T) {
	i := newIssuer(t, (*httptest.Server).Start)
	secret := filepath.Join(t.TempDir(), "secret")
	target := newTarget(t, NetHTTP, echo(t), patient, i.job(func(o *promcommon.OAuth2) { o.ClientSecret, o.ClientSecretFile = "", secret }))
	_, err := get(target)
	require.ErrorContains(t, err, "unable to read oauth2 client secret")
	require.Equal(t, ReasonCredentials, Reason(err))
	for n, text := range []string{"old", "new"} {
		require.NoError(t, os.WriteFile(secret, []byte(text+"\n"), 0o600))
		authorized(t, fmt.Sprintf("Bearer t%d", n+1), target)
		require.Equal(t, "goose:"+text, (<-i.asked).Get("as"))
	}
}

// A key may replace a secret.
func TestAsksForTokensWithAKey(t *testing.T) {
	i := newIssuer(t, (*httptest.Server).Start)
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	key := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(private)})
	authorized(t, "Bearer t1", newTarget(t, NetHTTP, echo(t), patient, i.job(func(o *promcommon.OAuth2) {
		o.GrantType, o.ClientSecret, o.ClientCertificateKey = grantJWT, "", promcommon.Secret(key)
	})))
	form := <-i.asked
	require.Equal(t, grantJWT, form.Get("grant_type"))
	require.Equal(t, 2, strings.Count(form.Get("assertion"), "."))

	c := jobConfig(i.job(func(o *promcommon.OAuth2) { o.ClientSecret, o.ClientSecretRef = "", "vault" }))
	_, err = NewClient(c, Options{})
	require.ErrorContains(t, err, "cannot use `oauth2` of job \"test\": cannot use a reference to a secret")
	_, err = NewClient(jobConfig(i.job(func(o *promcommon.OAuth2) { o.TokenURL = "http://\x7f" })), Options{})
	require.ErrorContains(t, err, "cannot read `token_url`")
}

// An error to get a token names the token server.
func TestSaysWhyThereIsNoToken(t *testing.T) {
	i := newIssuer(t, (*httptest.Server).Start)
	target := newTarget(t, NetHTTP, echo(t), patient, i.job())
	f := func(want string, refuse http.HandlerFunc) {
		t.Helper()
		i.refuse.Store(&refuse)
		_, err := get(target)
		require.ErrorContains(t, err, `Get "`+target.URL()+`": cannot get a token from `+i.URL+"/token: ")
		require.ErrorContains(t, err, want)
		require.Less(t, len(err.Error()), 2*maxComplaint)
		require.Equal(t, ReasonCredentials, Reason(err))
	}
	f("401 Unauthorized", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	f(`"invalid_client" "no such goose"`, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error": "invalid_client", "error_description": "no such goose"}`)
	})
	f("server response missing access_token", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") })
	f("500 Internal Server Error", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, strings.Repeat("x", 4<<20))
	})
	f("EOF", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	i.refuse.Store(nil)
	authorized(t, "Bearer t1", target)

	gone := newIssuer(t, (*httptest.Server).Start)
	gone.Close()
	_, err := get(newTarget(t, NetHTTP, echo(t), patient, gone.job(func(o *promcommon.OAuth2) {
		o.TokenURL = strings.Replace(o.TokenURL, "http://", "http://goose:unspeakable@", 1)
	})))
	require.ErrorContains(t, err, "connection refused")
	require.NotContains(t, err.Error(), "unspeakable")
	require.Equal(t, ReasonCredentials, Reason(err), "it is not the target that refuses")
}

// A token server that hangs delays no target beyond its timeout, however many wait, and none once it responds again.
func TestTokenServersMayHang(t *testing.T) {
	i := newIssuer(t, (*httptest.Server).Start)
	hang := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	i.refuse.Store(&hang)
	c := newClient(t, jobConfig(i.job()), Options{})
	page := echo(t)
	var waiting sync.WaitGroup
	began := time.Now()
	for range 100 {
		waiting.Go(func() {
			target := c.NewTarget(page, "", hasty, accept)
			defer target.Close()
			_, err := get(target)
			if Reason(err) != ReasonCredentials || !strings.Contains(fmt.Sprint(err), "cannot get a token from "+i.URL+"/token: context deadline exceeded") {
				t.Error(err)
			}
		})
	}
	waiting.Wait()
	require.Less(t, time.Since(began), 100*hasty, "they do not wait one after the other")

	ctx, cancel := context.WithCancel(t.Context())
	target := c.NewTarget(page, "", patient, accept)
	defer target.Close()
	stop := time.AfterFunc(hasty, cancel)
	defer stop.Stop()
	_, err := target.Get(ctx, nil, nil)
	require.ErrorIs(t, err, context.Canceled)

	i.refuse.Store(nil)
	authorized(t, "Bearer t1", target)
}

// The targets of a job share its token, even those at Unix sockets, where there is no token server.
func TestTargetsShareATokenServer(t *testing.T) {
	i := newIssuer(t, (*httptest.Server).Start)
	socket := filepath.Join(t.TempDir(), "socket")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Header.Get("Authorization")) }))
	server.Listener = l
	server.Start()
	defer server.Close()
	c := newClient(t, jobConfig(i.job()), Options{})
	page := echo(t)
	var sharing sync.WaitGroup
	for n := range 20 {
		sharing.Go(func() {
			target := c.NewTarget(page, []string{"", socket}[n%2], patient, accept)
			defer target.Close()
			if got, err := get(target); err != nil || got != "Bearer t1" {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	sharing.Wait()
	require.EqualValues(t, 1, i.issued.Load())
}

// When a target redirects to another host, that gets none of the target's secrets.
func TestKeepsSecretsFromOtherHosts(t *testing.T) {
	i := newIssuer(t, (*httptest.Server).Start)
	got := make(chan http.Header, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/there":
			http.Redirect(w, r, "http://"+strings.Replace(r.Host, "127.0.0.1", "localhost", 1)+"/page", http.StatusTemporaryRedirect)
		case "/here":
			http.Redirect(w, r, "/page", http.StatusMovedPermanently)
		default:
			got <- r.Header
		}
	}))
	defer server.Close()
	secret := promcommon.Header{Secrets: []promcommon.Secret{"unspeakable"}}
	for name, edit := range map[string]func(*promconfig.ScrapeConfig){
		"oauth2": i.job(),
		"basic": func(c *promconfig.ScrapeConfig) {
			c.HTTPClientConfig.BasicAuth = &promcommon.BasicAuth{Username: "goose", Password: "unspeakable"}
		},
		"authorization": func(c *promconfig.ScrapeConfig) {
			c.HTTPClientConfig.Authorization = &promcommon.Authorization{Type: "Bearer", Credentials: "unspeakable"}
		},
		"cookie": func(c *promconfig.ScrapeConfig) {
			c.HTTPClientConfig.HTTPHeaders = &promcommon.Headers{Headers: map[string]promcommon.Header{"Cookie": secret}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			header := map[bool]string{true: "Cookie", false: "Authorization"}[name == "cookie"]
			for path, want := range map[string]bool{"/here": true, "/there": false} {
				target := newClient(t, jobConfig(edit), Options{}).NewTarget(server.URL+path, "", patient, accept)
				for range 2 { // the first time on the plain road, where the redirect is found, then on the other
					_, err := get(target)
					require.NoError(t, err)
					require.Equal(t, want, (<-got).Get(header) != "", path)
				}
				target.Close()
			}
		})
	}
}
