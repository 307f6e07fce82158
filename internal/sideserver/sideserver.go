// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package sideserver runs an HTTP server that only shows what the Collector does.
//
// No data depends on such a server, so an address that is not available does not stop the Collector: the server
// logs that once, retries until it has the address, and logs that once. The same applies if the
// address is lost later. It uses one goroutine, and no connections but those of its clients.
package sideserver

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	firstPause   = time.Second
	longestPause = 30 * time.Second
)

// A Server is an HTTP server with the way to get its listener. Set the fields before Start.
type Server struct {
	// HTTP answers requests.
	HTTP *http.Server
	// Listen returns the listener. An error of the network (a [net.OpError]) is retried; any other one is a fault of
	// the configuration, and Start returns it.
	Listen func(context.Context) (net.Listener, error)
	// Waiting is called with the reason why there is no listener, once for each time that it is missing.
	Waiting func(error)
	// Open is called for each listener before it is served; late is whether Waiting was called before.
	Open func(address net.Addr, late bool)

	stop    context.CancelFunc
	serving sync.WaitGroup
}

// Start listens if that is possible, and serves. It returns errors that retrying would not help.
func (s *Server) Start(ctx context.Context) error {
	listener, err := s.Listen(ctx)
	if err != nil && !refused(err) {
		return err
	}
	if err != nil {
		s.Waiting(err)
	} else {
		s.Open(listener.Addr(), false)
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	s.serving.Go(func() { s.run(run, listener) })
	return nil
}

// run serves listener, which may be nil, and those after it.
func (s *Server) run(ctx context.Context, listener net.Listener) {
	for {
		if listener != nil {
			err := s.HTTP.Serve(listener)
			if errors.Is(err, http.ErrServerClosed) {
				return
			}
			s.Waiting(err)
		}
		if listener = s.await(ctx); listener == nil {
			return
		}
		s.Open(listener.Addr(), true)
	}
}

// await retries until there is a listener, or returns nil when ctx ends.
func (s *Server) await(ctx context.Context) net.Listener {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		// The reason is known: a certificate that is missing now was there at the start, or will be.
		if listener, err := s.Listen(ctx); err == nil {
			return listener
		}
	}
}

// refused reports whether an error is the network's.
func refused(err error) bool {
	var op *net.OpError
	return errors.As(err, &op)
}

// Shutdown stops waiting for the address, answers pending requests, within ctx, and closes. It may be called on a nil
// server, and on one that was not started.
func (s *Server) Shutdown(ctx context.Context) error {
	if s == nil || s.stop == nil {
		return nil
	}
	s.stop()
	err := s.HTTP.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.HTTP.Close())
	}
	s.serving.Wait()
	return err
}
