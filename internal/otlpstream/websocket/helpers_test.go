// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package websocket

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	patience  = time.Minute
	testLimit = 1 << 20
)

// serve runs a server whose handler may keep connections, and returns its address.
func serve(tb testing.TB, handler func(w http.ResponseWriter, r *http.Request)) string {
	var serving sync.WaitGroup
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serving.Add(1)
		defer serving.Done()
		handler(w, r)
	}))
	tb.Cleanup(func() { s.Close(); serving.Wait() })
	return s.URL
}

func client(tb testing.TB) *http.Client {
	transport := &http.Transport{}
	tb.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func dial(tb testing.TB, address string) *Conn {
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	c, response, err := Dial(ctx, client(tb), address, http.Header{"X-Test": {"1"}}, testLimit)
	require.NoError(tb, err)
	require.Equal(tb, http.StatusSwitchingProtocols, response.StatusCode)
	tb.Cleanup(c.CloseNow)
	return c
}

// pair returns a client and a server after their handshake.
func pair(tb testing.TB) (client, server *Conn) {
	accepted := make(chan *Conn, 1)
	address := serve(tb, func(w http.ResponseWriter, r *http.Request) {
		c, err := Accept(w, r, testLimit)
		assert.NoError(tb, err)
		accepted <- c
	})
	client, server = dial(tb, address), <-accepted
	tb.Cleanup(server.CloseNow)
	return client, server
}

// script is a connection on which the other side has sent everything, and reads nothing.
type script struct {
	net.Conn

	in  *bytes.Reader
	mu  sync.Mutex
	out bytes.Buffer
}

// Read ends with an error other than io.EOF, which the other implementation may mistake for the end of a message.
func (s *script) Read(b []byte) (int, error) {
	n, err := s.in.Read(b)
	if err != nil {
		err = net.ErrClosed
	}
	return n, err
}

func (s *script) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(b)
}

func (s *script) said() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.out.Bytes())
}

func (*script) Close() error { return nil }

// hijack is a response whose connection can be hijacked, with data that arrived together with the handshake.
type hijack struct {
	*httptest.ResponseRecorder

	conn *script
}

func (h hijack) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return h.conn, bufio.NewReadWriter(bufio.NewReader(h.conn), bufio.NewWriter(h.conn)), nil
}

// request returns a valid handshake.
func request() *http.Request {
	r := httptest.NewRequest(http.MethodGet, "http://here/", http.NoBody)
	for name, value := range map[string]string{
		"Connection": "keep-alive, Upgrade", "Upgrade": "websocket", headerVersion: version, headerKey: "AAAAAAAAAAAAAAAAAAAAAA==",
	} {
		r.Header.Set(name, value)
	}
	return r
}

// scripted returns a server whose client sends the input and nothing else.
func scripted(tb testing.TB, input []byte, limit int) (*Conn, *script) {
	s := &script{in: bytes.NewReader(input)}
	c, err := Accept(hijack{httptest.NewRecorder(), s}, request(), limit)
	require.NoError(tb, err)
	return c, s
}

// eventually waits for a condition. It is checked on the test's goroutine, so that it may end the test.
func eventually(tb testing.TB, f func() bool, message string) {
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		late := time.Since(begun) > patience // before the last attempt, however long the process was paused
		if f() {
			return
		}
		require.False(tb, late, "it has not come to this: %s", message)
	}
}
