// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package server keeps what is known of the server of a destination, or of a group of servers behind one address: whether it
// answers, how requests are sent to it, what it accepts, and how long it asks for a pause. What it says on a stream and
// what it answers to a unary request are kept in one place.
package server

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configcompression"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/pace"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/tally"
)

// Settings is the configuration, and who is notified.
type Settings struct {
	Endpoint string
	// Mode is Auto, Stream or Unary, and Reprobe how long requests go one by one until a stream is tried again.
	Mode        string
	Reprobe     time.Duration
	Compression configcompression.Type
	// ByProxy reports whether an error is an answer of a proxy in front of the server.
	ByProxy func(error) bool
	// Gate is closed while the server asked for a pause.
	Gate *pace.Gate

	Logger *zap.Logger
	Tally  *tally.Tally

	// Over ends when nothing more is sent: failures after that say nothing about the server.
	Over context.Context
	// Ill is called when it has stopped answering; AllWell reports whether all servers of the exporter answer.
	Ill     func()
	AllWell func() bool
}

// Server is what is known about one server.
type Server struct {
	Settings

	health     health
	modes      modes
	fallback   *fallback
	complaints complaints
	largest    atomic.Int64
}

// New returns a server about which nothing is known.
func New(settings *Settings) *Server {
	return &Server{
		Settings: *settings,
		modes:    modes{mode: settings.Mode, reprobe: settings.Reprobe},
		fallback: newFallback(settings.Compression),
	}
}

// Start records the host, to which faults are reported.
func (s *Server) Start(host component.Host) { s.health.host = host }

// Throttle sends nothing to the server for the delay.
func (s *Server) Throttle(delay time.Duration) {
	if longer := s.Gate.Hold(delay, time.Now()); longer > 0 {
		s.Tally.Throttled(longer)
	}
}

// Largest is the size of the largest message that the server accepts, 0 if it has not said.
func (s *Server) Largest() int64 { return s.largest.Load() }

// Takes records that the server accepts no larger messages.
func (s *Server) Takes(largest int64) { s.largest.Store(largest) }
