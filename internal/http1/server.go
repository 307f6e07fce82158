// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package http1

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/godwit-otel/godwit/internal/heads"
	"github.com/godwit-otel/godwit/internal/quietconn"
)

// A Server serves what an http.Server describes, in another way. Its zero value is not ready: see New.
type Server struct {
	handler                   http.Handler
	idle, head, whole, answer time.Duration // time limits, 0 for none
	linger                    time.Duration // how long a connection is kept whose request was not read to its end
	maxHead                   int
	heads                     *heads.Room
	keepAlive                 bool
	log                       *log.Logger
	base                      context.Context // of requests
	cancel                    context.CancelFunc

	mu        sync.Mutex
	listeners map[net.Listener]struct{}
	conns     map[*conn]struct{}
	closing   bool
	done      sync.WaitGroup // connections
}

// headSlop is how much larger than the limit net/http lets a head be.
const headSlop = 4 << 10

// New returns a server with the handler, timeouts, head limit and log of another one, which must not be used any more.
func New(from *http.Server, keepAlive bool) *Server {
	s := &Server{
		handler: from.Handler, idle: from.IdleTimeout, head: from.ReadHeaderTimeout, whole: from.ReadTimeout, answer: from.WriteTimeout,
		linger: lingerTime, maxHead: from.MaxHeaderBytes, keepAlive: keepAlive, log: from.ErrorLog,
		heads: heads.NewRoom(), listeners: map[net.Listener]struct{}{}, conns: map[*conn]struct{}{},
	}
	s.base, s.cancel = context.WithCancel(context.Background())
	if s.maxHead <= 0 {
		s.maxHead = http.DefaultMaxHeaderBytes
	}
	if s.idle == 0 {
		s.idle = s.whole
	}
	if s.head == 0 {
		s.head = s.whole
	}
	if s.log == nil {
		s.log = log.Default()
	}
	return s
}

// Serve serves the connections of a listener, which it closes. It returns http.ErrServerClosed after Shutdown or Close.
func (s *Server) Serve(l net.Listener) error {
	defer func() { _ = l.Close() }() // it may be closed already
	if !s.listen(l) {
		return http.ErrServerClosed
	}
	defer s.unlisten(l)
	pause := time.Duration(0)
	for {
		nc, err := l.Accept()
		if err == nil {
			pause = 0
			s.begin(nc)
			continue
		}
		if s.isClosing() {
			return http.ErrServerClosed
		}
		var temporary interface{ Temporary() bool }
		if !errors.As(err, &temporary) || !temporary.Temporary() {
			return fmt.Errorf("cannot accept connections: %w", err)
		}
		pause = min(max(5*time.Millisecond, 2*pause), time.Second) // for example with too many open files
		s.log.Printf("http: Accept error: %v; retrying in %v", err, pause)
		time.Sleep(pause)
	}
}

func (s *Server) listen(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners[l] = struct{}{}
	return !s.closing
}

func (s *Server) unlisten(l net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, l)
}

func (s *Server) isClosing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// begin serves a connection.
func (s *Server) begin(nc net.Conn) {
	c := &conn{
		server: s, took: s.heads.Head(), nc: nc, quiet: quietconn.Of(nc), remote: nc.RemoteAddr().String(), idle: true,
		base: context.WithValue(s.base, http.LocalAddrContextKey, nc.LocalAddr()),
	}
	c.in = bufio.NewReader(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		_ = nc.Close() // it is not served yet
		return
	}
	s.conns[c] = struct{}{}
	s.done.Go(c.serve)
}

// turn records whether a connection waits for a request. It returns false if no more requests may come.
func (s *Server) turn(c *conn, idle bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.idle = idle
	return !s.closing
}

func (s *Server) forget(c *conn) {
	_ = c.nc.Close() // it may be closed already
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// pause waits, at most until the server is closed.
func (s *Server) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.base.Done():
	}
}

// stop closes the listeners, and all or only idle connections.
func (s *Server) stop(onlyIdle bool) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = true
	for l := range s.listeners {
		err = errors.Join(err, l.Close())
	}
	clear(s.listeners)
	for c := range s.conns {
		if c.idle || !onlyIdle {
			_ = c.nc.Close() // its goroutine notices that
		}
	}
	return err
}

// Shutdown closes the listeners and idle connections, and waits for the others, within ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.stop(true)
	ended := make(chan struct{})
	go func() {
		s.done.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		s.cancel()
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close closes all connections, whatever their state, and ends the contexts of requests.
func (s *Server) Close() error {
	defer s.cancel()
	return s.stop(false)
}
