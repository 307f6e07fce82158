// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	promcommon "github.com/prometheus/common/config"
	promconfig "github.com/prometheus/prometheus/config"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	path        string // of its certificate
}

var serials atomic.Int64

func (a *authority) sign(tb testing.TB, template *x509.Certificate) (der []byte, key *ecdsa.PrivateKey) {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(tb, err)
	template.SerialNumber = big.NewInt(serials.Add(1))
	template.NotBefore = time.Now().Add(-time.Hour)
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(time.Hour)
	}
	parent, signer := template, key
	if a.certificate != nil {
		parent, signer = a.certificate, a.key
	}
	der, err = x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	require.NoError(tb, err)
	return der, key
}

func newAuthority(tb testing.TB, dir, name string) *authority {
	tb.Helper()
	a := &authority{}
	der, key := a.sign(tb, &x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	certificate, err := x509.ParseCertificate(der)
	require.NoError(tb, err)
	a.certificate, a.key, a.path = certificate, key, filepath.Join(dir, name+".pem")
	writePEM(tb, a.path, "CERTIFICATE", der)
	return a
}

// pair writes a certificate and its key, and also returns them.
func (a *authority) pair(tb testing.TB, dir, name string, edit ...func(*x509.Certificate)) (pair tls.Certificate, certificate, key string) {
	tb.Helper()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, f := range edit {
		f(template)
	}
	der, private := a.sign(tb, template)
	packed, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(tb, err)
	certificate, key = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	writePEM(tb, certificate, "CERTIFICATE", der)
	writePEM(tb, key, "PRIVATE KEY", packed)
	pair, err = tls.LoadX509KeyPair(certificate, key)
	require.NoError(tb, err)
	return pair, certificate, key
}

func writePEM(tb testing.TB, path, kind string, der []byte) {
	tb.Helper()
	require.NoError(tb, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}

// serveTLS serves pages that contain the client's certificate or the protocol.
func serveTLS(tb testing.TB, config *tls.Config, edit ...func(*httptest.Server)) *httptest.Server {
	tb.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if certificates := r.TLS.PeerCertificates; len(certificates) > 0 {
			_, _ = io.WriteString(w, certificates[0].Subject.CommonName)
			return
		}
		_, _ = io.WriteString(w, r.TLS.ServerName+" "+r.Proto)
	}))
	server.TLS = config
	for _, f := range edit {
		f(server)
	}
	server.StartTLS()
	tb.Cleanup(server.Close)
	return server
}

func tlsJob(edit func(*promcommon.TLSConfig)) func(*promconfig.ScrapeConfig) {
	return func(c *promconfig.ScrapeConfig) { edit(&c.HTTPClientConfig.TLSConfig) }
}

// TLS with a target has the same result, and the same error, in our exchange and in net/http.
func TestBothRoadsSpeakTLSAlike(t *testing.T) {
	dir := t.TempDir()
	ours, theirs := newAuthority(t, dir, "ours"), newAuthority(t, dir, "theirs")
	node, _, _ := ours.pair(t, dir, "node.example")
	expired, _, _ := ours.pair(t, dir, "expired.example", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	_, certificate, key := theirs.pair(t, dir, "scraper")
	clients := x509.NewCertPool()
	clients.AddCert(theirs.certificate)
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	server := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{node}})
	trusting := func(edit ...func(*promcommon.TLSConfig)) func(*promcommon.TLSConfig) {
		return func(c *promcommon.TLSConfig) {
			c.CAFile = ours.path
			for _, f := range edit {
				f(c)
			}
		}
	}
	for name, test := range map[string]struct {
		url  string
		edit func(*promcommon.TLSConfig)
		want string // in the page or the error
	}{
		"an authority in a file":         {server.URL, trusting(), " HTTP/1.1"},
		"an authority in the settings":   {server.URL, func(c *promcommon.TLSConfig) { text, _ := os.ReadFile(ours.path); c.CA = string(text) }, " HTTP/1.1"},
		"a server's name":                {server.URL, trusting(func(c *promcommon.TLSConfig) { c.ServerName = "node.example" }), "node.example HTTP/1.1"},
		"another server's name":          {server.URL, trusting(func(c *promcommon.TLSConfig) { c.ServerName = "other.example" }), "not other.example"},
		"no verification":                {server.URL, func(c *promcommon.TLSConfig) { c.InsecureSkipVerify = true }, " HTTP/1.1"},
		"the wrong authority":            {server.URL, func(c *promcommon.TLSConfig) { c.CAFile = theirs.path }, "certificate signed by unknown authority"},
		"too old a version":              {server.URL, trusting(func(c *promcommon.TLSConfig) { c.MaxVersion = tls.VersionTLS10; c.MinVersion = tls.VersionTLS10 }), "protocol version"},
		"a certificate that has expired": {serveTLS(t, &tls.Config{Certificates: []tls.Certificate{expired}}).URL, trusting(), "certificate has expired"},
		"a server without TLS":           {"https" + plain.URL[len("http"):], trusting(), "server gave HTTP response to HTTPS client"},
		"a client's certificate": {
			serveTLS(t, &tls.Config{Certificates: []tls.Certificate{node}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}).URL,
			trusting(func(c *promcommon.TLSConfig) { c.CertFile, c.KeyFile = certificate, key }), "scraper",
		},
		"no client's certificate": {
			serveTLS(t, &tls.Config{Certificates: []tls.Certificate{node}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}).URL,
			trusting(), "tls: certificate required",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var said [2]string
			var reasons [2]string
			for _, road := range []Road{Plain, NetHTTP} {
				target := newTarget(t, road, test.url+"/metrics", patient, tlsJob(test.edit), func(c *promconfig.ScrapeConfig) { c.HTTPClientConfig.EnableHTTP2 = false })
				for range 2 { // the second time over the same connection
					page, err := get(target)
					if reasons[road] = Reason(err); err != nil {
						page = strings.Replace(err.Error(), "readLoopPeekFailLocked: ", "", 1) // net/http may add this
					}
					assert.Contains(t, page, test.want)
					said[road] = page
				}
				assert.Equal(t, road, target.Road())
			}
			assert.Equal(t, said[NetHTTP], said[Plain])
			assert.Equal(t, reasons[NetHTTP], reasons[Plain])
		})
	}
}

// As in Prometheus, files may change at any time, and a missing file is an error while it is missing.
func TestFollowsTheFilesOfTLS(t *testing.T) {
	dir := t.TempDir()
	first, second := newAuthority(t, dir, "first"), newAuthority(t, dir, "second")
	trusted := filepath.Join(dir, "trusted.pem")
	trust := func(a *authority) {
		text, err := os.ReadFile(a.path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(trusted, text, 0o600))
	}
	node, _, _ := first.pair(t, dir, "node.example")
	dials := atomic.Int32{}
	server := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{node}, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		dials.Add(1)
		return nil, nil
	}})
	for _, road := range []Road{Plain, NetHTTP} {
		trust(first)
		dials.Store(0)
		target := newTarget(t, road, server.URL, patient, tlsJob(func(c *promcommon.TLSConfig) { c.CAFile = trusted }))
		works := func() {
			t.Helper()
			_, err := get(target)
			require.NoError(t, err)
		}
		works()
		trust(first) // the same content with another modification time
		works()
		require.EqualValues(t, 1, dials.Load(), "what is the same is no reason to begin anew")
		trust(second)
		_, err := get(target)
		require.ErrorContains(t, err, "certificate signed by unknown authority")
		trust(first)
		works()
		require.NoError(t, os.Remove(trusted))
		_, err = get(target)
		require.ErrorContains(t, err, `Get "`+server.URL)
		require.ErrorContains(t, err, "unable to read ")
		require.Equal(t, ReasonCredentials, Reason(err))
		trust(first)
		works()
		require.EqualValues(t, 3, dials.Load(), "one each time it began anew: a file that comes back is no other")
		require.NoError(t, os.WriteFile(trusted, []byte("no certificate"), 0o600))
		for range 2 {
			_, err = get(target)
			require.ErrorContains(t, err, "unable to use specified CA cert")
		}
	}
}

// A file with a recent modification time is read again; one that has not changed for a while is not.
func TestReadsFilesThatMayHaveChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ca")
	write := func(text string, age time.Duration) {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		at := time.Now().Add(-age)
		require.NoError(t, os.Chtimes(path, at, at))
	}
	f := watchedFile{path: path}
	changed := func(want bool, why string) {
		t.Helper()
		got, err := f.changed()
		require.NoError(t, err)
		assert.Equal(t, want, got, why)
	}
	_, err := f.changed()
	require.ErrorIs(t, err, os.ErrNotExist)
	write("a", 0)
	changed(true, "it is there")
	before, err := os.Stat(path)
	require.NoError(t, err)
	write("b", 0)
	require.NoError(t, os.Chtimes(path, before.ModTime(), before.ModTime()))
	changed(true, "it has the same size and time")
	changed(false, "it is as before")
	write("b", time.Hour)
	changed(false, "it is another time, and nothing else")
	assert.True(t, f.settled)
	require.NoError(t, os.Remove(path))
	_, err = f.changed()
	require.ErrorIs(t, err, os.ErrNotExist)
	write("c", -time.Hour)
	changed(true, "it is another")
	changed(false, "a time in the future is no reason to begin anew")
}

// A server that only speaks HTTP/2 is scraped through net/http, unless the job disables HTTP/2.
func TestLeavesHTTP2ToNetHTTP(t *testing.T) {
	dir := t.TempDir()
	a := newAuthority(t, dir, "ca")
	node, _, _ := a.pair(t, dir, "node.example")
	h2 := func(s *httptest.Server) { s.EnableHTTP2 = true }
	both := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{node}}, h2)
	// With HTTP/2 alone Go's server would speak HTTP/1.1 all the same.
	alone := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{node}, GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		spoken := "h2"
		if !slices.Contains(hello.SupportedProtos, spoken) {
			spoken = "h3"
		}
		return &tls.Config{Certificates: []tls.Certificate{node}, NextProtos: []string{spoken}}, nil
	}}, h2)
	// A server that ignores the offered protocols, and responds with an HTTP/2 frame: a GOAWAY.
	frames := &net.ListenConfig{}
	l, err := frames.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	deaf := tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{node}})
	defer deaf.Close()
	go func() {
		for {
			conn, err := deaf.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1<<10))
			_, _ = conn.Write([]byte("\x00\x00\x08\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01"))
			_ = conn.Close()
		}
	}()
	trust := tlsJob(func(c *promcommon.TLSConfig) { c.CAFile = a.path })
	f := func(address string, road Road, want string, edit ...func(*promconfig.ScrapeConfig)) {
		t.Helper()
		target := newTarget(t, Plain, address, patient, append(edit, trust)...)
		for range 2 {
			page, err := get(target)
			if err != nil {
				page = err.Error()
			}
			assert.Contains(t, page, want)
			assert.Equal(t, road, target.Road())
		}
	}
	never := func(c *promconfig.ScrapeConfig) { c.HTTPClientConfig.EnableHTTP2 = false }
	f(both.URL, Plain, " HTTP/1.1")
	f(alone.URL, NetHTTP, " HTTP/2.0")
	f(alone.URL, Plain, "no application protocol", never)
	f("https://"+l.Addr().String(), NetHTTP, "malformed HTTP")
	f("https://"+l.Addr().String(), Plain, "EOF", never)
}

// A TLS handshake may take ten seconds, and no longer than the timeout.
func TestHandshakesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial := func(context.Context, string, string) (net.Conn, error) {
			here, there := net.Pipe()
			go func() {
				_, _ = io.Copy(io.Discard, there)
				_ = there.Close()
			}()
			return here, nil
		}
		for timeout, want := range map[time.Duration]string{time.Second: "context deadline exceeded", time.Minute: "net/http: TLS handshake timeout"} {
			for _, options := range []Options{{Dial: dial}, {Dial: dial, NetHTTP: true}} {
				target := newClient(t, jobConfig(), options).NewTarget("https://node.example/metrics", "", timeout, accept)
				began := time.Now()
				_, err := get(target)
				require.ErrorContains(t, err, want)
				require.Equal(t, min(timeout, handshakeTimeout), time.Since(began))
				require.Equal(t, ReasonTimeout, Reason(err))
				require.ErrorAs(t, err, new(*url.Error))
				target.Close()
			}
		}
	})
}

// After a late redirect to a server that never responds, the timeout still applies to the whole scrape.
func TestRedirectsTakeNoMoreTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial := func(context.Context, string, string) (net.Conn, error) {
			here, there := net.Pipe()
			go func() {
				defer there.Close()
				requests(there, func(r *http.Request) bool {
					if r.URL.Path == "/metrics" {
						time.Sleep(8 * time.Second)
						_, err := io.WriteString(there, "HTTP/1.1 302 Found\r\nLocation: /page\r\nContent-Length: 0\r\n\r\n")
						return err == nil
					}
					_, _ = io.Copy(io.Discard, there) // until the other side closes the connection
					return false
				})
			}()
			return here, nil
		}
		const timeout = 20 * time.Second // both redirects are within it
		target := newClient(t, jobConfig(), Options{Dial: dial}).NewTarget("http://node.example/metrics", "", timeout, accept)
		defer target.Close()
		for range 2 {
			began := time.Now()
			_, err := get(target)
			require.Equal(t, ReasonTimeout, Reason(err), "%v", err)
			require.Equal(t, timeout, time.Since(began))
			require.Equal(t, NetHTTP, target.Road())
		}
	})
}
