// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.uber.org/zap"
	"golang.org/x/net/netutil"

	"github.com/godwit-otel/godwit/internal/sideserver"
)

// A Server serves the API.
type Server struct {
	cfg     Config
	set     component.TelemetrySettings
	build   component.BuildInfo
	view    View
	started time.Time
	host    string // this machine's name
	wd      string // the working directory

	server  *sideserver.Server
	address net.Addr // where it listens, once it does
}

// New returns a server that shows the view.
func New(cfg Config, set component.TelemetrySettings, build component.BuildInfo, view View) *Server {
	s := &Server{cfg: cfg, set: set, build: build, view: view, started: time.Now()}
	s.host, _ = os.Hostname() // shown only
	s.wd, _ = os.Getwd()
	return s
}

// Start starts to serve. The API only shows things, so the receiver runs without it while its address is in use.
func (s *Server) Start(ctx context.Context, host component.Host) error {
	all := s.handler()
	local := onlyLoopback(s.cfg.Server.NetAddr.Endpoint, all)
	httpServer, err := s.cfg.Server.ToServer(ctx, host.GetExtensions(), s.set, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isLoopback(s.address) {
			local.ServeHTTP(w, r)
		} else {
			all.ServeHTTP(w, r)
		}
	}))
	if err != nil {
		return fmt.Errorf("cannot serve the API: %w", err)
	}
	endpoint := s.cfg.Server.NetAddr.Endpoint
	s.server = &sideserver.Server{
		HTTP: httpServer,
		Listen: func(ctx context.Context) (net.Listener, error) {
			listener, err := s.cfg.Server.ToListener(ctx)
			if err != nil {
				return nil, err
			}
			return netutil.LimitListener(listener, s.cfg.MaxConnections), nil
		},
		Waiting: func(err error) {
			s.set.Logger.Error("The API is not served until its `endpoint` is free; scraping continues", zap.String("endpoint", endpoint), zap.Error(err))
			componentstatus.ReportStatus(host, componentstatus.NewRecoverableErrorEvent(fmt.Errorf("cannot serve the API: %w", err)))
		},
		Open: func(address net.Addr, late bool) {
			s.address = address
			s.set.Logger.Info("Serving the API", zap.Stringer("endpoint", address))
			if late {
				componentstatus.ReportStatus(host, componentstatus.NewEvent(componentstatus.StatusOK))
			}
		},
	}
	if err := s.server.Start(ctx); err != nil {
		return fmt.Errorf("cannot serve the API: %w", err)
	}
	return nil
}

// Shutdown stops serving, after it has answered pending requests, within ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	if s == nil {
		return nil
	}
	if err := s.server.Shutdown(ctx); err != nil {
		return fmt.Errorf("cannot end the requests to the API: %w", err)
	}
	return nil
}
