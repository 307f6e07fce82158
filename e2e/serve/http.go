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

// The header of a request comes at once from the peers of a test.
const headerTimeout = time.Minute

// HTTP serves handler on l until the test ends. A request's context ends with the
// client's connection or the test, whichever is first; cleaning up waits for
// every handler.
func HTTP(t testing.TB, l *Listener, handler http.Handler) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var handlers sync.RWMutex // held for reading by each handler that runs
	server := &http.Server{
		ReadHeaderTimeout: headerTimeout,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			handlers.RLock()
			defer handlers.RUnlock()
			handler.ServeHTTP(w, r)
		}),
	}
	if l.Secure != nil { // clients may find the security wanting, which is theirs to say
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

// Cut resets the connection of a request and ends its handler: it does not return.
func Cut(l *Listener, r *http.Request) {
	l.Reset(r.RemoteAddr)
	panic(http.ErrAbortHandler)
}

// Hang keeps a request waiting until its client gives up or the test ends, and
// ends its handler: it does not return.
func Hang(r *http.Request) {
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}
