// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package sideserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errBusy = fmt.Errorf("cannot listen: %w", &net.OpError{Op: "listen", Net: "tcp", Err: syscall.EADDRINUSE})

// watched is a server that records its callbacks.
type watched struct {
	Server

	mu     sync.Mutex
	waited []error
	opened []bool
}

// told returns what was recorded so far.
func (w *watched) told() (waited []error, opened []bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.waited), slices.Clone(w.opened)
}

func watch(listen func(context.Context) (net.Listener, error)) *watched {
	w := &watched{}
	w.Server = Server{
		HTTP:   &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Minute},
		Listen: listen,
		Waiting: func(err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.waited = append(w.waited, err)
		},
		Open: func(_ net.Addr, late bool) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.opened = append(w.opened, late)
		},
	}
	return w
}

// fakeListener blocks until it is closed, or fails.
type fakeListener struct{ fails chan error }

func newFakeListener() *fakeListener { return &fakeListener{make(chan error, 2)} }

func (l *fakeListener) Accept() (net.Conn, error) { return nil, <-l.fails }
func (l *fakeListener) Addr() net.Addr            { return &net.TCPAddr{} }
func (l *fakeListener) Close() error {
	select {
	case l.fails <- net.ErrClosed:
	default: // twice
	}
	return nil
}

func TestServesAtOnce(t *testing.T) {
	w := watch(func(context.Context) (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") })
	var address net.Addr
	w.Open = func(a net.Addr, late bool) {
		address = a
		assert.False(t, late)
	}
	require.NoError(t, w.Start(t.Context()))
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + address.String())
	require.NoError(t, err)
	_, _ = io.Copy(io.Discard, response.Body)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusNotFound, response.StatusCode)
	require.NoError(t, w.Shutdown(t.Context()))
	require.Empty(t, w.waited)
}

func TestABusyAddressIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		var listener *fakeListener
		w := watch(func(context.Context) (net.Listener, error) {
			if tries++; tries < 10 {
				return nil, errBusy
			}
			listener = newFakeListener()
			return listener, nil
		})
		start := time.Now()
		require.NoError(t, w.Start(t.Context()))
		waited, opened := w.told()
		require.Equal(t, []error{errBusy}, waited)
		for len(opened) == 0 {
			time.Sleep(firstPause)
			synctest.Wait()
			waited, opened = w.told()
		}
		require.Equal(t, []bool{true}, opened)
		require.Len(t, waited, 1, "said once")
		require.Equal(t, (1+2+4+8+16+4*30)*time.Second, time.Since(start))

		listener.fails <- errors.New("broken")
		time.Sleep(2 * firstPause)
		synctest.Wait()
		waited, opened = w.told()
		require.Len(t, waited, 2, "an address that is lost is missed")
		require.Equal(t, []bool{true, true}, opened)
		require.NoError(t, w.Shutdown(t.Context()))
	})
}

func TestShutdownEndsTheWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(func(context.Context) (net.Listener, error) { return nil, errBusy })
		require.NoError(t, w.Start(t.Context()))
		require.NoError(t, w.Shutdown(t.Context()))
		require.NoError(t, w.Shutdown(t.Context()), "twice")
	})
	require.NoError(t, (&Server{}).Shutdown(t.Context()), "not started")
	require.NoError(t, (*Server)(nil).Shutdown(t.Context()))
}

func TestAFaultOfTheConfigurationIsReturned(t *testing.T) {
	fault := errors.New("no certificate")
	w := watch(func(context.Context) (net.Listener, error) { return nil, fault })
	require.ErrorIs(t, w.Start(t.Context()), fault)
	require.Empty(t, w.waited)
	require.NoError(t, w.Shutdown(t.Context()))
}
