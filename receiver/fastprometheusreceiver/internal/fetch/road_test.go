// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	promcommon "github.com/prometheus/common/config"
	promconfig "github.com/prometheus/prometheus/config"
	"github.com/stretchr/testify/require"
)

func TestChoosesTheRoadOncePerTarget(t *testing.T) {
	f := func(want Road, url, socket, accept string, edit ...func(*promconfig.ScrapeConfig)) {
		t.Helper()
		c := newClient(t, jobConfig(edit...), Options{})
		require.Equal(t, want, c.NewTarget(url, socket, time.Second, accept).Road())
	}
	const plain = "http://127.0.0.1:9100/metrics"
	f(Plain, plain, "", accept)
	f(Plain, "http://[::1]/metrics?match[]=%7Bjob%3D%22x%22%7D", "", accept)
	f(Plain, "http://node-1.example.org", "", accept)
	f(Plain, plain, "/run/x.sock", accept)
	f(Plain, "https://127.0.0.1:9100/metrics", "", accept)
	f(Plain, "https://node-1.example.org", "", accept)
	f(NetHTTP, "http://user:pass@127.0.0.1/metrics", "", accept)
	f(NetHTTP, "http://[fe80::1%25eth0]/metrics", "", accept)
	f(NetHTTP, "http://bücher.example/metrics", "", accept)
	f(NetHTTP, "http://127.0.0.1/metrics?a b", "", accept)
	f(NetHTTP, "ftp://127.0.0.1/metrics", "", accept)
	f(NetHTTP, "http:///metrics", "", accept)
	f(NetHTTP, "://", "", accept)
	f(NetHTTP, plain, "", "text/plain\r\nX: y")
	f(NetHTTP, plain, "", accept, func(c *promconfig.ScrapeConfig) {
		c.HTTPClientConfig.OAuth2 = &promcommon.OAuth2{ClientID: "x", TokenURL: "http://127.0.0.1/token"}
	})
	f(NetHTTP, plain, "", accept, func(c *promconfig.ScrapeConfig) { c.HTTPClientConfig.BearerToken = "x" })
	proxied := func(noProxy string) func(*promconfig.ScrapeConfig) {
		return func(c *promconfig.ScrapeConfig) {
			c.HTTPClientConfig.ProxyConfig = promcommon.ProxyConfig{
				ProxyURL: promcommon.URL{URL: &url.URL{Scheme: "http", Host: "127.0.0.1:3128"}}, NoProxy: noProxy,
			}
		}
	}
	f(NetHTTP, "http://10.0.0.1/metrics", "", accept, proxied(""))
	f(NetHTTP, "http://10.0.0.1/metrics", "", accept, proxied("10.1.0.0/16"))
	f(Plain, "http://10.1.0.1/metrics", "", accept, proxied("10.1.0.0/16"))
	f(NetHTTP, plain, "", accept, func(c *promconfig.ScrapeConfig) {
		c.HTTPClientConfig.HTTPHeaders = &promcommon.Headers{Headers: map[string]promcommon.Header{"X-Bad": {Values: []string{"a\nb"}}}}
	})
}

// Both roads send the same headers as Prometheus, in any order.
func TestSendsTheSameRequests(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte(" s3cret\n"), 0o600))
	requests := make(chan *http.Request, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests <- r
		io.WriteString(w, "up 1\n")
	}))
	defer server.Close()
	f := func(edit func(*promconfig.ScrapeConfig)) http.Header {
		t.Helper()
		var sent [2]*http.Request
		for _, road := range []Road{Plain, NetHTTP} {
			target := newTarget(t, road, server.URL+"/metrics?a=b&c=%20", time.Minute, edit)
			page, err := get(target)
			require.NoError(t, err)
			require.Equal(t, "up 1\n", page)
			sent[road] = <-requests
		}
		require.Equal(t, sent[NetHTTP].Header, sent[Plain].Header)
		require.Equal(t, sent[NetHTTP].Host, sent[Plain].Host)
		require.Equal(t, sent[NetHTTP].RequestURI, sent[Plain].RequestURI)
		require.Equal(t, "/metrics?a=b&c=%20", sent[Plain].RequestURI)
		return sent[Plain].Header
	}
	h := f(func(*promconfig.ScrapeConfig) {})
	require.Equal(t, http.Header{
		"Accept": {accept}, "Accept-Encoding": {compressed}, "User-Agent": {agent}, "X-Prometheus-Scrape-Timeout-Seconds": {"60"},
	}, h)
	h = f(func(c *promconfig.ScrapeConfig) { c.EnableCompression = false })
	require.Equal(t, []string{"identity"}, h["Accept-Encoding"])
	h = f(func(c *promconfig.ScrapeConfig) {
		c.HTTPClientConfig.BasicAuth = &promcommon.BasicAuth{Username: "user", Password: "pass"}
	})
	require.Equal(t, []string{"Basic dXNlcjpwYXNz"}, h["Authorization"])
	h = f(func(c *promconfig.ScrapeConfig) {
		c.HTTPClientConfig.BasicAuth = &promcommon.BasicAuth{Username: "user", PasswordFile: secret}
	})
	require.Equal(t, []string{"Basic dXNlcjpzM2NyZXQ="}, h["Authorization"])
	h = f(func(c *promconfig.ScrapeConfig) {
		c.HTTPClientConfig.BasicAuth = &promcommon.BasicAuth{UsernameFile: secret}
	})
	require.Equal(t, []string{"Basic czNjcmV0Og=="}, h["Authorization"])
	h = f(func(c *promconfig.ScrapeConfig) {
		c.HTTPClientConfig.Authorization = &promcommon.Authorization{Type: "Bearer", Credentials: "token"}
	})
	require.Equal(t, []string{"Bearer token"}, h["Authorization"])
	h = f(func(c *promconfig.ScrapeConfig) {
		c.HTTPClientConfig.Authorization = &promcommon.Authorization{Type: "Bearer", CredentialsFile: secret}
	})
	require.Equal(t, []string{"Bearer s3cret"}, h["Authorization"])
	h = f(func(c *promconfig.ScrapeConfig) {
		c.HTTPClientConfig.HTTPHeaders = &promcommon.Headers{Headers: map[string]promcommon.Header{
			"x-scope": {Values: []string{" a ", "b"}, Secrets: []promcommon.Secret{"c"}, Files: []string{secret}},
		}}
	})
	require.Equal(t, []string{"a", "b", "c", "s3cret"}, h["X-Scope"])
}

func TestReadsSecretsForEachRequest(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	seen := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen <- r.Header.Get("Authorization") }))
	defer server.Close()
	for _, road := range []Road{Plain, NetHTTP} {
		require.NoError(t, os.WriteFile(secret, []byte("old"), 0o600))
		target := newTarget(t, road, server.URL, patient, func(c *promconfig.ScrapeConfig) {
			c.HTTPClientConfig.Authorization = &promcommon.Authorization{Type: "Bearer", CredentialsFile: secret}
		})
		_, err := get(target)
		require.NoError(t, err)
		require.Equal(t, "Bearer old", <-seen)
		require.NoError(t, os.WriteFile(secret, []byte("new"), 0o600))
		_, err = get(target)
		require.NoError(t, err)
		require.Equal(t, "Bearer new", <-seen)
		require.NoError(t, os.Remove(secret))
		_, err = get(target)
		require.ErrorContains(t, err, "unable to read authorization credentials")
		require.ErrorContains(t, err, `Get "`+server.URL)
		require.Equal(t, ReasonCredentials, Reason(err))
	}
}

func TestFollowsRedirectsThroughNetHTTP(t *testing.T) {
	var first atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" {
			first.Add(1)
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
			return
		}
		io.WriteString(w, "up 1\n")
	}))
	defer server.Close()
	target := newTarget(t, Plain, server.URL+"/metrics", patient)
	for range 2 {
		page, err := get(target)
		require.NoError(t, err)
		require.Equal(t, "up 1\n", page)
		require.Equal(t, NetHTTP, target.Road())
	}
	require.EqualValues(t, 3, first.Load(), "it is found out once")

	target = newTarget(t, Plain, server.URL+"/metrics", patient, func(c *promconfig.ScrapeConfig) { c.HTTPClientConfig.FollowRedirects = false })
	_, err := get(target)
	require.EqualError(t, err, "server returned HTTP status 302 Found")
	require.Equal(t, Plain, target.Road())
}

// After a redirect for a while, as by a login page or a server that starts, a target has its own connection again.
func TestReturnsFromRedirects(t *testing.T) {
	var isElsewhere atomic.Bool
	answer := func(conn net.Conn, _ int) {
		requests(conn, func(r *http.Request) bool {
			response := page200
			if r.URL.Path == "/metrics" && isElsewhere.Load() {
				response = "HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"
			}
			_, err := io.WriteString(conn, response)
			return err == nil
		})
	}
	secured, trust := throughTLS(t, answer)
	for url, edit := range map[string]func(*promconfig.ScrapeConfig){serveRaw(t, answer): func(*promconfig.ScrapeConfig) {}, secured: trust} {
		target := newTarget(t, Plain, url, patient, edit)
		for _, f := range []struct {
			elsewhere bool
			next      Road
		}{{false, Plain}, {true, NetHTTP}, {true, NetHTTP}, {false, Plain}, {false, Plain}, {true, NetHTTP}, {false, Plain}} {
			isElsewhere.Store(f.elsewhere)
			page, err := get(target)
			require.NoError(t, err)
			require.Equal(t, "up 1\n", page)
			require.Equal(t, f.next, target.Road())
		}
	}
}

func TestReachesUnixSockets(t *testing.T) {
	dir := t.TempDir()
	closed := make(chan struct{}, 10)
	serve := func(name string) string {
		socket := filepath.Join(dir, name)
		l, err := net.Listen("unix", socket)
		require.NoError(t, err)
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, name+" "+r.Host) }))
		server.Listener = l
		server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				closed <- struct{}{}
			}
		}
		server.Start()
		t.Cleanup(server.Close)
		return socket
	}
	a, b := serve("a"), serve("b")
	for _, road := range []Road{Plain, NetHTTP} {
		c := newClient(t, jobConfig(), Options{NetHTTP: road == NetHTTP})
		for socket, want := range map[string]string{a: "a example.org", b: "b example.org"} {
			target := c.NewTarget("http://example.org/metrics", socket, patient, accept)
			require.Equal(t, road, target.Road())
			for range 2 {
				page, err := get(target)
				require.NoError(t, err)
				require.Equal(t, want, page)
				target.Close()
				<-closed // also where net/http keeps connections
			}
		}
	}
}

func TestReachesTLSAndHTTP2(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Proto) }))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	f := func(want string, edit func(*promconfig.ScrapeConfig)) {
		t.Helper()
		page, err := get(newTarget(t, NetHTTP, server.URL, patient, func(c *promconfig.ScrapeConfig) {
			c.HTTPClientConfig.TLSConfig.InsecureSkipVerify = true
			edit(c)
		}))
		require.NoError(t, err)
		require.Equal(t, want, page)
	}
	f("HTTP/2.0", func(*promconfig.ScrapeConfig) {})
	f("HTTP/1.1", func(c *promconfig.ScrapeConfig) { c.HTTPClientConfig.EnableHTTP2 = false })
	_, err := get(newTarget(t, NetHTTP, server.URL, patient))
	require.Equal(t, ReasonTLS, Reason(err))
}

// Targets on this host are asked for uncompressed pages of any size.
func TestAsksTheLocalHostForPlainPages(t *testing.T) {
	offers := make(chan string, 1)
	size := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		offers <- r.Header.Get("Accept-Encoding")
		w.Write(make([]byte, size))
	}))
	defer server.Close()
	for _, road := range []Road{Plain, NetHTTP} {
		for want, options := range map[string]Options{identity: {LocalIdentity: true}, compressed: {}} {
			options.NetHTTP = road == NetHTTP
			target := newClient(t, jobConfig(), options).NewTarget(server.URL, "", patient, accept)
			for _, size = range []int{10, large, 2 * large, 10} {
				_, err := get(target)
				require.NoError(t, err)
				require.Equal(t, want, <-offers)
			}
			target.Close()
		}
	}
}

// A placedConn reports these addresses for its ends.
type placedConn struct {
	net.Conn

	from, to string
}

func (c placedConn) LocalAddr() net.Addr  { return &net.TCPAddr{IP: net.ParseIP(c.from), Port: 40_000} }
func (c placedConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(c.to), Port: 80} }

// A target at an address of this host counts as local while its connections end on this host.
func TestKnowsTheAddressesOfThisHost(t *testing.T) {
	offers := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		offers <- r.Header.Get("Accept-Encoding")
		w.Header().Set("Connection", "close")
	}))
	defer server.Close()
	at := placedConn{}
	target := newClient(t, jobConfig(), Options{LocalIdentity: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
		return placedConn{conn, at.from, at.to}, err
	}}).NewTarget("http://node-7.example/metrics", "", patient, accept)
	defer target.Close()
	for _, test := range []struct{ from, to, want string }{
		{"198.51.100.7", "198.51.100.8", compressed},
		{"198.51.100.7", "198.51.100.7", identity},
		{"2001:db8::7", "2001:db8::7", identity},
		{"198.51.100.7", "198.51.100.8", compressed},
	} {
		at.from, at.to = test.from, test.to
		_, err := get(target)
		require.NoError(t, err)
		require.Equal(t, test.want, <-offers, test)
	}
}
