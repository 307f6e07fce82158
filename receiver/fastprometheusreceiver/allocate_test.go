// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
)

// An office is a target allocator with changeable jobs and targets.
type office struct {
	*httptest.Server

	mu      sync.Mutex
	jobs    map[string]any
	targets map[string][]string // by job, for the collector that asks
	theirs  map[string][]string // by job, of another collector
	askers  map[string]bool
	broken  bool
	// mute hides the targets of other collectors; questions counts the requests for them.
	mute      bool
	questions int
	hangs     chan struct{} // closed at the first such request, which gets no response; nil if there is one
}

func newOffice(t *testing.T) *office {
	t.Helper()
	o := &office{jobs: map[string]any{}, targets: map[string][]string{}, theirs: map[string][]string{}, askers: map[string]bool{}}
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.broken {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/scrape_configs" {
			_ = json.NewEncoder(w).Encode(o.jobs)
			return
		}
		path := strings.TrimSuffix(strings.TrimPrefix(r.URL.EscapedPath(), "/jobs/"), "/targets")
		job, _ := url.QueryUnescape(path)
		listed := func(targets []string) []any {
			return []any{map[string]any{"targets": append([]string{}, targets...), "labels": map[string]string{"from": "office"}}}
		}
		if r.URL.RawQuery == "" {
			if o.jobs[job] != nil { // otherwise the request is for all collectors
				o.questions++
				if o.hangs != nil {
					close(o.hangs)
					o.mu.Unlock()
					<-r.Context().Done()
					o.mu.Lock()
					return
				}
			}
			if o.mute {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			_ = json.NewEncoder(w).Encode(map[string]any{
				"collector-1": map[string]any{"_link": "x", "targets": listed(o.targets[job])},
				"collector-2": map[string]any{"_link": "x", "targets": listed(o.theirs[job])},
				"collector-3": map[string]any{"_link": "x", "targets": nil},
			})
			return
		}
		o.askers[r.URL.Query().Get("collector_id")] = true
		_ = json.NewEncoder(w).Encode(listed(o.targets[job]))
	}))
	t.Cleanup(o.Close)
	return o
}

// assign adds a job, or replaces it.
func (o *office) assign(name, extra string, targets ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	job := map[string]any{"job_name": name, "scrape_interval": "100ms", "scrape_timeout": "100ms"}
	if extra != "" {
		job[extra] = true
	}
	o.jobs[name], o.targets[name] = job, targets
}

// give moves targets of a job to another collector.
func (o *office) give(name string, mute bool, targets ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.theirs[name], o.mute, o.targets[name] = targets, mute, slices.DeleteFunc(slices.Clone(o.targets[name]), func(target string) bool {
		return slices.Contains(targets, target)
	})
}

func (o *office) withdraw(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.jobs, name)
}

func (o *office) setBroken(broken bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.broken = broken
}

const allocated = `
target_allocator:
  endpoint: %s
  interval: 20ms
  collector_id: collector-1
  http_sd_config: {refresh_interval: 50ms}
`

func TestTargetAllocator(t *testing.T) {
	a, b := newEndpoint(t, text), newEndpoint(t, text)
	o := newOffice(t)
	const monitor = "serviceMonitor/ns/my app/0"
	o.assign(monitor, "", a.address())
	o.setBroken(true)
	r := run(t, fmt.Sprintf(allocated, o.URL))
	require.Eventually(t, func() bool { return r.allocation.client.Failures() > 0 }, patience, glance)
	o.setBroken(false)
	got := r.await(t, of(a, is("requests", 42)))
	assert.Equal(t, monitor, got.job)
	o.mu.Lock()
	assert.Equal(t, map[string]bool{"collector-1": true}, o.askers)
	o.mu.Unlock()

	// A new job does not affect the others: targets, plans and connections are kept.
	before, target := r.toolsOf(monitor), r.onlyTarget(t)
	o.assign("second", "", b.address())
	r.await(t, of(b, is("requests", 42)))
	after := r.toolsOf(monitor)
	assert.Same(t, before.client, after.client)
	assert.Same(t, before.page, after.page)
	r.mu.Lock()
	assert.Contains(t, r.jobs[monitor].all(), target)
	r.mu.Unlock()
	assert.Empty(t, r.some(func(p point) bool { return p.stale }))

	// A failing allocator changes nothing. A job that is removed ends.
	o.setBroken(true)
	failures := r.allocation.client.Failures()
	require.Eventually(t, func() bool { return r.allocation.client.Failures() > failures }, patience, glance)
	r.sink.Reset()
	r.await(t, of(a, is("requests", 42)))
	o.withdraw(monitor)
	o.setBroken(false)
	r.await(t, of(a, stale("requests")))
	assert.Empty(t, r.some(of(b, stale("requests"))))
}

// The configuration's own jobs stay, and allocated jobs cannot have the same names.
func TestTargetAllocatorBesidesOwnJobs(t *testing.T) {
	a, b := newEndpoint(t, text), newEndpoint(t, text)
	file := filepath.Join(t.TempDir(), "jobs.yaml")
	fill(t, file, jobFile("own", a.address(), ""))
	o := newOffice(t)
	o.assign("theirs", "", b.address())
	r := run(t, fmt.Sprintf(allocated+reloading, o.URL, file))
	r.await(t, of(a, is("requests", 42)))
	r.await(t, of(b, is("requests", 42)))

	o.assign("own", "", b.address())
	require.Eventually(t, func() bool { return r.counters.rejected.Load() > 0 }, patience, glance)
	_, _, rejected := view{r.scraper}.Config()
	assert.True(t, rejected)
	o.withdraw("own")
	o.assign("theirs", "honor_labels", b.address())
	require.Eventually(t, func() bool { return r.toolsOf("theirs").cfg.HonorLabels }, patience, glance)

	// A file that changes does not affect the allocator's jobs, even if it is invalid.
	applied := r.counters.applied.Load()
	fill(t, file, "not: [yaml")
	require.Eventually(t, func() bool { return r.log.FilterMessageSnippet("Keeping the old configuration").Len() == 1 }, patience, glance)
	o.assign("third", "", b.address())
	require.Eventually(t, func() bool { return r.toolsOf("third") != nil }, patience, glance)
	assert.NotNil(t, r.toolsOf("own"))
	fill(t, file, jobFile("own", a.address(), "  honor_labels: true\n"))
	require.Eventually(t, func() bool { return r.toolsOf("own").cfg.HonorLabels }, patience, glance)
	assert.Greater(t, r.counters.applied.Load(), applied)
	for _, name := range []string{"theirs", "third"} {
		assert.NotNil(t, r.toolsOf(name), name)
		assert.EqualValues(t, r.limits.body, r.toolsOf(name).cfg.BodySizeLimit)
		assert.EqualValues(t, "PrometheusText0.0.4", r.toolsOf(name).cfg.ScrapeFallbackProtocol)
	}
	metric, err := r.telemetry.GetMetric("otelcol_receiver_fastprometheus_allocator_failures")
	require.NoError(t, err)
	assert.InDelta(t, float64(r.allocation.client.Failures()), total(t, metric), 2)
}

// An allocator that never responds does not keep the receiver from starting or stopping.
func TestTargetAllocatorThatHangs(t *testing.T) {
	a := newEndpoint(t, text)
	release := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer hanging.Close()
	defer close(release)
	r := run(t, fmt.Sprintf(allocated, hanging.URL)+fmt.Sprintf(static, a.address()))
	r.await(t, is("requests", 42))
	require.NoError(t, r.Shutdown(t.Context()))
}

// set changes a setting of a job.
func (o *office) set(name, key string, value any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	job := maps.Clone(o.jobs[name].(map[string]any))
	job[key] = value
	o.jobs[name] = job
}

// A job whose files are missing fails alone, even if it is there from the beginning, and works once they are there.
func TestAllocatorsBrokenJobFailsAlone(t *testing.T) {
	a, b := newEndpoint(t, text), newEndpoint(t, text)
	file := filepath.Join(t.TempDir(), "missing")
	for key, value := range map[string]any{
		"authorization":   map[string]any{"type": "Bearer", "credentials_file": file},
		"tls_config":      map[string]any{"ca_file": file},
		"relabel_configs": []any{map[string]any{"regex": "("}},
	} {
		t.Run(key, func(t *testing.T) {
			o := newOffice(t)
			o.assign("good", "", a.address())
			o.assign("bad", "", b.address())
			o.set("bad", key, value)
			r := run(t, fmt.Sprintf(allocated, o.URL))
			r.await(t, of(a, is("requests", 42)))
			require.Eventually(t, func() bool { return r.allocation.client.Failures() > 2 }, patience, glance)
			require.Nil(t, r.toolsOf("bad"))
			told := r.log.FilterMessageSnippet("Cannot use a job").All()
			require.Len(t, told, 1)
			assert.Equal(t, "bad", told[0].ContextMap()["job"])
			assert.EqualValues(t, 1, r.counters.rejected.Load(), "offered again, it is no other change")

			// Other jobs change, start and end as if it were not there.
			o.assign("third", "", a.address())
			require.Eventually(t, func() bool { return r.toolsOf("third") != nil }, patience, glance)
			o.withdraw("third")
			o.assign("bad", "", b.address())
			r.await(t, of(b, is("requests", 42)))
			require.Eventually(t, func() bool { return r.log.FilterMessageSnippet("valid again").Len() == 1 }, patience, glance)

			// A job that was valid before goes on unchanged.
			before := r.toolsOf("bad")
			o.set("bad", key, value)
			require.Eventually(t, func() bool { return r.log.FilterMessageSnippet("Cannot use a job").Len() == 2 }, patience, glance)
			assert.Same(t, before.client, r.toolsOf("bad").client)
			r.sink.Reset()
			r.await(t, of(b, is("requests", 42)))
			assert.Empty(t, r.some(of(b, stale("requests"))), "the third has gone")
		})
	}
}

// A job that goes on unchanged still writes its failures to the current log file.
func TestAllocatorsBrokenJobKeepsItsFailureLog(t *testing.T) {
	a := newEndpoint(t, text)
	a.handle(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	log := filepath.Join(t.TempDir(), "failures.log")
	o := newOffice(t)
	o.assign("job", "", a.address())
	r := run(t, fmt.Sprintf("config: {global: {scrape_failure_log_file: %q}}", log)+fmt.Sprintf(allocated, o.URL))
	logged := func() bool {
		content, err := os.ReadFile(log)
		return err == nil && bytes.Contains(content, []byte("502 Bad Gateway"))
	}
	require.Eventually(t, logged, patience, glance)

	o.set("job", "relabel_configs", []any{map[string]any{"regex": "("}})
	require.Eventually(t, func() bool { return r.log.FilterMessageSnippet("Cannot use a job").Len() == 1 }, patience, glance)
	require.NoError(t, os.Remove(log))
	o.assign("another", "", "127.0.0.1:1") // any change reopens the file
	require.Eventually(t, func() bool { return r.toolsOf("another") != nil }, patience, glance)
	require.Eventually(t, logged, patience, glance)
}

// A file that a job names may appear later.
func TestAllocatorsJobIsTriedAgain(t *testing.T) {
	a := newEndpoint(t, text)
	file := filepath.Join(t.TempDir(), "token")
	o := newOffice(t)
	o.assign("late", "", a.address())
	o.set("late", "authorization", map[string]any{"credentials_file": file})
	r := run(t, fmt.Sprintf(allocated, o.URL))
	require.Eventually(t, func() bool { return r.allocation.client.Failures() > 1 }, patience, glance)
	fill(t, file, "secret")
	r.await(t, of(a, is("requests", 42)))
}

// An allocator can neither have a file written, nor have one read that it may not name.
func TestAllocatorAndFiles(t *testing.T) {
	a := newEndpoint(t, text)
	written := filepath.Join(t.TempDir(), "written")
	read := filepath.Join(t.TempDir(), "read")
	fill(t, read, "secret")
	o := newOffice(t)
	o.assign("writes", "", "127.0.0.1:1")
	o.set("writes", "scrape_failure_log_file", written)
	o.assign("reads", "", a.address())
	o.set("reads", "authorization", map[string]any{"credentials_file": read})
	r := run(t, fmt.Sprintf(allocated, o.URL)+"  allowed_files: [/var/run/secrets/*]\n")
	require.Eventually(t, func() bool { return r.census()[stateFailing] == 1 }, patience, glance)
	require.NoFileExists(t, written)
	require.Nil(t, r.toolsOf("reads"))
	require.Zero(t, a.served.Load())
}

// Jobs that start and end with every response leak nothing.
func TestAllocatorThatChangesItsMind(t *testing.T) {
	a := newEndpoint(t, text)
	o := newOffice(t)
	r := run(t, fmt.Sprintf(allocated, o.URL))
	for i := range 30 {
		name := fmt.Sprint("job", i%2)
		o.assign(name, "", a.address())
		require.Eventually(t, func() bool { return r.toolsOf(name) != nil }, patience, glance)
		o.withdraw(name)
	}
	o.assign("last", "", a.address())
	require.Eventually(t, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.jobs) == 1 && r.jobs["last"] != nil
	}, patience, glance)
	require.Zero(t, r.allocation.client.Failures())
}

// Series of a target go on without a staleness marker if the allocator has given it to another collector, and get one
// otherwise.
func TestTargetsThatMoveAreNotStale(t *testing.T) {
	f := func(name string, mute, stays bool) {
		t.Run(name, func(t *testing.T) {
			a, b, c := newEndpoint(t, text), newEndpoint(t, text), newEndpoint(t, text)
			o := newOffice(t)
			o.assign("job", "", a.address(), b.address(), c.address())
			r := run(t, fmt.Sprintf(allocated, o.URL))
			for _, target := range []*endpoint{a, b, c} {
				r.await(t, of(target, is("requests", 42)))
			}
			o.give("job", mute, a.address(), b.address())
			gone := func() bool {
				r.mu.Lock()
				defer r.mu.Unlock()
				return len(r.jobs["job"].all()) == 1
			}
			require.Eventually(t, gone, patience, glance)
			if !stays {
				r.await(t, of(a, stale("requests")))
				r.await(t, of(b, stale("requests")))
			}

			// A target that comes back is scraped again. One that then has no collector is stale.
			back := time.Now()
			o.give("job", false)
			o.assign("job", "", a.address(), c.address())
			r.await(t, of(a, func(p point) bool { return p.name == "requests" && p.at.After(back) }))
			o.mu.Lock()
			assert.Equal(t, 1, o.questions, "it is asked once about all that left together")
			o.mu.Unlock()
			for _, target := range []*endpoint{a, b} {
				assert.Equal(t, stays, len(r.some(of(target, stale("requests")))) == 0)
			}
			assert.Empty(t, r.some(of(c, stale("requests"))))
			r.sink.Reset()
			o.assign("job", "", c.address())
			r.await(t, of(a, stale("requests")))
		})
	}
	f("moved", false, true)
	f("the allocator does not say", true, false)
}

// A shutdown during the request sends no staleness marker: others may have the target.
func TestQuestionThatAShutdownCutsOff(t *testing.T) {
	a, b := newEndpoint(t, text), newEndpoint(t, text)
	o := newOffice(t)
	o.assign("job", "", a.address(), b.address())
	r := prepare(t, configure(t, fmt.Sprintf(allocated, o.URL)))
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	r.await(t, of(a, is("requests", 42)))
	asked := make(chan struct{})
	o.mu.Lock()
	o.hangs = asked
	o.mu.Unlock()
	o.give("job", false, a.address())
	<-asked
	require.NoError(t, r.Shutdown(t.Context()))
	assert.Empty(t, r.some(func(p point) bool { return p.stale }))
}

// A target that moves to another member keeps its offset in the interval, whatever hosts the members are on. Replicas
// have other offsets.
func TestMembersHaveTheSamePlaces(t *testing.T) {
	const interval = 10 * time.Second
	addresses := []string{"127.0.0.1:1", "127.0.0.2:1", "127.0.0.3:1", "127.0.0.4:1", "127.0.0.5:1", "127.0.0.6:1"}
	places := func(host, text string) map[uint64]time.Duration {
		r := prepare(t, configure(t, text))
		r.host = host
		require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
		defer func() { require.NoError(t, r.Shutdown(t.Context())) }()
		all := map[uint64]time.Duration{}
		require.Eventually(t, func() bool {
			for _, j := range r.allJobs() {
				for hash, target := range j.now().targets {
					next, _ := r.clock.Cancel(target.task)
					all[hash] = time.Duration(next.UnixNano()) % interval
				}
			}
			return len(all) > 0
		}, patience, glance)
		return all
	}
	o, idle := newOffice(t), newOffice(t)
	o.assign("job", "", addresses...)
	o.set("job", "scrape_interval", interval.String())
	own := fmt.Sprintf(`
config:
  scrape_configs: [{job_name: test, scrape_interval: %s, static_configs: [{targets: ["%s"]}]}]
`, interval, strings.Join(addresses, `", "`))
	for name, text := range map[string]string{
		"allocated": fmt.Sprintf(allocated, o.URL),
		"divided":   own + "sharding: {members: 2, index: 1}\n",
	} {
		assert.Equal(t, places("a", text), places("b", text), name)
	}
	for name, text := range map[string]string{
		"alone":                   own,
		"two members of a target": own + "sharding: {members: 3, index: 1, replication: 2}\n",
		"own beside allocated":    own + fmt.Sprintf(allocated, idle.URL),
	} {
		assert.NotEqual(t, places("a", text), places("b", text), name)
	}
}
