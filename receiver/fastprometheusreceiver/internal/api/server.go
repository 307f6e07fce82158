// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.uber.org/zap"
	"golang.org/x/net/netutil"
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

	listener net.Listener
	server   *http.Server
	done     sync.WaitGroup
}

// New returns a server that shows the view.
func New(cfg Config, set component.TelemetrySettings, build component.BuildInfo, view View) *Server {
	s := &Server{cfg: cfg, set: set, build: build, view: view, started: time.Now()}
	s.host, _ = os.Hostname() // shown only
	s.wd, _ = os.Getwd()
	return s
}

// Start begins to serve.
func (s *Server) Start(ctx context.Context, host component.Host) error {
	listener, err := s.cfg.Server.ToListener(ctx)
	if err != nil {
		return fmt.Errorf("cannot serve the API: %w", err)
	}
	handler := s.handler()
	if isLoopback(listener.Addr()) {
		handler = onlyLoopback(s.cfg.Server.NetAddr.Endpoint, handler)
	}
	s.server, err = s.cfg.Server.ToServer(ctx, host.GetExtensions(), s.set, handler)
	if err != nil {
		return errors.Join(fmt.Errorf("cannot serve the API: %w", err), listener.Close())
	}
	s.listener = netutil.LimitListener(listener, s.cfg.MaxConnections)
	s.done.Go(func() {
		if err := s.server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			s.set.Logger.Error("The API is no longer served", zap.Error(err))
			componentstatus.ReportStatus(host, componentstatus.NewRecoverableErrorEvent(err))
		}
	})
	s.set.Logger.Info("Serving the API", zap.Stringer("endpoint", listener.Addr()))
	return nil
}

// Shutdown stops serving. Requests that are being answered are, within ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	if s == nil || s.server == nil {
		return nil
	}
	err := s.server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("cannot end the requests to the API: %w", err), s.server.Close())
	}
	s.done.Wait()
	return err
}
