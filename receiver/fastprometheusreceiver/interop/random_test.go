// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/featuregate"

	"github.com/godwit-otel/godwit/internal/racetest"
)

// The page at which the collector gets another configuration, and the last page.
const pageOfReload, lastRandomPage = 4, 11

// twins are the two variants of each pipeline: one may reuse memory, the other does not.
var twins = []string{"fast", "slow"}

// A fleet has the targets of all pipelines. Both twins of a pipeline get the same pages.
type fleet struct {
	shows []showing // by pipeline

	mu    sync.Mutex
	pages map[string]int // that each target has shown
	until int            // no later page is shown yet
	since map[string]int // requests since that page
	shown map[string]shown
}

// shown is a page that was generated once: twins and repeated requests get the same.
type shown struct {
	contentType string
	body        []byte
}

func (f *fleet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	of := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/") // twin, road, target
	road, err := strconv.Atoi(of[1])
	if err != nil {
		http.NotFound(w, r)
		return
	}
	f.mu.Lock()
	n := min(f.pages[r.URL.Path], f.until)
	f.pages[r.URL.Path] = n + 1
	if n == f.until {
		f.since[r.URL.Path]++
	}
	key := fmt.Sprint(road, of[2], n)
	page, known := f.shown[key]
	f.mu.Unlock()
	if !known {
		if page.contentType, page.body, err = f.shows[road].page(of[2], n+1); err != nil { // the number of a page is never 0
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		f.mu.Lock()
		f.shown[key] = page
		f.mu.Unlock()
	}
	w.Header().Set("Content-Type", page.contentType)
	_, _ = w.Write(page.body)
}

var randomTargets = []string{"a", "b", "c"}

// waiting counts the targets that have not shown the latest page often enough for its metrics to be reused.
func (f *fleet) waiting(times int) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for road := range f.shows {
		for _, twin := range twins {
			for _, target := range randomTargets {
				if f.since[fmt.Sprintf("/%s/%d/%s", twin, road, target)] < times {
					n++
				}
			}
		}
	}
	return n
}

func (f *fleet) goOn(until int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.until, f.since = until, map[string]int{}
}

// again makes waiting count again from now on.
func (f *fleet) again() { f.goOn(f.until) }

// randomRun has pipelines that follow from a seed.
type randomRun struct {
	seed     uint64
	ways     []way
	shows    []showing
	level    string // of the collector's own metrics
	partial  bool   // only receivers are restarted
	pooling  bool   // the Collector frees metrics
	metrics  string // where its own metrics are
	listens  map[string]string
	taken    map[string]bool // addresses
	disk     string
	sink     string
	target   string
	relaying bool
	relays   []relayed
}

func drawRun(seed uint64, roads int) *randomRun {
	r := rand.New(rand.NewPCG(seed, 20))
	run := &randomRun{seed: seed, listens: map[string]string{}, taken: map[string]bool{}, pooling: r.IntN(5) == 0}
	for i := range roads {
		w := drawWay(r, run.fits)
		s := showing{seed: seed + uint64(i)<<32, kind: showingKinds[r.IntN(len(showingKinds))], format: showingFormats[r.IntN(len(showingFormats))], steady: r.IntN(3) == 0}
		if i == 0 && r.IntN(3) == 0 && len(w.pieces) < 3 && w.shape == toOne && !racetest.Enabled {
			s.kind = "large"
		}
		run.ways, run.shows = append(run.ways, w), append(run.shows, s)
	}
	run.level = []string{"none", "basic", "normal", "detailed"}[r.IntN(4)]
	run.partial = r.IntN(2) == 0
	run.spareBatches()
	return run
}

// spareBatches leaves a pipeline that ends in a batch one exporter, if the Collector frees metrics. A batch (v0.159.0)
// holds none of what it makes, so that is freed once the first exporter has had it, and the second gets nothing:
// whichever these are.
func (run *randomRun) spareBatches() {
	isLast := func(w way) bool { return len(w.pieces) > 0 && w.pieces[len(w.pieces)-1].kind() == "batch" }
	for i := range run.ways {
		if w := &run.ways[i]; run.pooling && w.shape == toTwoExporters && (isLast(*w) || isLast(run.wayOf(i, true))) {
			w.shape, w.exporters = toOne, w.exporters[:1]
		}
	}
}

// fits reports whether a processor can be used in a run. Processors that keep metrics have to say so if the Collector
// frees them, and behind a relay they must not change what requests share before that is detected.
func (run *randomRun) fits(p piece) bool {
	return (!run.pooling || p.kind() != "keeping" && p.kind() != "hoarding" && p.kind() != "lyingmove") && (!run.relaying || p.id != "lyingenrich")
}

// setGates sets the gates of the Collector until the test ends.
func (run *randomRun) setGates(t *testing.T) {
	t.Helper()
	for gate, on := range map[string]bool{"service.partialReload": run.partial && !run.relaying, "pdata.useProtoPooling": run.pooling} {
		require.NoError(t, featuregate.GlobalRegistry().Set(gate, on))
		t.Cleanup(func() { require.NoError(t, featuregate.GlobalRegistry().Set(gate, false)) })
	}
}

// free returns an address on which nothing listens, outside of the range for outgoing connections.
func (run *randomRun) free(t *testing.T) string {
	t.Helper()
	for range 1000 {
		address := fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_000))
		if run.taken[address] {
			continue
		}
		if l, err := net.Listen("tcp", address); err == nil {
			run.taken[address] = true
			require.NoError(t, l.Close())
			return address
		}
	}
	require.Fail(t, "no address is free")
	return ""
}

// ends returns the names of the destinations of a pipeline.
func (w way) ends(name string) []string {
	all := []string{name}
	if len(w.exporters) == 2 {
		all = append(all, name+"-2")
	}
	for i, e := range w.exporters {
		if e == "several" {
			all = append(all, all[i]+"-second")
		}
	}
	return all
}

// config returns the configuration with all pipelines, each twice. If changed, the receivers differ, or else each
// pipeline has the processors of the next.
func (run *randomRun) config(t *testing.T, changed bool) string {
	t.Helper()
	var receivers, exporters, connectors, all strings.Builder
	processors := "  recording: {}\n  passing/slow: {}\n"
	for _, p := range randomPieces {
		processors += fmt.Sprintf("  %s: %s\n", p.id, p.config)
	}
	for i := range run.ways {
		for _, twin := range twins {
			run.road(t, i, twin, changed, &receivers, &exporters, &connectors, &all, &processors)
		}
	}
	metrics := fmt.Sprintf("{level: %s}", run.level)
	if run.level != "none" {
		host, port, _ := strings.Cut(run.metrics, ":")
		metrics = fmt.Sprintf("{level: %s, readers: [{pull: {exporter: {prometheus: {host: %s, port: %s}}}}]}", run.level, host, port)
	}
	return fmt.Sprintf("receivers:\n%sprocessors:\n%sexporters:\n  nop: {}\n%sconnectors:\n  forward: {}\n%sservice:\n  telemetry: {metrics: %s, logs: {sampling: {enabled: false}}}\n  pipelines:\n%s",
		receivers.String(), processors, exporters.String(), connectors.String(), metrics, all.String())
}

func (run *randomRun) road(t *testing.T, i int, twin string, changed bool, receivers, exporters, connectors, all *strings.Builder, processors *string) {
	w, name := run.wayOf(i, changed), fmt.Sprint(twin, i)
	if run.relaying {
		run.listens["from "+name] = run.free(t)
		run.relay(receivers, i, twin, run.listens["from "+name])
	} else {
		run.receiver(receivers, w, i, twin, changed)
	}
	var ids []string
	if twin == "slow" && w.slow == "passing" {
		ids = append(ids, "passing/slow")
	}
	for _, p := range w.pieces {
		if p.id == "seeing" { // one per pipeline
			p.id += "/" + name
			*processors += fmt.Sprintf("  %s: {}\n", p.id)
		}
		ids = append(ids, p.id)
	}
	var to []string
	for j, e := range w.exporters {
		end := w.ends(name)[j]
		if isStream(e) && run.listens[end] == "" {
			run.listens[end] = run.free(t)
		}
		line := fmt.Sprintf(randomExporters[e], end, run.sink, run.listens[end], run.disk)
		if extra := strings.Index(line, "%!(EXTRA"); extra >= 0 {
			line = line[:extra]
		}
		fmt.Fprintf(exporters, "  %s\n", line)
		id, _, _ := strings.Cut(line, ":")
		to = append(to, id)
		if isStream(e) {
			fmt.Fprintf(receivers, "  otlpstream/%s: {protocols: {grpc: {endpoint: '%s'}}}\n", end, run.listens[end])
			*processors += fmt.Sprintf("  recording/%s: {}\n", end)
			fmt.Fprintf(all, "    metrics/%s-end: {receivers: [otlpstream/%s], processors: [recording/%s], exporters: [nop]}\n", end, end, end)
		}
	}
	from := strings.Join(run.receiverIDs(i, twin), ", ")
	switch w.shape {
	case toTwoPipelines:
		reversed := slices.Clone(ids)
		slices.Reverse(reversed)
		fmt.Fprintf(all, "    metrics/%s: {receivers: [%s], processors: [%s], exporters: [%s]}\n", name, from, strings.Join(ids, ", "), to[0])
		fmt.Fprintf(all, "    metrics/%s-2: {receivers: [%s], processors: [%s], exporters: [%s]}\n", name, from, strings.Join(reversed, ", "), to[1])
	case toConnector:
		fmt.Fprintf(connectors, "  forward/%s: {}\n", name)
		fmt.Fprintf(all, "    metrics/%s: {receivers: [%s], processors: [%s], exporters: [forward/%s]}\n", name, from, strings.Join(ids, ", "), name)
		fmt.Fprintf(all, "    metrics/%s-2: {receivers: [forward/%s], exporters: [%s]}\n", name, name, to[0])
	default:
		fmt.Fprintf(all, "    metrics/%s: {receivers: [%s], processors: [%s], exporters: [%s]}\n", name, from, strings.Join(ids, ", "), strings.Join(to, ", "))
	}
}

// wayOf returns the processors and exporters of a pipeline. If changed, it has the processors of the next one, unless
// only receivers change.
func (run *randomRun) wayOf(i int, changed bool) way {
	w := run.ways[i]
	if changed && !run.partial {
		w.pieces = run.ways[(i+1)%len(run.ways)].pieces
	}
	return w
}

// receiverIDs returns the receivers of one of the twins.
func (run *randomRun) receiverIDs(i int, twin string) []string {
	switch {
	case !run.relaying && run.ways[i].shared:
		return []string{fmt.Sprintf("fastprometheus/%s%d", twin, i), fmt.Sprintf("fastprometheus/%s%d-2", twin, i)}
	case !run.relaying:
		return []string{fmt.Sprintf("fastprometheus/%s%d", twin, i)}
	case run.relays[i].kind == "otlp":
		return []string{fmt.Sprintf("otlpstream/from-%s%d", twin, i)}
	}
	return []string{fmt.Sprintf("remotewrite/%s%d", twin, i)}
}

func (run *randomRun) receiver(to *strings.Builder, w way, i int, twin string, changed bool) {
	reuse := "auto"
	if twin == "slow" && w.slow == "never" {
		reuse = "never"
	}
	more := ""
	if changed {
		more = "max_concurrent_scrapes: 100, "
	}
	ids := run.receiverIDs(i, twin)
	lists := make([][]string, len(ids))
	for at, target := range randomTargets {
		list := &lists[at%len(ids)]
		*list = append(*list, fmt.Sprintf("{targets: ['%s'], labels: {target: %s, instance: 'target-%s:1', __metrics_path__: /%s/%d/%s}}", run.target, target, target, twin, i, target))
	}
	for at, id := range ids {
		fmt.Fprintf(to, "  %s: {reuse: %s, %sconfig: {scrape_configs: [{job_name: a, scrape_interval: 2s, scrape_timeout: 2s, scrape_native_histograms: true, scrape_protocols: [PrometheusProto, OpenMetricsText1.0.0, PrometheusText0.0.4], static_configs: [%s]}]}}\n",
			id, reuse, more, strings.Join(lists[at], ", "))
	}
}

// varies returns the prefix of metrics that differ each time: which series are sampled, and when sums are sent, whose
// label may be hashed by then.
func (w way) varies() string {
	if has(w, "cardinality/aggregate") || has(w, "cardinality/sample") || has(w, "cardinality/collapse") {
		return "kept_"
	}
	return ""
}

// seeds returns the seeds of the environment variable, or else those that are always tried.
func seeds(t *testing.T, always ...uint64) []uint64 {
	given := os.Getenv(seedVariable)
	if given == "" {
		return always
	}
	var all []uint64
	for s := range strings.SplitSeq(given, ",") {
		n, err := strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
		all = append(all, n)
	}
	return all
}

// roadsAtOnce returns the number of pipelines of a collector, each of which exists twice.
func roadsAtOnce() int {
	if testing.Short() {
		return 5
	}
	return 10
}

// TestRandomRoads: with random processors and random pages, the same arrives with and without reuse of memory, and what
// the receiver logs about its memory is true.
func TestRandomRoads(t *testing.T) {
	for _, seed := range seeds(t, 1) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { testRandomRoads(t, drawRun(seed, roadsAtOnce())) })
	}
}

func testRandomRoads(t *testing.T, run *randomRun) {
	t.Helper()
	w := newWitness()
	sink := httptest.NewServer(w)
	t.Cleanup(sink.Close)
	f := &fleet{shows: run.shows, pages: map[string]int{}, until: pageOfReload, since: map[string]int{}, shown: map[string]shown{}}
	farm := httptest.NewServer(f)
	t.Cleanup(farm.Close)
	run.sink, run.target, run.disk, run.metrics = sink.URL, farm.Listener.Addr().String(), t.TempDir(), run.free(t)
	run.setGates(t)
	run.loosen(w)
	c := startChangeable(t, run.config(t, false), append(contribs(), w.strangers()...)...)
	t.Cleanup(w.kept.Wait)
	run.says(t, c.log, 1, false)
	patient(t, func() (int, string) { return f.waiting(3), "targets have not come to the page of the change" })
	c.change(t, run.config(t, true), run.partial)
	w.forgetAgain()
	f.again()
	patient(t, func() (int, string) { return f.waiting(2), "targets have not been asked since" })
	f.goOn(lastRandomPage)
	patient(t, func() (int, string) { return f.waiting(4), "targets have not come to the last page" })
	run.says(t, c.log, 2, true)
	run.measures(t, true)
	differ := run.settle(w)
	for i := range run.ways {
		t.Run(fmt.Sprint(i), func(t *testing.T) { run.compare(t, w, i, differ[i]) })
	}
	c.stop()
	w.kept.Wait()
	require.Empty(t, w.wrong[:min(len(w.wrong), 3)])
}

// loosen marks the destinations at which metadata depends on where metrics are split.
func (run *randomRun) loosen(w *witness) {
	for i := range run.ways {
		if has(run.ways[i], "batch/small") || has(run.wayOf(i, true), "batch/small") {
			for _, twin := range twins {
				for _, end := range run.ways[i].ends(fmt.Sprint(twin, i)) {
					w.loose[end] = true
				}
			}
		}
	}
}

// settle waits until the twins of all pipelines have received the same, as long as something arrives, and returns the
// differences.
func (run *randomRun) settle(w *witness) map[int][]string {
	differ := map[int][]string{}
	for i := range run.ways {
		differ[i] = nil
	}
	isSettled := func() bool {
		for i := range differ {
			if differ[i] = run.differ(w, i); len(differ[i]) == 0 {
				delete(differ, i)
			}
		}
		return len(differ) == 0
	}
	const most = 6 // since scrapes do not end
	for round, before := 0, -1; !eventually(isSettled, patience/6) && round < most && w.samples() > before; round++ {
		before = w.samples()
	}
	return differ
}

func (run *randomRun) differ(w *witness, i int) (found []string) {
	way := run.wayOf(i, true)
	fast, slow := way.ends(fmt.Sprint("fast", i)), way.ends(fmt.Sprint("slow", i))
	varies := max(run.ways[i].varies(), way.varies())
	for j := range fast {
		a, b := w.told(slow[j], varies), w.told(fast[j], varies)
		if len(a) == 0 && !has(way, "cardinality/labels") {
			found = append(found, "nothing has come to "+slow[j])
		}
		found = append(found, differences(a, b)...)
	}
	return found
}

func (run *randomRun) compare(t *testing.T, w *witness, i int, differ []string) {
	t.Helper()
	way := run.wayOf(i, true)
	switch {
	case len(differ) > 0 && w.isDisturbed(way, i):
		t.Skip("a scrape has failed, on a busy machine")
	case len(differ) > 0:
		t.Errorf("seed %d, road %d, %+v, level %s, partial %v:\nbefore: %v\nafter: %v\nslow, fast:\n%s",
			run.seed, i, run.sourceOf(i), run.level, run.partial, run.ways[i], way, strings.Join(differ, "\n"))
	}
	if has(way, "seeing") && !run.pooling && way.shape != toTwoPipelines { // where it sees metrics once per scrape
		run.isAgain(t, w, way, i)
	}
}

// isDisturbed reports whether a scrape of one of the twins has failed.
func (w *witness) isDisturbed(way way, i int) bool {
	for _, twin := range twins {
		for _, end := range way.ends(fmt.Sprint(twin, i)) {
			for of, said := range w.told(end, "") {
				if (strings.Contains(of, "{__name__ up}") || strings.Contains(of, " up|")) && slices.ContainsFunc(said, func(s string) bool { return strings.HasPrefix(s, "0 ") || strings.Contains(s, " 0 0]") }) {
					return true
				}
			}
		}
	}
	return false
}

func has(w way, id string) bool {
	return slices.ContainsFunc(w.pieces, func(p piece) bool { return p.id == id })
}

// sourceOf returns what a pipeline receives.
func (run *randomRun) sourceOf(i int) any {
	if run.relaying {
		return run.relays[i]
	}
	return run.shows[i]
}
