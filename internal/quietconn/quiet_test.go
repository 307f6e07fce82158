// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package quietconn

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/alloctest"
)

// each runs a test with both sides of a connection of each kind.
func each(t *testing.T, test func(t *testing.T, here, there net.Conn)) {
	for network, address := range map[string]string{"tcp": "127.0.0.1:0", "unix": filepath.Join(t.TempDir(), "socket")} {
		t.Run(network, func(t *testing.T) {
			l, err := (&net.ListenConfig{}).Listen(t.Context(), network, address)
			require.NoError(t, err)
			defer l.Close()
			here, err := (&net.Dialer{}).DialContext(t.Context(), network, l.Addr().String())
			require.NoError(t, err)
			defer here.Close()
			there, err := l.Accept()
			require.NoError(t, err)
			defer there.Close()
			for _, c := range []net.Conn{here, there} {
				require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
			}
			test(t, here, there)
		})
	}
}

// TestWhatIsWrittenIsRead, in pieces of any size and in both directions at once, although more is written than a socket
// buffers.
func TestWhatIsWrittenIsRead(t *testing.T) {
	each(t, func(t *testing.T, here, there net.Conn) {
		var all sync.WaitGroup
		pass := func(seed uint64, from, to net.Conn) {
			random := rand.New(rand.NewPCG(seed, 1))
			sent := make([]byte, 5<<20)
			for i := range sent {
				sent[i] = byte(random.Uint32())
			}
			all.Go(func() {
				random := rand.New(rand.NewPCG(seed, 2))
				for left, out := sent, Of(from); len(left) > 0; {
					n, err := out.Write(left[:min(len(left), 1+random.IntN(300<<10))])
					if err != nil {
						t.Error(err)
						return
					}
					left = left[n:]
				}
			})
			all.Go(func() {
				random := rand.New(rand.NewPCG(seed, 3))
				got, in := make([]byte, 0, len(sent)), Of(to)
				for len(got) < len(sent) {
					n, err := in.Read(got[len(got):min(cap(got), len(got)+1+random.IntN(100<<10))])
					if err != nil || n == 0 {
						t.Error(n, err)
						return
					}
					got = got[:len(got)+n]
				}
				if !bytes.Equal(sent, got) {
					t.Error("other bytes have come than were sent")
				}
			})
		}
		pass(1, here, there)
		pass(2, there, here)
		all.Wait()
	})
}

// TestEndsAreTheConnections: reads and writes return the errors of the connection itself.
func TestEndsAreTheConnections(t *testing.T) {
	alike := func(t *testing.T, c net.Conn, call func(io.ReadWriter) (int, error), want error) {
		n, err := call(Of(c))
		require.Zero(t, n)
		require.ErrorIs(t, err, want)
		_, theirs := call(c)
		require.ErrorIs(t, theirs, want)
		require.Equal(t, theirs.Error(), err.Error())
	}
	read := func(c io.ReadWriter) (int, error) { return c.Read(make([]byte, 10)) }
	write := func(c io.ReadWriter) (int, error) { return c.Write([]byte("x")) }
	each(t, func(t *testing.T, here, there net.Conn) {
		require.NoError(t, here.SetReadDeadline(time.Unix(1, 0)))
		alike(t, here, read, os.ErrDeadlineExceeded)
		require.NoError(t, here.SetWriteDeadline(time.Unix(1, 0)))
		alike(t, here, write, os.ErrDeadlineExceeded)
		require.NoError(t, here.SetDeadline(time.Now().Add(time.Minute)))
		n, err := Of(here).Read(nil)
		require.NoError(t, err)
		require.Zero(t, n)
		require.NoError(t, there.(interface{ CloseWrite() error }).CloseWrite())
		alike(t, here, read, io.EOF)
		require.NoError(t, here.Close())
		alike(t, here, read, net.ErrClosed)
		alike(t, here, write, net.ErrClosed)
	})
}

// TestBrokenConnectionsAreToldOf, also to writers.
func TestBrokenConnectionsAreToldOf(t *testing.T) {
	each(t, func(t *testing.T, here, there net.Conn) {
		require.NoError(t, there.Close())
		require.Eventually(t, func() bool {
			_, err := Of(here).Write([]byte("x"))
			var told *net.OpError
			return errors.As(err, &told)
		}, 10*time.Second, time.Millisecond)
	})
}

// TestWhoWaitsIsServed, by later data and by the end of the wait.
func TestWhoWaitsIsServed(t *testing.T) {
	each(t, func(t *testing.T, here, there net.Conn) {
		got := make(chan error)
		in := Of(here)
		read := func() {
			p := make([]byte, 10)
			_, err := in.Read(p)
			got <- err
		}
		go read()
		_, err := Of(there).Write([]byte("late"))
		require.NoError(t, err)
		require.NoError(t, <-got)
		go read()
		require.NoError(t, here.SetReadDeadline(time.Now().Add(10*time.Millisecond)))
		require.ErrorIs(t, <-got, os.ErrDeadlineExceeded)
		require.NoError(t, here.SetReadDeadline(time.Time{}))
		go read()
		require.NoError(t, here.Close())
		require.ErrorIs(t, <-got, net.ErrClosed)
	})
}

// TestAnyOtherConnectionIsItself: it may process its bytes in any way.
func TestAnyOtherConnectionIsItself(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	require.Same(t, a, Of(a))
	each(t, func(t *testing.T, here, _ net.Conn) {
		wrapped := &struct{ net.Conn }{here}
		require.Same(t, wrapped, Of(wrapped))
	})
}

func TestNothingIsAllocated(t *testing.T) {
	each(t, func(t *testing.T, here, there net.Conn) {
		in, out, p := Of(here), Of(there), make([]byte, 100)
		require.Zero(t, alloctest.PerRun(func() {
			if _, err := out.Write(p); err != nil {
				t.Error(err)
			}
			if _, err := io.ReadFull(in, p); err != nil {
				t.Error(err)
			}
		}))
	})
}
