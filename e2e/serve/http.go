// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// The peers of a test send the header of a request at once.
const headerTimeout = time.Minute

// HTTP serves handler on l until the test ends. The context of a request ends with the client's connection or with the
// test. Cleaning up waits for all handlers.
func HTTP(t testing.TB, l *Listener, handler http.Handler) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var handlers sync.RWMutex // each running handler holds a read lock
	server := &http.Server{
		ReadHeaderTimeout: headerTimeout,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			handlers.RLock()
			defer handlers.RUnlock()
			handler.ServeHTTP(w, r)
		}),
	}
	if l.Secure != nil { // clients may reject the certificate, and report that themselves
		server.ErrorLog = log.New(io.Discard, "", 0)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() {
		cancel()
		_ = server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("cannot serve HTTP on %s: %v", l.Addr(), err)
		}
		handlers.Lock()
		handlers.Unlock() //nolint:staticcheck // an empty critical section: it waits for the handlers
	})
}

// Cut resets the connection of a request and aborts its handler: it does not return.
func Cut(l *Listener, r *http.Request) {
	l.Reset(r.RemoteAddr)
	panic(http.ErrAbortHandler)
}

// Hang blocks a request until its client closes the connection or the test ends, then aborts its handler: it does not
// return.
func Hang(r *http.Request) {
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}
