// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/racetest"
)

const divided = 30 // targets

// A divider is a target allocator that divides the targets of a fleet among members. It is a real server, and closes
// connections after each response: a synctest bubble in which a goroutine waits for the network does not advance.
type divider struct {
	*httptest.Server

	mu     sync.Mutex
	owners [divided]string
	mute   bool // does not list the members
}

func newDivider(t *testing.T) *divider {
	t.Helper()
	d := &divider{}
	d.Server = httptest.NewUnstartedServer(http.HandlerFunc(d.answer))
	d.Config.SetKeepAlivesEnabled(false)
	d.Start()
	t.Cleanup(d.Close)
	return d
}

func (d *divider) answer(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path == "/scrape_configs" {
		reply(w, map[string]map[string]string{"fleet": {
			"job_name": "fleet", "scrape_interval": fleetInterval.String(), "scrape_timeout": fleetTimeout.String(),
		}})
		return
	}
	if member := r.URL.Query().Get("collector_id"); member != "" {
		reply(w, d.of(member))
		return
	}
	type share struct {
		Targets []addresses `json:"targets"`
	}
	fleets := r.URL.Path == "/jobs/fleet/targets"
	if !fleets && d.mute {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	all := map[string]share{}
	for _, member := range d.owners {
		if all[member] = (share{[]addresses{}}); fleets {
			all[member] = share{d.of(member)}
		}
	}
	reply(w, all)
}

func reply(w http.ResponseWriter, answer any) {
	text, err := json.Marshal(answer)
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(text)
}

type addresses struct {
	Targets []string `json:"targets"`
}

func (d *divider) of(member string) []addresses {
	own := addresses{Targets: []string{}}
	for i, owner := range d.owners {
		if owner == member {
			own.Targets = append(own.Targets, fleetAddress(i))
		}
	}
	return []addresses{own}
}

// divide assigns each target to one of the members.
func (d *divider) divide(members ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, owner := range d.owners {
		if own := []string{"a", "b", "c"}[i%3]; slices.Contains(members, own) {
			d.owners[i] = own
		} else if !slices.Contains(members, owner) {
			d.owners[i] = members[i/3%len(members)]
		}
	}
}

// A ledger has the times of all scrapes, whichever member made them.
type ledger struct {
	mu     sync.Mutex
	times  map[string][]time.Time
	called []point // stale markers
}

func (*ledger) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (l *ledger) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range points([]pmetric.Metrics{md}) {
		switch {
		case p.stale:
			l.called = append(l.called, p)
		case p.name == "up":
			l.times[p.instance] = append(l.times[p.instance], p.at)
		}
	}
	return nil
}

// longestDeath is how long the targets of a dead member belong to nobody: until the allocator decides, all members
// follow, and many targets are scraped at once.
const longestDeath = 5*time.Second + 3*time.Second/2 + time.Second

// A response of the allocator does not count for targets that disappear while it is requested: it may be from before.
func TestMovesAreAskedAboutAfterTheTargetHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m moves
		here := map[uint64]struct{}{1: {}, 2: {}}
		ask := func() map[uint64]struct{} {
			said := maps.Clone(here)
			time.Sleep(time.Second) // until the response is here
			return said
		}
		var asking sync.WaitGroup
		first := time.Now()
		asking.Go(func() { assert.True(t, m.has(1, first, ask)) })
		time.Sleep(time.Second / 2)
		delete(here, 2) // after the clone
		second := time.Now()
		asking.Wait()
		assert.False(t, m.has(2, second, ask))
	})
}

// Nor does an old response count: of targets that left together, the last end up to an interval after the first.
func TestMovesAreAskedAboutAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m moves
		here, questions := map[uint64]struct{}{1: {}}, 0
		ask := func() map[uint64]struct{} {
			questions++
			return maps.Clone(here)
		}
		left := time.Now()
		time.Sleep(time.Minute)
		assert.True(t, m.has(1, left, ask))
		assert.False(t, m.has(2, left, ask))
		assert.Equal(t, 1, questions)
		time.Sleep(time.Minute)
		here[2] = struct{}{}
		delete(here, 1)
		assert.True(t, m.has(2, left, ask))
		assert.False(t, m.has(1, left, ask))
		assert.Equal(t, 2, questions)
	})
}

// Three members divide targets, and one of them dies and comes back repeatedly, at any time. The targets of the others
// are scraped at every interval. Those of the dead member are scraped as soon as others have them, and then regularly.
// Nothing else is scraped twice, and nothing is marked stale.
func TestTargetsMoveInOneMoment(t *testing.T) {
	d := newDivider(t)
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(23, 7))
		f := &fleet{latency: fleetLatency}
		l := &ledger{times: map[string][]time.Time{}}
		start := func(name string) *rig {
			r := prepare(t, configure(t, fmt.Sprintf("target_allocator: {endpoint: %q, interval: 1m, disable_keep_alives: true, collector_id: %s, http_sd_config: {refresh_interval: 1s}}\n", d.URL, name)),
				withConsumer(l), withoutTraces)
			r.dial = f.dial
			require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
			return r
		}
		members := map[string]*rig{}
		d.divide("a", "b", "c")
		for _, name := range []string{"a", "b", "c"} {
			members[name] = start(name)
			time.Sleep(time.Duration(random.Int64N(int64(time.Second))))
		}
		// The allocator decides at any time, except while members ask one after the other.
		decide := func(among ...string) {
			time.Sleep(time.Duration(random.Int64N(int64(5 * time.Second))))
			if into := time.Since(time.Now().Truncate(time.Second)); into < 60*time.Millisecond {
				time.Sleep(60*time.Millisecond - into)
			}
			d.divide(among...)
		}
		time.Sleep(30 * time.Second)
		var deaths []time.Time
		for range racetest.Size(40, 10) {
			time.Sleep(time.Duration(random.Int64N(int64(fleetInterval))))
			require.NoError(t, members["b"].Shutdown(t.Context()))
			deaths = append(deaths, time.Now())
			decide("a", "c")
			time.Sleep(35 * time.Second)
			if random.IntN(2) == 0 { // its pod is known before it starts
				decide("a", "b", "c")
				members["b"] = start("b")
			} else {
				members["b"] = start("b")
				decide("a", "b", "c")
			}
			time.Sleep(35 * time.Second)
		}
		for _, r := range members {
			for _, j := range r.allJobs() {
				assert.Equal(t, len(j.all()), j.tools.page.Stats().Targets, "what is known of targets that have moved was kept")
			}
			require.NoError(t, r.Shutdown(t.Context()))
		}
		synctest.Wait()
		require.Len(t, l.times, divided)
		assert.Empty(t, l.called)
		// isOrphan reports whether a scrape of a target was soon after the death of its owner.
		isOrphan := func(target int, at time.Time) bool {
			return target%3 == 1 && slices.ContainsFunc(deaths, func(death time.Time) bool {
				return at.After(death) && at.Sub(death) < longestDeath+fleetInterval
			})
		}
		scrapes, late, more := 0, 0, 0
		for i := range divided {
			times := l.times[fleetAddress(i)]
			slices.SortFunc(times, time.Time.Compare)
			scrapes += len(times)
			for k := 1; k < len(times); k++ {
				switch gap := times[k].Sub(times[k-1]); {
				case gap < fleetInterval/2:
					more++
					assert.True(t, isOrphan(i, times[k]), "target %d is scraped by two at %s and %s later", i, times[k-1], gap)
				case gap <= fleetInterval+fleetInterval/100:
				case gap < fleetInterval+longestDeath:
					late++
					assert.True(t, isOrphan(i, times[k]), "target %d has always been at one member, and was left out", i)
				default:
					assert.Fail(t, "left out", "target %d after %s for %s", i, times[k-1], gap)
				}
			}
		}
		t.Logf("%d scrapes; in %d deaths of a member with %d targets %d were late, and %d more were made", scrapes, len(deaths), divided/3, late, more)
		assert.Less(t, late, len(deaths)*divided/3)
		assert.Positive(t, late)
		assert.Less(t, more, len(deaths)*divided/3)
	})
}

// Members that ask for targets once a minute ask immediately when one of them is gone.
func TestMembersAskOutOfTurn(t *testing.T) {
	d := newDivider(t)
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{latency: fleetLatency}
		l := &ledger{times: map[string][]time.Time{}}
		start := func(name string) *rig {
			r := prepare(t, configure(t, fmt.Sprintf("target_allocator: {endpoint: %q, interval: 1m, disable_keep_alives: true, collector_id: %s, http_sd_config: {refresh_interval: 1m}}\n", d.URL, name)),
				withConsumer(l), withoutTraces)
			r.dial = f.dial
			require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
			return r
		}
		d.divide("a", "b", "c")
		a, b, c := start("a"), start("b"), start("c")
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(82*time.Second + 700*time.Millisecond)))
		require.NoError(t, b.Shutdown(t.Context()))
		died := time.Now()
		d.divide("a", "c")
		time.Sleep(2 * time.Minute)
		require.NoError(t, a.Shutdown(t.Context()))
		require.NoError(t, c.Shutdown(t.Context()))
		assert.Empty(t, l.called)
		for i := range divided {
			times := l.times[fleetAddress(i)]
			slices.SortFunc(times, time.Time.Compare)
			for k := 1; k < len(times); k++ {
				most := fleetInterval + fleetInterval/100
				if i%3 == 1 && times[k].After(died) && times[k-1].Before(died) {
					most += 3500 * time.Millisecond // they check every 2 seconds, need half of one to agree, and start within one
				}
				assert.LessOrEqual(t, times[k].Sub(times[k-1]), most, "target %d at %s after the death", i, times[k].Sub(died))
			}
			assert.Less(t, times[0].Sub(died), time.Duration(0))
			assert.Greater(t, times[len(times)-1].Sub(died), 100*time.Second)
		}
	})
}

// A target that moves to another member and back, because that one dies, is not marked stale by its owner, which has
// not been told of the return yet.
func TestTargetThatIsGivenBackBetweenRounds(t *testing.T) {
	d := newDivider(t)
	d.mute = true // otherwise they would ask out of turn
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{latency: fleetLatency}
		l := &ledger{times: map[string][]time.Time{}}
		start := func(name string) *rig {
			r := prepare(t, configure(t, fmt.Sprintf("target_allocator: {endpoint: %q, interval: 1m, disable_keep_alives: true, collector_id: %s, http_sd_config: {refresh_interval: 1m}}\n", d.URL, name)),
				withConsumer(l), withoutTraces)
			r.dial = f.dial
			require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
			return r
		}
		d.divide("a")
		a := start("a")
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(90 * time.Second)))
		// In the next round it learns that a third of its targets are b's, and in the round after that they are its own
		// again.
		d.divide("a", "b")
		b := start("b")
		time.Sleep(40 * time.Second)
		require.NoError(t, b.Shutdown(t.Context()))
		d.divide("a")
		time.Sleep(2 * time.Minute)
		l.mu.Lock()
		assert.Empty(t, l.called)
		for i := range divided {
			times := l.times[fleetAddress(i)]
			assert.Less(t, time.Since(times[len(times)-1]), fleetInterval+time.Second, "target %d is scraped", i)
		}
		l.mu.Unlock()
		require.NoError(t, a.Shutdown(t.Context()))
		assert.Empty(t, l.called, "nor at the end")
	})
}
