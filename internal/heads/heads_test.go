// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package heads

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestHeadsShareARoom: usual heads do not count, and what large ones took comes back.
func TestHeadsShareARoom(t *testing.T) {
	r := &Room{most: 3 * Usual}
	a, b := r.Head(), r.Head()
	for range 4 {
		require.NoError(t, a.Add(Usual))
	}
	require.EqualValues(t, 3*Usual, r.taken.Load())
	require.NoError(t, b.Add(Usual), "a usual one")
	require.ErrorIs(t, b.Add(1), ErrRoom)
	a.End()
	require.NoError(t, b.Add(Usual))
	b.End()
	require.Zero(t, r.taken.Load())
}

const begins = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n"

// dialed returns a connection on which text was sent.
func dialed(t *testing.T, addr, text string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	_, _ = io.WriteString(c, text) // the server may have closed it
	return c
}

// TestServersCloseWhoSendsTooMuch: heads that never end take no more than there is for all of them, and others are
// served meanwhile, again and again on a connection.
func TestServersCloseWhoSendsTooMuch(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(w, req.Body)
	}), ReadHeaderTimeout: time.Minute}
	limited := Limit(server, l)
	room := limited.(listener).room
	room.most = 4 * Usual
	go func() { _ = server.Serve(limited) }()
	t.Cleanup(func() { _ = server.Close() })

	large := begins + strings.Repeat("X: "+strings.Repeat("a", 1000)+"\r\n", 20)
	for range 20 {
		c := dialed(t, l.Addr().String(), large)
		require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Millisecond)))
		_, _ = c.Read(make([]byte, 1))
		require.LessOrEqual(t, room.taken.Load(), room.most)
	}
	require.Eventually(t, func() bool { return room.taken.Load() > 0 }, time.Minute, time.Millisecond, "some are held")
	c := dialed(t, l.Addr().String(), "")
	in := bufio.NewReader(c)
	for i := range 30 {
		_, err := io.WriteString(c, fmt.Sprintf("%sX: %d\r\nY: %s\r\n\r\nok", begins, i, strings.Repeat("b", 1000)))
		require.NoError(t, err)
		resp, err := http.ReadResponse(in, nil)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, "ok", string(body))
	}
	require.NoError(t, server.Close())
	require.Eventually(t, func() bool { return room.taken.Load() == 0 }, time.Minute, time.Millisecond, "all comes back")
}

// TestEachHeadIsLimited: also where they are not counted.
func TestEachHeadIsLimited(t *testing.T) {
	server := &http.Server{Handler: http.NotFoundHandler()}
	Limit(server, nil)
	require.Equal(t, Largest, server.MaxHeaderBytes)
}

// late has data for who was reading when it was closed.
type late struct {
	net.Conn

	reads, closed chan struct{}
}

func (c late) Read(p []byte) (int, error) {
	close(c.reads)
	<-c.closed
	return len(p), nil
}

func (c late) Close() error {
	close(c.closed)
	return nil
}

// TestWhatIsReadWhileAConnectionClosesIsNotKept: such as by a stream that another goroutine ends.
func TestWhatIsReadWhileAConnectionClosesIsNotKept(t *testing.T) {
	r := &Room{most: 10 * Usual}
	c := &conn{Conn: late{reads: make(chan struct{}), closed: make(chan struct{})}, head: r.Head(), reads: true}
	c.arrived()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = c.Read(make([]byte, 4*Usual))
	}()
	<-c.Conn.(late).reads
	require.NoError(t, c.Close())
	<-done
	require.Zero(t, r.taken.Load())
}
