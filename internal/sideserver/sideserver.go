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

// A Server is an HTTP server and how to get its listener. The fields are set before Start.
type Server struct {
	// HTTP answers.
	HTTP *http.Server
	// Listen takes the address. What the network refuses (a [net.OpError]) is tried again; any other error is a fault of
	// the configuration, and Start returns it.
	Listen func(context.Context) (net.Listener, error)
	// Waiting is told why there is no listener, once for each time that it is missing.
	Waiting func(error)
	// Open is told of each listener before it is served from; late is whether Waiting was told before.
	Open func(address net.Addr, late bool)

	stop    context.CancelFunc
	serving sync.WaitGroup
}

// Start takes the address if it can be had, and serves. It returns an error for what trying again would not help.
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

// run serves from listener, which may be nil, and from those that follow it.
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

// await tries until there is a listener, or returns nil when ctx ends.
func (s *Server) await(ctx context.Context) net.Listener {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		// Why it fails is known: a certificate that is missing now was there at the start, or will be.
		if listener, err := s.Listen(ctx); err == nil {
			return listener
		}
	}
}

// refused reports whether the network is why there is no listener.
func refused(err error) bool {
	var op *net.OpError
	return errors.As(err, &op)
}

// Shutdown stops waiting for the address, answers what has been asked, within ctx, and closes. It may be called on a nil
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
