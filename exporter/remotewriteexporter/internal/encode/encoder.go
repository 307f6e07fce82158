// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"fmt"
	"hash/maphash"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/delta"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/exemplars"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/loss"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/names"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/rules"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/size"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/store"
)

// Encoder holds the caches and the columns.
type Encoder struct {
	cfg    Config
	losses *loss.Counter
	// Limits are those of requests.
	Limits *size.Limits

	names     *names.Translator
	rules     *rules.Rules // nil if there are none
	seed      maphash.Seed
	hashMask  uint64 // all ones; tests make everything collide
	symbols   *store.Symbols
	deltas    *delta.Sums[deltaKey]
	sent      exemplars.Sent // exemplars
	counters  counters
	scratches chan *scratch
	flushers  chan *flusher
	bodies    block.Memory

	// mu is held for reading by whoever uses entries of the caches or the columns, and for writing by Expire, which
	// removes entries, and by SetShards, which changes columns.
	mu sync.RWMutex
	// tableMu guards looking up and adding entries; entries themselves do not change.
	tableMu    sync.Mutex
	tenants    map[string]*tenant
	listed     int // places of points in the tables
	wide       int // those of points of many attributes
	points     *store.Slab[point]
	series     *store.Slab[series]
	layouts    *store.Slab[layout]
	forms      *store.Slab[form]
	parts      *store.Slab[[]*series]
	values     map[int]*store.Slab[uint32] // of points, by how many a point has
	recent     recent                      // of values
	widths     map[int]*keys               // of values that are no attributes', by how many there are
	ruling     []names.Label               // scratch
	out        [2]outcome                  // of series that rules leave none of
	hashed     []byte                      // scratch
	resources  int
	familyIDs  uint64
	resourceID uint32
	sweeps     mark
	removals   uint64        // sweeps that took points out of the tables; changes under mu
	overflow   atomic.Int64  // places of what was translated for want of room since the last Expire
	generation atomic.Uint32 // counts Expires
	endings    atomic.Int64  // about how many points have ended since the last Expire
	allEndings atomic.Uint32 // counts points that have ended, ever
	// mostEndings is how many bring one on: one for each endedPart points that have not, and fewEndings.
	mostEndings atomic.Int64
}

const (
	fewEndings = 1 << 13
	endedPart  = 3
)

// tenant is a namespace of its own: its series, and its columns.
type tenant struct {
	name      string
	columns   []column
	families  map[uint64]*family
	points    store.Index
	series    store.Index
	resources map[uint64]*resource
	labelSets map[uint64]*resourceLabels
	schemas   map[string]*schema
	scopes    map[uint64]*scope
	metas     map[metaKey]*meta
	layouts   store.Index     // of series that rules have changed
	none      *resourceLabels // what contributes no labels
}

// New makes an Encoder. It holds no goroutines, so there is nothing to close.
func New(cfg Config, telemetry loss.Telemetry) (*Encoder, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("cannot make an encoder: %w", err)
	}
	e := &Encoder{
		cfg:       cfg,
		losses:    loss.New(telemetry),
		Limits:    size.New(cfg.MaxSamples, cfg.MaxRawBytes, cfg.MaxCompressedBytes),
		deltas:    delta.New[deltaKey](cfg.MaxDelta),
		seed:      maphash.MakeSeed(),
		hashMask:  math.MaxUint64,
		symbols:   store.NewSymbols(),
		flushers:  make(chan *flusher, runtime.GOMAXPROCS(0)),
		scratches: make(chan *scratch, runtime.GOMAXPROCS(0)),
		tenants:   map[string]*tenant{},
		points:    store.NewSlab[point](1),
		series:    store.NewSlab[series](1),
		layouts:   store.NewSlab[layout](1),
		forms:     store.NewSlab[form](1),
		parts:     store.NewSlab[[]*series](1),
		values:    map[int]*store.Slab[uint32]{},
		widths:    map[int]*keys{},
	}
	e.generation.Store(1)
	e.mostEndings.Store(fewEndings)
	var err error
	if e.names, err = names.New(cfg.Names); err != nil {
		return nil, fmt.Errorf("cannot make an encoder: %w", err)
	}
	if e.rules, err = rules.New(cfg.Rules, cfg.Names.Strategy.ShouldEscape()); err != nil {
		return nil, fmt.Errorf("cannot make an encoder: %w", err)
	}
	for i := range e.out {
		e.out[i].parts = e.parts.Add()
	}
	return e, nil
}

// tenant finds or makes a tenant; nil if there are too many.
func (e *Encoder) tenant(name string) *tenant {
	e.tableMu.Lock()
	defer e.tableMu.Unlock()
	if t := e.tenants[name]; t != nil {
		return t
	}
	if len(e.tenants) >= e.cfg.MaxTenants {
		return nil
	}
	t := &tenant{
		name:      name,
		columns:   newColumns(e.cfg.Shards),
		families:  map[uint64]*family{},
		resources: map[uint64]*resource{},
		labelSets: map[uint64]*resourceLabels{},
		schemas:   map[string]*schema{},
		scopes:    map[uint64]*scope{},
		metas:     map[metaKey]*meta{},
	}
	t.none = &resourceLabels{schema: &schema{}}
	e.tenants[name] = t
	return t
}

// SetShards changes the number of columns, and keeps all that is known of series. What was added has to be flushed
// before.
func (e *Encoder) SetShards(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cfg.Shards = n
	for len(e.scratches) > 0 { // theirs are as many as there were
		<-e.scratches
	}
	for _, t := range e.tenants {
		t.columns = newColumns(n)
	}
}
