// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensioncapabilities"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/internal/sideserver"
)

var (
	_ extension.Extension                         = (*console)(nil)
	_ extensioncapabilities.ConfigSnapshotWatcher = (*console)(nil)
	_ componentstatus.Watcher                     = (*console)(nil)
	_ inspect.Registry                            = (*console)(nil)
)

// A source is what a component has registered.
type source struct {
	inspect.Source

	since    time.Time // its counters were 0 then
	instance int       // from 1: a processor has one for each pipeline
	several  atomic.Bool
}

// name is how the component is called in configurations, and which of its instances it is if there are several.
func (s *source) name() string {
	switch {
	case s.several.Load() && s.Pipeline != "":
		return s.ID.String() + " in " + s.Pipeline
	case s.instance > 1:
		return s.ID.String() + "#" + strconv.Itoa(s.instance)
	}
	return s.ID.String()
}

// node is the component in the picture of the pipelines.
func (s *source) node() string { return nodeID(s.Kind, s.ID) }

func nodeID(kind component.Kind, id component.ID) string {
	return kindName(kind) + "/" + id.String()
}

func kindName(kind component.Kind) string {
	switch kind {
	case component.KindReceiver:
		return wordReceiver
	case component.KindProcessor:
		return wordProcessor
	case component.KindExporter:
		return wordExporter
	case component.KindConnector:
		return wordConnector
	case component.KindExtension:
		return wordExtension
	}
	return "component"
}

// console is the extension.
type console struct {
	cfg     *Config
	set     extension.Settings
	started time.Time
	now     func() time.Time

	server   *sideserver.Server
	address  string // that it listens at, once it does
	serving  sync.WaitGroup
	stop     context.CancelFunc
	looking  chan struct{} // has a place for each look at a target
	watching chan struct{} // and for each look at data
	watchFor time.Duration

	readings  past[*reading]
	overviews past[map[*source]churn]
	ring      ring
	shared    shared

	mu       sync.Mutex
	sources  []*source
	conf     *confmap.Conf // the effective one, nil until told
	statuses map[string]map[componentstatus.InstanceID]*componentstatus.Event
	host     component.Host
}

func newConsole(cfg *Config, set extension.Settings) *console {
	return &console{
		cfg: cfg, set: set, now: time.Now, started: time.Now(),
		stop:     func() {},
		looking:  make(chan struct{}, 1),
		watching: make(chan struct{}, maxWatching),
		watchFor: watchFor,
		statuses: map[string]map[componentstatus.InstanceID]*componentstatus.Event{},
		shared:   shared{answers: map[string]*sharedAnswer{}},
	}
}

// Start listens, and begins to sample. The console only shows, so the Collector runs without it while its address is
// taken.
func (c *console) Start(ctx context.Context, host component.Host) error {
	c.mu.Lock()
	c.host = host
	c.mu.Unlock()
	server, err := c.cfg.ServerConfig.ToServer(ctx, host.GetExtensions(), c.set.TelemetrySettings,
		newGuard(c.cfg, c.handler()), confighttp.WithErrorHandler(c.turnAway))
	if err != nil {
		return fmt.Errorf("cannot make the HTTP server: %w", err)
	}
	endpoint := c.cfg.ServerConfig.NetAddr.Endpoint
	c.server = &sideserver.Server{
		HTTP:   server,
		Listen: c.cfg.ServerConfig.ToListener,
		Waiting: func(err error) {
			c.set.Logger.Error("The console is not served until its `endpoint` is free; all else runs", zap.String("endpoint", endpoint), zap.Error(err))
			componentstatus.ReportStatus(host, componentstatus.NewRecoverableErrorEvent(fmt.Errorf("cannot listen on `endpoint` %q: %w", endpoint, err)))
		},
		Open: func(address net.Addr, late bool) {
			c.address = address.String()
			c.set.Logger.Info("The console is open", zap.String(paramURL, c.url()))
			if late {
				componentstatus.ReportStatus(host, componentstatus.NewEvent(componentstatus.StatusOK))
			}
		},
	}
	if err := c.server.Start(ctx); err != nil {
		return fmt.Errorf("cannot listen on `endpoint` %q: %w", endpoint, err)
	}
	c.sample()
	run, stop := context.WithCancel(context.Background())
	c.stop = stop
	c.serving.Go(func() { c.run(run) })
	return nil
}

// turnAway answers what does not get as far as the guard: requests without credentials, and bodies that do not
// decompress.
func (c *console) turnAway(w http.ResponseWriter, _ *http.Request, message string, status int) {
	protect(w.Header())
	code := codeBadRequest
	if status == http.StatusUnauthorized {
		code = "unauthorized"
		w.Header().Set("WWW-Authenticate", c.challenge())
	}
	fail(w, status, code, redactor.Text(message))
}

// challenge is what makes a browser ask for a name and a password where these are of use.
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

// Shutdown answers what has been asked, within ctx, and closes.
func (c *console) Shutdown(ctx context.Context) error {
	c.stop()
	err := c.server.Shutdown(ctx)
	c.serving.Wait()
	return err
}

// NotifyConfigSnapshot learns the effective configuration. The Collector has put the defaults in by then, and taken out
// what it knows to be secret.
func (c *console) NotifyConfigSnapshot(_ context.Context, snapshot extensioncapabilities.ConfigSnapshot) error {
	conf := snapshot.Effective()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conf = conf
	return nil
}

// ComponentStatusChanged implements [componentstatus.Watcher].
func (c *console) ComponentStatusChanged(of *componentstatus.InstanceID, event *componentstatus.Event) {
	id := nodeID(of.Kind(), of.ComponentID())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.statuses[id] == nil {
		c.statuses[id] = map[componentstatus.InstanceID]*componentstatus.Event{}
	}
	c.statuses[id][*of] = event
}

// RegisterInspection implements [inspect.Registry].
func (c *console) RegisterInspection(s inspect.Source) (unregister func()) {
	entry := &source{Source: s, since: c.now(), instance: 1}
	c.mu.Lock()
	defer c.mu.Unlock()
	for slices.ContainsFunc(c.sources, func(other *source) bool {
		same := other.node() == entry.node() && other.Signal == entry.Signal
		if same {
			other.several.Store(true)
			entry.several.Store(true)
		}
		return same && other.instance == entry.instance
	}) {
		entry.instance++
	}
	// Whoever goes through the sources now has the old list.
	c.sources = append(slices.Clone(c.sources), entry)
	slices.SortStableFunc(c.sources, func(a, b *source) int {
		return cmp.Or(cmp.Compare(a.node(), b.node()), cmp.Compare(a.Signal, b.Signal), cmp.Compare(a.Pipeline, b.Pipeline), cmp.Compare(a.instance, b.instance))
	})
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.sources = slices.DeleteFunc(slices.Clone(c.sources), func(s *source) bool { return s == entry })
	}
}

// all returns the sources, to be read only.
func (c *console) all() []*source {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sources
}
