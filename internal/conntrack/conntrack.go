// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package conntrack replaces the module of its path in the agent: see docs/design/025.
//
// Prometheus' HTTP client dials by it. The original keeps an event log of each connection for a debug page that the Collector
// does not serve, and counts dials in a registry that it does not show. This one dials. Its listener exists for Prometheus' own
// server, which the workspace compiles with the agent's modules, and nothing starts.
package conntrack

import (
	"context"
	"net"
)

// A Dial makes a connection.
type Dial = func(ctx context.Context, network, address string) (net.Conn, error)

// An Option sets how to dial.
type Option func(*Dial)

// DialWithDialContextFunc dials with a function.
func DialWithDialContextFunc(dial Dial) Option { return func(d *Dial) { *d = dial } }

// DialWithName names the dialer in metrics, of which there are none.
func DialWithName(string) Option { return func(*Dial) {} }

// DialWithTracing shows connections on a page, of which there is none.
func DialWithTracing() Option { return func(*Dial) {} }

// NewDialContextFunc returns the function that the last option gives, or the one of net.
func NewDialContextFunc(options ...Option) func(ctx context.Context, network, address string) (net.Conn, error) {
	dial := (&net.Dialer{}).DialContext
	for _, option := range options {
		option(&dial)
	}
	return dial
}

// A ListenerOption does nothing.
type ListenerOption func()

// TrackWithName names a listener in metrics, of which there are none.
func TrackWithName(string) ListenerOption { return func() {} }

// TrackWithTracing shows connections on a page, of which there is none.
func TrackWithTracing() ListenerOption { return func() {} }

// NewListener returns the listener.
func NewListener(inner net.Listener, _ ...ListenerOption) net.Listener { return inner }
