// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensioncapabilities"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/answer"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/guard"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/meter"
	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/internal/redact"
	"github.com/godwit-otel/godwit/internal/sideserver"
)

var (
	_ extension.Extension                         = (*console)(nil)
	_ extensioncapabilities.ConfigSnapshotWatcher = (*console)(nil)
	_ componentstatus.Watcher                     = (*console)(nil)
	_ inspect.Registry                            = (*console)(nil)
)

// console is the extension: components register with it, and it samples and serves what they show.
type console struct {
	cfg *Config
	set extension.Settings

	known *knowledge
	api   map[string]answer.Func // by method and path

	server   *sideserver.Server
	address  string // where it listens, once it does
	sampling sync.WaitGroup
	stop     context.CancelFunc
}

func newConsole(cfg *Config, set extension.Settings, now func() time.Time) *console {
	known := newKnowledge(now)
	return &console{cfg: cfg, set: set, known: known, api: answers(known, set.BuildInfo, now), stop: func() {}}
}

// Start listens, and starts to sample. The console only shows things, so the Collector runs without it while its
// address is in use.
func (c *console) Start(ctx context.Context, host component.Host) error {
	c.known.service.Started(host)
	server, err := c.cfg.ServerConfig.ToServer(ctx, host.GetExtensions(), c.set.TelemetrySettings,
		guard.New(handler(c.api), c.cfg.names()...), confighttp.WithErrorHandler(c.turnAway))
	if err != nil {
		return fmt.Errorf("cannot make the HTTP server: %w", err)
	}
	endpoint := c.cfg.ServerConfig.NetAddr.Endpoint
	c.server = &sideserver.Server{
		HTTP:   server,
		Listen: c.cfg.ServerConfig.ToListener,
		Waiting: func(err error) {
			c.set.Logger.Error("The console is not served until its `endpoint` is free; everything else runs", zap.String("endpoint", endpoint), zap.Error(err))
			componentstatus.ReportStatus(host, componentstatus.NewRecoverableErrorEvent(fmt.Errorf("cannot listen on `endpoint` %q: %w", endpoint, err)))
		},
		Open: func(address net.Addr, late bool) {
			c.address = address.String()
			c.set.Logger.Info("The console is open", zap.String("url", c.url()))
			if late {
				componentstatus.ReportStatus(host, componentstatus.NewEvent(componentstatus.StatusOK))
			}
		},
	}
	if err := c.server.Start(ctx); err != nil {
		return fmt.Errorf("cannot listen on `endpoint` %q: %w", endpoint, err)
	}
	c.known.sample()
	run, stop := context.WithCancel(context.Background())
	c.stop = stop
	c.sampling.Go(func() { c.run(run) })
	return nil
}

// run samples at intervals.
func (c *console) run(ctx context.Context) {
	ticker := time.NewTicker(meter.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			c.known.sample()
		}
	}
}

// turnAway answers requests that do not reach the guard: those without credentials, and those with a body that cannot
// be decompressed.
func (c *console) turnAway(w http.ResponseWriter, _ *http.Request, message string, status int) {
	guard.Protect(w.Header())
	code := answer.CodeBadRequest
	if status == http.StatusUnauthorized {
		code = "unauthorized"
		w.Header().Set("WWW-Authenticate", c.challenge())
	}
	answer.Fail(w, status, code, redact.Text(message))
}

// challenge returns the header that makes a browser ask for a name and a password, if basicauth is used.
func (c *console) challenge() string {
	scheme := "Bearer"
	if auth := c.cfg.ServerConfig.Auth.Get(); auth != nil && auth.Config.AuthenticatorID.Type().String() == "basicauth" {
		scheme = "Basic"
	}
	return scheme + ` realm="console"`
}

func (c *console) url() string {
	if c.cfg.ServerConfig.TLS.HasValue() {
		return "https://" + c.address + "/"
	}
	return "http://" + c.address + "/"
}

// Shutdown answers pending requests, within ctx, and closes the server.
func (c *console) Shutdown(ctx context.Context) error {
	c.stop()
	err := c.server.Shutdown(ctx)
	c.sampling.Wait()
	return err
}

// NotifyConfigSnapshot receives the effective configuration. The Collector has applied the defaults and removed what it
// knows to be secret.
func (c *console) NotifyConfigSnapshot(_ context.Context, snapshot extensioncapabilities.ConfigSnapshot) error {
	c.known.service.Configured(snapshot.Effective())
	return nil
}

// ComponentStatusChanged implements [componentstatus.Watcher].
func (c *console) ComponentStatusChanged(of *componentstatus.InstanceID, event *componentstatus.Event) {
	c.known.service.Changed(of, event)
}

// RegisterInspection implements [inspect.Registry].
func (c *console) RegisterInspection(s inspect.Source) (unregister func()) {
	return c.known.sources.Register(s)
}
