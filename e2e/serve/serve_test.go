// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/godwit-otel/godwit/e2e/wait"
	"github.com/godwit-otel/godwit/internal/certtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func client(t *testing.T) *http.Client {
	c := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func TestListenerKnowsItsConnectionsAndCountsTheirBytes(t *testing.T) {
	l := Listen(t, "127.0.0.1:0")
	HTTP(t, l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	c := client(t)
	resp, err := c.Post("http://"+l.Addr().String(), "", strings.NewReader(strings.Repeat("x", 5000)))
	require.NoError(t, err)
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	assert.Equal(t, 1, l.Open())
	assert.Greater(t, l.Received(), int64(5000))
	assert.Less(t, l.Received(), int64(5500))

	c.CloseIdleConnections()
	wait.Until(t, time.Minute, func() (bool, string) { return l.Open() == 0, "the connection is still open" })
}

func TestConnectionsAreSecuredAsTold(t *testing.T) {
	certificate, key := certtest.SelfSigned(t)
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	require.NoError(t, err)
	var config atomic.Pointer[tls.Config]
	l := Listen(t, "127.0.0.1:0")
	l.Secure = config.Load
	HTTP(t, l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, strconv.FormatBool(r.TLS != nil))
	}))
	f := func(scheme, want string) {
		t.Helper()
		c := client(t)
		c.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: certtest.Pool(t, certificate)}
		resp, err := c.Get(scheme + "://" + l.Addr().String())
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		assert.Equal(t, want, string(body))
	}
	f("http", "false")
	config.Store(&tls.Config{Certificates: []tls.Certificate{pair}})
	f("https", "true")
	assert.Equal(t, 2, l.Open(), "a secured connection is known too")
}

func TestCutIsSeenAsAReset(t *testing.T) {
	l := Listen(t, "127.0.0.1:0")
	HTTP(t, l, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		Cut(l, r)
	}))
	_, err := client(t).Post("http://"+l.Addr().String(), "", strings.NewReader("x"))
	require.ErrorIs(t, err, syscall.ECONNRESET)
	assert.Zero(t, l.Open())
}

func TestResetAllCutsRequestsInFlight(t *testing.T) {
	l := Listen(t, "127.0.0.1:0")
	HTTP(t, l, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		l.ResetAll()
		Hang(r)
	}))
	_, err := client(t).Get("http://" + l.Addr().String())
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

func TestHangEndsWithTheClient(t *testing.T) {
	l := Listen(t, "127.0.0.1:0")
	arrived, ended := make(chan struct{}), make(chan struct{})
	HTTP(t, l, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		defer close(ended)
		close(arrived)
		Hang(r)
	}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		<-arrived
		cancel()
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+l.Addr().String(), nil)
	require.NoError(t, err)
	_, err = client(t).Do(req)
	require.ErrorIs(t, err, context.Canceled)
	<-ended
}

func TestTheEndOfTheTestEndsItsHandlers(t *testing.T) {
	arrived, ended := make(chan struct{}), make(chan struct{})
	answered := make(chan error, 1)
	c := client(t)
	t.Run("with a request that hangs before its body is read", func(t *testing.T) {
		l := Listen(t, "127.0.0.1:0")
		HTTP(t, l, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			defer close(ended)
			close(arrived)
			Hang(r)
		}))
		go func() {
			_, err := c.Post("http://"+l.Addr().String(), "", strings.NewReader("x"))
			answered <- err
		}()
		<-arrived
	})
	select {
	case <-ended:
	default:
		t.Error("the handler outlived its test")
	}
	require.Error(t, <-answered)
}
