// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package websocket

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	other "github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/alloctest"
)

// sizes are around the limits of the lengths of frames and of the buffers.
var sizes = []int{0, 1, 2, 3, 5, 124, 125, 126, 127, 1023, 1024, 1025, leastBuffer - 8, leastBuffer, 65535, 65536, mostBuffer - 1, mostBuffer + 1, testLimit}

func message(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return b
}

func TestOurClientAndAnotherServer(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		ws, err := other.Accept(w, r, nil)
		if !assert.NoError(t, err) {
			return
		}
		defer ws.CloseNow()
		ws.SetReadLimit(testLimit)
		for {
			kind, message, err := ws.Read(context.Background())
			if err != nil {
				return
			}
			assert.NoError(t, ws.Write(context.Background(), kind, message))
		}
	})
	c := dial(t, address)
	go func() {
		for _, n := range sizes {
			sent := message(n)
			_ = c.Write(sent[:n/3], sent[n/3:n/3], sent[n/3:])
			_ = c.Write(sent)
			_ = c.Ping() // flushes, too
		}
	}()
	var got []byte
	for _, n := range sizes {
		first, isBinary, err := c.Read(nil)
		require.NoError(t, err)
		require.True(t, isBinary)
		require.Len(t, first, n)
		got, _, err = c.Read(append(got[:0], "before"...))
		require.NoError(t, err)
		require.True(t, bytes.Equal(first, got[len("before"):]), "%d bytes", n)
	}
	c.Close(StatusNormalClosure, "bye")
	_, _, err := c.Read(nil)
	require.ErrorIs(t, err, net.ErrClosed)
	require.ErrorIs(t, c.Write([]byte("x")), net.ErrClosed)
}

func TestAnotherClientAndOurServer(t *testing.T) {
	ended := make(chan error, 1)
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		c, err := Accept(w, r, testLimit)
		if !assert.NoError(t, err) {
			return
		}
		defer c.CloseNow()
		var b []byte
		for {
			if b, _, err = c.Read(b[:0]); err != nil {
				ended <- err
				return
			}
			assert.NoError(t, errors.Join(c.Write(b), c.Flush()))
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ws, _, err := other.Dial(ctx, address, &other.DialOptions{HTTPClient: client(t)})
	require.NoError(t, err)
	ws.SetReadLimit(testLimit)
	for _, n := range sizes {
		sent := message(n)
		w, err := ws.Writer(ctx, other.MessageBinary)
		require.NoError(t, err)
		for _, piece := range [][]byte{sent[:n/2], nil, sent[n/2:]} { // a frame each, and a final one
			_, err = w.Write(piece)
			require.NoError(t, err)
		}
		require.NoError(t, w.Close())
		_, got, err := ws.Read(ctx)
		require.NoError(t, err)
		require.True(t, bytes.Equal(sent, got), "%d bytes", n)
	}
	pinged := make(chan error)
	go func() { pinged <- ws.Ping(ctx) }()
	go func() { _, _, _ = ws.Read(ctx) }()
	require.NoError(t, <-pinged)
	require.NoError(t, ws.Close(3456, "enough"))
	require.Equal(t, CloseError{Code: 3456, Reason: "enough"}, <-ended)
}

func TestServersCloseAndClientsAgree(t *testing.T) {
	c, s := pair(t)
	closed := make(chan struct{})
	go func() { s.Close(StatusTryAgainLater, "later"); close(closed) }()
	require.NoError(t, c.Write(message(testLimit)), "this is on its way meanwhile")
	require.NoError(t, errors.Join(c.Write(message(1)), c.Flush()))
	_, _, err := c.Read(nil)
	require.Equal(t, CloseError{Code: StatusTryAgainLater, Reason: "later"}, err)
	require.Equal(t, StatusTryAgainLater, CloseStatus(err))
	<-closed
	require.Zero(t, CloseStatus(io.EOF))
}

func TestAConnectionThatJustEndsHasNoRegularEnd(t *testing.T) {
	c, s := pair(t)
	c.CloseNow()
	c.CloseNow()
	_, _, err := s.Read(nil)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.NotErrorIs(t, err, io.EOF)
}

func TestMessagesAreWrittenTogether(t *testing.T) {
	w := &writes{}
	c := newConn(w, true, 0, nil)
	for range 3 {
		require.NoError(t, c.Write(make([]byte, 100)))
	}
	require.Empty(t, w.sizes)
	require.NoError(t, c.Flush())
	require.NoError(t, c.Flush(), "nothing is left")
	require.Equal(t, []int{3 * (2 + 4 + 100)}, w.sizes)
	w.sizes = nil
	require.NoError(t, errors.Join(c.Write(make([]byte, 3*mostBuffer)), c.Flush()))
	require.Len(t, w.sizes, 4, "%v", w.sizes)
}

// writes is a connection that records the size of each write.
type writes struct {
	io.ReadWriteCloser

	sizes []int
}

func (w *writes) Write(p []byte) (int, error) {
	w.sizes = append(w.sizes, len(p))
	return len(p), nil
}

// Both sides write, and neither would read if it had to answer a ping first.
func TestAReaderDoesNotWaitForAWriter(t *testing.T) {
	ours, theirs := net.Pipe() // has no buffer
	c := newConn(ours, true, testLimit, nil)
	defer theirs.Close()
	defer c.CloseNow()
	writing := make(chan error)
	go func() { writing <- errors.Join(c.Write(message(10)), c.Flush()) }()
	_, err := theirs.Read(make([]byte, 1)) // the write is in progress
	require.NoError(t, err)
	for range 100 {
		go func() { _, _ = theirs.Write([]byte("\x89\x02hi\x82\x01m")) }()
		got, _, err := c.Read(nil)
		require.NoError(t, err)
		require.Equal(t, "m", string(got))
	}
	require.NoError(t, theirs.SetReadDeadline(time.Now().Add(patience)))
	_, err = io.ReadFull(theirs, make([]byte, 2+4+10-1))
	require.NoError(t, err)
	require.NoError(t, <-writing)
	pong := make([]byte, 2+4+2)
	_, err = io.ReadFull(theirs, pong)
	require.NoError(t, err)
	require.Equal(t, []byte{bitFinal | byte(opPong), bitMasked | 2}, pong[:2])
}

func TestWhoIsStuckIsFreed(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	c := newConn(ours, true, testLimit, nil)
	writing := make(chan error)
	go func() { writing <- errors.Join(c.Write(message(10)), c.Flush()) }()
	go func() { writing <- c.Ping() }()
	_, err := theirs.Read(make([]byte, 1))
	require.NoError(t, err)
	c.CloseNow()
	require.Error(t, <-writing)
	require.Error(t, <-writing)
	require.Error(t, c.Write(message(10*mostBuffer)), "an error stays")
}

func TestReceivedGrowsWithAnySign(t *testing.T) {
	c, s := pair(t)
	require.Zero(t, c.Received())
	var read atomic.Bool
	go func() { _, _, _ = s.Read(nil); read.Store(true) }()
	go func() { _, _, _ = c.Read(nil) }()
	require.NoError(t, c.Ping())
	eventually(t, func() bool { return c.Received() > 0 }, "a pong")
	require.False(t, read.Load(), "it is no message")
	c.CloseNow()
	eventually(t, read.Load, "it is over")
}

func TestMessagesCostNoGarbage(t *testing.T) {
	sent := message(10_000)
	w := &loop{}
	c, s := newConn(w, true, testLimit, nil), newConn(w, false, testLimit, nil)
	var got []byte
	require.Zero(t, alloctest.PerRun(func() {
		_ = c.Write(sent[:10], sent[10:])
		_ = c.Flush()
		got, _, _ = s.Read(got[:0])
	}))
	require.True(t, bytes.Equal(sent, got))
}

// loop is a connection to itself.
type loop struct{ bytes.Buffer }

func (*loop) Close() error { return nil }

func BenchmarkMessage(b *testing.B) {
	sent := message(100_000)
	w := &loop{}
	c, s := newConn(w, true, testLimit, nil), newConn(w, false, testLimit, nil)
	var got []byte
	b.SetBytes(int64(len(sent)))
	b.ReportAllocs()
	for b.Loop() {
		_ = c.Write(sent)
		_ = c.Flush()
		got, _, _ = s.Read(got[:0])
	}
}

func TestWhoSaysNothingIsAskedAndLeft(t *testing.T) {
	const often = 10 * time.Millisecond
	done := make(chan struct{})
	var asking sync.WaitGroup
	defer asking.Wait()
	defer close(done)

	c, s := pair(t)
	asking.Go(func() { s.KeepAlive(done, often, patience) })
	read := make(chan error, 2)
	go func() { _, _, err := c.Read(nil); read <- err }()
	go func() { _, _, err := s.Read(nil); read <- err }()
	heard := s.Received()
	for range 3 {
		eventually(t, func() bool { return s.Received() > heard }, "who is there answers, again and again")
		heard = s.Received()
	}
	c.CloseNow()
	require.Error(t, <-read)
	require.Error(t, <-read)

	_, s = pair(t) // the client reads nothing
	asking.Go(func() { s.KeepAlive(done, often, often) })
	_, _, err := s.Read(nil)
	require.Error(t, err, "it is gone")
	s.KeepAlive(nil, 0, 0) // no pings
}
