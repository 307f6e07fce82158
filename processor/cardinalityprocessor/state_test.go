// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"maps"
	rand "math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/gate"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/moment"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/series"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/store"
)

// memory is a storage extension, its client, and its host.
type memory struct {
	storage.Client
	component.StartFunc
	component.ShutdownFunc

	mu     sync.Mutex
	data   map[string][]byte
	broken error

	unreadable string // a key
	writes     int    // until the process is killed, unless 0
}

var memoryID = component.MustNewID("memory")

func newMemory() *memory { return &memory{Client: storage.NewNopClient(), data: map[string][]byte{}} }

func (m *memory) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{memoryID: m}
}

func (m *memory) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return m, m.broken
}

func (m *memory) Get(_ context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if key == m.unreadable {
		return nil, errors.New("bad sector")
	}
	return m.data[key], m.broken
}

func (m *memory) Set(_ context.Context, key string, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken == nil && m.writes != 1 {
		m.data[key] = value
	}
	if m.writes > 1 {
		m.writes--
	}
	return m.broken
}

// Batch counts as one write.
func (m *memory) Batch(_ context.Context, all ...*storage.Operation) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, op := range all {
		if m.broken == nil && m.writes != 1 {
			m.data[op.Key] = op.Value
		}
	}
	if m.writes > 1 {
		m.writes--
	}
	return m.broken
}

// keep gives the rig a storage after its start.
func (r *rig) keep(host *memory) {
	keyed, err := store.Open(r.t.Context(), host, r.Hash.Key)
	require.NoError(r.t, err)
	require.Equal(r.t, r.Hash.Key, keyed.Key)
	r.Snapshot.Storage = keyed
}

// killed returns the storage as it is after the process was killed.
func (m *memory) killed() *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	after := newMemory()
	maps.Copy(after.data, m.data)
	return after
}

func withStorage(change func(*Config)) func(*Config) {
	return func(c *Config) {
		change(c)
		c.Storage = &memoryID
	}
}

func TestPlacesOutliveARestart(t *testing.T) {
	config := withStorage(func(c *Config) {
		c.Memory.MaxSeries = 300
		c.Rules = []RuleConfig{
			{Name: "g", GroupBy: []string{"attribute:g"}, MaxSeries: 20},
			{Name: "l", LabelLimits: map[string]int{"l": 2}},
		}
	})
	p := func(i int) point {
		return point{name: "m", attrs: attrs{"i": int64(i), "g": strconv.Itoa(i % 10), "l": strconv.Itoa(i % 2)}}
	}
	var own, others []point
	for i := range 200 {
		own, others = append(own, p(i)), append(others, p(1000+i))
	}
	host := newMemory()
	before := newRig(t, config)
	require.NoError(t, before.begin(host))
	require.Len(t, before.send(own...), 200)
	require.Empty(t, before.send(others...))
	require.NoError(t, before.Snapshot.Save(t.Context()))

	after := newRig(t, config)
	require.NoError(t, after.begin(host.killed()))
	require.Equal(t, int64(200), after.gaugeNow("g"))
	require.Equal(t, int64(200), after.gaugeNow("total"))
	requireWithinLimits(t, after)
	require.Empty(t, after.send(others...), "who comes first after the restart gains nothing")
	require.Len(t, after.send(own...), 200)
	require.Empty(t, after.send(point{name: "m", attrs: attrs{"l": "new"}}), "label values are restored, too")
	require.Empty(t, after.send(others...))
	requireWithinLimits(t, after)
	after.idle()
	require.Len(t, after.send(others...), 200, "places expire as always")
}

// TestManyPlacesOutliveARestart: with so many places that shards were separated, which all begin as one after the
// restart.
func TestManyPlacesOutliveARestart(t *testing.T) {
	racetest.Sequential(t)
	const many = 5 * series.ShardEntries
	config, host := withStorage(func(*Config) {}), newMemory()
	before := newRig(t, config)
	require.NoError(t, before.begin(host))
	fill(before.Limiter, many)
	require.NoError(t, before.Snapshot.Save(t.Context()))

	after := newRig(t, config)
	require.NoError(t, after.begin(host.killed()))
	require.Equal(t, int64(many), after.gaugeNow("total"))
	requireWithinLimits(t, after)
	for i := range before.Limiter.Series.Shards {
		before.Limiter.Series.Shards[i].Each(func(fp uint64, _ uint32) {
			if !after.Limiter.Series.Has(fp) {
				t.Errorf("%x has lost its place", fp)
			}
		})
	}
	require.GreaterOrEqual(t, after.Limiter.Series.Separated(), 5)
}

// TestKilledWhileSaving: even if parts of a snapshot are older than others, limits hold, and series that had a place in
// both have it again.
func TestKilledWhileSaving(t *testing.T) {
	racetest.Sequential(t)
	random := rand.New(rand.NewPCG(1, 15))
	config := withStorage(func(c *Config) {
		c.Memory.MaxSeries = 300
		c.Rules = []RuleConfig{{
			Name: "r", GroupBy: []string{"attribute:g"}, MaxSeries: 40, LabelLimits: map[string]int{"l": 3},
			Adaptive: AdaptiveConfig{ShareBy: []string{"attribute:s"}},
		}}
	})
	p := func(i int) point {
		return point{name: "m", attrs: attrs{"i": int64(i), "g": int64(i % 5), "s": int64(i % 3), "l": strconv.Itoa(i % 7)}}
	}
	host := newMemory()
	for range 10 {
		r := newRig(t, config)
		require.NoError(t, r.begin(host))
		requireWithinLimits(t, r)
		require.NoError(t, r.Snapshot.Save(t.Context()))
		var stay []point
		for i := range 400 {
			if q := p(i); r.placed(q) {
				stay = append(stay, q)
			}
		}
		for range 1 + random.IntN(2*moment.IdleEpochs) {
			r.epochs(1)
			require.Len(t, r.send(stay...), len(stay))
			for range 50 {
				r.send(p(random.IntN(400)))
			}
		}
		host.writes = 2 + random.IntN(series.PartCount)
		_ = r.Snapshot.Save(t.Context())
		killed := host.killed()
		r.Snapshot.Storage, host.writes = nil, 0
		again := newRig(t, config)
		require.NoError(t, again.begin(killed))
		again.Snapshot.Storage = nil
		requireWithinLimits(t, again)
		for _, g := range again.Limiter.Groups.Groups {
			if g.Party == nil && g.Rule == "r" {
				require.LessOrEqual(t, g.Used, 40)
			}
		}
		require.Len(t, again.send(stay...), len(stay))
		host = killed
	}
}

// Rules that changed over a restart count existing series like rules that change at run time.
func TestRestartWithOtherRules(t *testing.T) {
	host := newMemory()
	before := newRig(t, withStorage(func(c *Config) { c.Rules = []RuleConfig{{Name: "old", MaxSeries: 5}} }))
	require.NoError(t, before.begin(host))
	for i := range 5 {
		before.send(aSeries(i))
	}
	require.NoError(t, before.shutdown(t.Context()))

	after := newRig(t, withStorage(func(c *Config) { c.Rules = []RuleConfig{{Name: "new", MaxSeries: 6}} }))
	require.NoError(t, after.begin(host))
	require.Equal(t, int64(5), after.gaugeNow("old"))
	require.Equal(t, []bool{true, false, true}, after.passes(aSeries(10), aSeries(11), aSeries(0)))
	for i := range 5 {
		require.Len(t, after.send(aSeries(i)), 1)
	}
	require.Zero(t, after.gaugeNow("old"))
	require.Equal(t, int64(6), after.gaugeNow("new"))
}

func TestDamagedSnapshotIsLeftOut(t *testing.T) {
	host := newMemory()
	config := withStorage(func(*Config) {})
	before := newRig(t, config)
	require.NoError(t, before.begin(host))
	for i := range 1000 {
		before.send(aSeries(i))
	}
	require.NoError(t, before.shutdown(t.Context()))
	host.data[gate.SnapshotKey(3)][40] ^= 1
	host.data[gate.SnapshotLimits] = []byte("x")
	after := newRig(t, config)
	require.NoError(t, after.begin(host))
	require.Less(t, after.gaugeNow("total"), int64(1000))
	require.Greater(t, after.gaugeNow("total"), int64(900))
	requireWithinLimits(t, after)
}

func TestStorageFaults(t *testing.T) {
	r := newRig(t, withStorage(func(*Config) {}))
	require.ErrorContains(t, r.begin(componenttest.NewNopHost()), "cannot use `storage` \"memory\"")
	host := newMemory()
	require.NoError(t, r.begin(host))
	host.broken = errors.New("disk full")
	r.snapshot(t.Context())
	r.snapshot(t.Context())
	require.Equal(t, int64(2), r.gauge("snapshot_failures", ""))
	require.ErrorContains(t, newRig(t, withStorage(func(*Config) {})).begin(host), "disk full")
	host.broken = nil
	r.snapshot(t.Context())
	require.Len(t, host.data, series.PartCount+3) // including the limits, the overflow and the key
}

func FuzzSnapshot(f *testing.F) {
	r := newRig(f, func(c *Config) {
		c.Rules = []RuleConfig{{Name: "g", GroupBy: []string{"attribute:i"}, MaxSeries: 20, LabelLimits: map[string]int{"x": 3}}}
	})
	for i := range 500 {
		p := aSeries(i)
		p.attrs["x"] = strconv.Itoa(i % 3)
		r.send(p)
	}
	body := func(part int) []byte {
		saved := r.Limiter.AppendPart(nil, part)
		return saved[len(store.Magic) : len(saved)-4]
	}
	f.Add(body(0), 0)
	f.Add(body(17), 17)
	f.Add([]byte{0, 1, 0, 0, 0, 0, 0}, 0)
	f.Fuzz(func(t *testing.T, saved []byte, part int) {
		l := series.New(1000, 1000)
		_ = l.RestorePart(part&(series.PartCount-1), seal(saved))
		for range (series.KeptValueEpochs + 2) * l.Shards() {
			l.Sweep()
		}
		require.Empty(t, l.Groups.Ids)
		require.Empty(t, l.Groups.Groups)
	})
}

func TestRulesFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules.yaml")
	write := func(content string) {
		require.NoError(t, os.WriteFile(file+".new", []byte(content), 0o600))
		require.NoError(t, os.Rename(file+".new", file))
	}
	rules := func(limit int) string {
		return strings.ReplaceAll("rules:\n- name: r\n  max_series: N\nexempt:\n- metric: free.*\n", "N", strconv.Itoa(limit))
	}
	r := newRig(t, func(c *Config) { c.RulesFile = file })
	require.ErrorContains(t, r.loadRules(), "cannot load `rules_file`")

	write(rules(2))
	require.NoError(t, r.loadRules())
	require.Equal(t, []bool{true, true, false, true}, r.passes(aSeries(1), aSeries(2), aSeries(3), point{name: "free.1"}))

	write(rules(3))
	r.pollRules()
	require.Equal(t, []bool{true, true, true, false}, r.passes(aSeries(1), aSeries(2), aSeries(3), aSeries(4)))
	generation := r.Rules.Policy.Generation
	r.pollRules()
	require.Equal(t, generation, r.Rules.Policy.Generation, "an unchanged file is not a change")

	write(rules(1)) // lower than the number of series: none loses its place
	r.pollRules()
	require.Equal(t, []bool{true, true, true, false}, r.passes(aSeries(1), aSeries(2), aSeries(3), aSeries(4)))

	for _, bad := range []string{"rules: {", "rules:\n- name: r\n  max_serie: 1\n", "rules:\n- max_series: 1\n", "memory: {max_series: 1}", "- 1"} {
		write(bad)
		failures := r.gauge("rules_failed", "")
		r.pollRules()
		r.pollRules()
		require.Equal(t, failures+1, r.gauge("rules_failed", ""), bad)
		require.Equal(t, int64(1), r.gauge("rules_bad", ""))
		require.Equal(t, []bool{true, true, true, false}, r.passes(aSeries(1), aSeries(2), aSeries(3), aSeries(4)), "the old ones stay")
	}
	require.NoError(t, os.Remove(file))
	r.pollRules()
	require.Equal(t, int64(1), r.gauge("rules_bad", ""))
	write(rules(4))
	r.pollRules()
	require.Zero(t, r.gauge("rules_bad", ""))
	require.Equal(t, []bool{true, false}, r.passes(aSeries(4), aSeries(5)))
	require.Equal(t, int64(3), r.gauge("rules_applied", ""))
	requireWithinLimits(t, r)
}

func TestRulesFileIsPolledWhileBatchesPass(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(file, []byte("rules: []"), 0o600))
	r := newRig(t, func(c *Config) {
		c.RulesFile = file
		c.RulesPollInterval = time.Second
		c.IdleTimeout = policy.MinIdleTimeout
	})
	require.NoError(t, r.start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, os.WriteFile(file, []byte("rules: [{name: r, max_series: 1}]"), 0o600))
	i := 0
	require.Eventually(t, func() bool {
		i++
		return len(r.send(aSeries(i))) == 0
	}, 30*time.Second, 10*time.Millisecond)
}

// FuzzRules: no file causes a panic, and accepted rules can be applied.
func FuzzRules(f *testing.F) {
	f.Add([]byte("rules: [{name: r, max_series: 1, group_by: [a], adaptive: {share_by: [b], priority: {by: c, order: [d]}}}]"))
	f.Add([]byte("defaults: {on_exceed: [drop]}\nexempt: [{metric: a*}]"))
	f.Fuzz(func(t *testing.T, content []byte) {
		cfg, err := parseRules(defaultConfig(), content)
		if err != nil {
			return
		}
		r := newRig(t, func(*Config) {})
		r.Apply(cfg)
		r.send(aSeries(1), aSeries(2))
		requireWithinLimits(t, r)
	})
}

// seal puts a body into the frame of a snapshot.
func seal(body []byte) []byte {
	b := append([]byte(store.Magic), body...)
	return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}
