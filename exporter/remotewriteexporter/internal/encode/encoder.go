// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/column"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/delta"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/exemplars"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/loss"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/names"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/request"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/rules"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/size"
)

// Encoder has the known series, and the columns.
type Encoder struct {
	cfg    Config
	losses *loss.Counter
	// Limits are the limits of requests.
	Limits *size.Limits

	names     *names.Translator
	deltas    *delta.Sums[deltaKey]
	sent      exemplars.Sent // exemplars sent
	counters  counters
	scratches chan *scratch
	writers   chan *request.Writer
	bodies    block.Memory

	// mu is held for reading by users of cache entries or columns, and for writing by Expire, which removes entries,
	// and SetShards, which changes columns.
	mu    sync.RWMutex
	cache *cache.Cache

	tenantsMu sync.Mutex
	tenants   map[string]*account
}

// account has the series and the columns of a tenant.
type account struct {
	name    string
	known   *cache.Tenant
	columns []column.Column
}

// New makes an Encoder. It starts no goroutines, so there is nothing to close.
func New(cfg Config, telemetry loss.Telemetry) (*Encoder, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("cannot make an encoder: %w", err)
	}
	translator, err := names.New(cfg.Names)
	if err != nil {
		return nil, fmt.Errorf("cannot make an encoder: %w", err)
	}
	ruled, err := rules.New(cfg.Rules, cfg.Names.Strategy.ShouldEscape())
	if err != nil {
		return nil, fmt.Errorf("cannot make an encoder: %w", err)
	}
	losses := loss.New(telemetry)
	return &Encoder{
		cfg:       cfg,
		losses:    losses,
		Limits:    size.New(cfg.MaxSamples, cfg.MaxRawBytes, cfg.MaxCompressedBytes),
		names:     translator,
		deltas:    delta.New[deltaKey](cfg.MaxDelta),
		scratches: make(chan *scratch, runtime.GOMAXPROCS(0)),
		writers:   make(chan *request.Writer, runtime.GOMAXPROCS(0)),
		cache:     cache.New(cfg.Cache, translator, ruled, losses),
		tenants:   map[string]*account{},
	}, nil
}

// account returns that of a tenant, which it makes if needed; nil if there are too many.
func (e *Encoder) account(name string) *account {
	e.tenantsMu.Lock()
	defer e.tenantsMu.Unlock()
	if t := e.tenants[name]; t != nil {
		return t
	}
	if len(e.tenants) >= e.cfg.MaxTenants {
		return nil
	}
	t := &account{name: name, known: cache.NewTenant(), columns: column.New(e.cfg.Shards)}
	e.tenants[name] = t
	return t
}

// find returns the account of a tenant; nil if there is none.
func (e *Encoder) find(name string) *account {
	e.tenantsMu.Lock()
	defer e.tenantsMu.Unlock()
	return e.tenants[name]
}

// Pending returns how many samples and about how many bytes, before compression, a shard of a tenant holds.
func (e *Encoder) Pending(shard int, tenant string) (samples, bytes int) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if t := e.find(tenant); t != nil {
		return t.columns[shard].Pending()
	}
	return 0, 0
}

// SetShards changes the number of columns, and keeps all known series. What was added must have been flushed.
func (e *Encoder) SetShards(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cfg.Shards = n
	for len(e.scratches) > 0 { // they have the old number of shards
		<-e.scratches
	}
	for _, t := range e.tenants {
		t.columns = column.New(n)
	}
}

// Expire begins a new generation. It forgets what was not seen for as many generations as the Config allows or, if
// there was no room for new entries, in this one and the last; and points that have ended. Call it about once a minute.
// It waits for every Add and Flush in progress, and blocks new ones.
func (e *Encoder) Expire() { e.expire(true) }

// IsCrowded reports whether so much memory is taken by what the cache has no room for that nothing more should be added
// before a Flush.
func (e *Encoder) IsCrowded() bool { return e.cache.IsCrowded() }

// IsFull reports whether nothing more should be added before a Cut: the cache is crowded, or has grown by as much as may
// be flushed at once.
func (e *Encoder) IsFull() bool { return e.cache.HasGrown() || e.cache.IsCrowded() }

// Relieve frees the memory of a crowded cache after a Flush.
func (e *Encoder) Relieve() {
	if e.IsCrowded() {
		e.expire(false)
	}
}

func (e *Encoder) expire(advance bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tenantsMu.Lock()
	defer e.tenantsMu.Unlock()
	x := e.cache.BeginExpiry()
	e.deltas.Expire(e.cfg.Cache.IdleGenerations, advance, func(k deltaKey) {
		x.KeepSeries(k.series)
		x.KeepLabels(k.labels)
	})
	x.Points()
	for name, t := range e.tenants {
		pending := t.keep(x)
		if !x.Tenant(t.known) && !pending {
			delete(e.tenants, name)
		}
	}
	evicted := x.End(func(yield func(*cache.Tenant) bool) {
		for _, t := range e.tenants {
			if !yield(t.known) {
				return
			}
		}
	}, advance)
	e.counters.evictions.Add(uint64(evicted))
}

// keep keeps what the columns refer to, and reports whether that is anything.
func (t *account) keep(x *cache.Expiry) (pending bool) {
	for i := range t.columns {
		pending = t.columns[i].Keep(x) || pending
	}
	return pending
}
