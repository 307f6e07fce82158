// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/console"
	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/serve"
	"github.com/godwit-otel/godwit/e2e/wait"
)

const (
	loadTargets = 10_000
	loadSeries  = 100 // per target: a million in all

	// The longest time for a response, and the largest share of a core while a page is open.
	slowAnswer = 200 * time.Millisecond
	openShare  = 0.02
	// The largest share while no page is open.
	closedShare = 0.001
)

// loadRounds is the number of requests per view that the logged quantiles are of.
const loadRounds = 40

const loadConfig = `
extensions: {console: {endpoint: %s}}
receivers:
  fastprometheus:
    config:
      global: {scrape_interval: 60s, scrape_timeout: 30s}
      scrape_configs: [{job_name: fleet, file_sd_configs: [{files: [%s]}]}]
processors:
  cardinality:
    memory: {max_series: 2000000}
    rules: [{name: each, group_by: [metric], max_series: 150000}]
exporters: {nop: {}}
service:
  extensions: [health_check, console]
  pipelines: {metrics: {receivers: [fastprometheus], processors: [cardinality], exporters: [nop]}}
`

// anyTarget stands for a target's ID.
const anyTarget = "ID"

// rounds holds, by view, the requests that an open page makes every five seconds.
var rounds = map[string][]string{
	"overview":    {"overview", "history"},
	"targets":     {"targets?limit=50&sort=state"},
	"search":      {"targets?limit=50&q=t09999"},
	"sorted":      {"targets?limit=50&sort=samples&order=desc"},
	"cardinality": {"cardinality", "cardinality/top?n=20", "cardinality/top?of=labels&by=values&n=5"},
	"labels":      {"cardinality", "cardinality/top?of=labels&by=values&n=1000", "cardinality/top?of=labels&by=values&n=5"},
	"pairs":       {"cardinality", "cardinality/top?of=pairs&n=1000", "cardinality/top?of=labels&by=values&n=5"},
	"groups":      {"cardinality", "cardinality/top?of=groups&label=service.instance.id&n=1000", "cardinality/top?of=labels&by=values&n=5"},
	"metric":      {"cardinality", "cardinality/metric?name=load_3", "cardinality/whatif?metric=load_3&drop=service.instance.id"},
	"whatif":      {"cardinality", "cardinality/metric?name=load_3", "cardinality/whatif?drop=service.instance.id&drop=part"},
	"target":      {"targets/" + anyTarget},
	"tsdb":        {"status/tsdb?limit=1000"},
	"delivery":    {"delivery"},
	// The page requests it every fifteen seconds.
	"configuration": {"configuration"},
}

// With GODWIT_CONSOLE_LOAD set, the console of 10,000 targets and a million series is measured. That takes minutes and
// needs a machine without other load.
func TestConsoleUnderLoad(t *testing.T) {
	if os.Getenv("GODWIT_CONSOLE_LOAD") == "" {
		t.Skip("set GODWIT_CONSOLE_LOAD to measure the console with 10,000 targets and a million series")
	}
	endpoint := freeport.Addr(t)
	a := startCollector(t, fmt.Sprintf(loadConfig, endpoint, fleet(t)))
	api := "http://" + endpoint + "/api/v1/"
	wait.Until(t, 5*time.Minute, func() (bool, string) {
		var seen struct {
			Processors []struct {
				Series int `json:"series"`
			} `json:"processors"`
		}
		require.NoError(t, json.Unmarshal(ask(t, api+"cardinality"), &seen))
		n := seen.Processors[0].Series
		return n >= loadTargets*loadSeries, fmt.Sprintf("%d series", n)
	})

	var list struct {
		Targets []struct {
			ID string `json:"id"`
		} `json:"targets"`
	}
	require.NoError(t, json.Unmarshal(ask(t, api+"targets?limit=1&q=t09999"), &list))
	require.Len(t, list.Targets, 1)

	const idle = 20 * time.Second
	before := a.Usage().CPU
	time.Sleep(idle) // the CPU of scraping alone, to subtract
	rest := float64(a.Usage().CPU-before) / float64(idle)
	for _, view := range slices.Sorted(func(yield func(string) bool) {
		for view := range rounds {
			if !yield(view) {
				return
			}
		}
	}) {
		var took []time.Duration
		began, used := time.Now(), a.Usage().CPU
		for round := range loadRounds {
			for _, path := range rounds[view] {
				asked := time.Now()
				ask(t, api+another(strings.Replace(path, anyTarget, list.Targets[0].ID, 1), round))
				took = append(took, time.Since(asked))
			}
		}
		each := (a.Usage().CPU - used - time.Duration(rest*float64(time.Since(began)))) / loadRounds
		slices.Sort(took)
		p95, share := took[len(took)*95/100], each.Seconds()/5
		t.Logf("%-13s p50 %8s  p95 %8s  CPU per round %8s, %.2f %% of a core while open",
			view, took[len(took)/2].Round(100*time.Microsecond), p95.Round(100*time.Microsecond), each.Round(10*time.Microsecond), share*100)
		assert.Less(t, p95, slowAnswer, view)
		assert.Less(t, share, openShare, view)
		if view == "delivery" { // in the background the console reads the same data every ten seconds
			assert.Less(t, each.Seconds()/10, closedShare, "while closed")
		}
	}
	t.Run("page", func(t *testing.T) { smooth(t, a, "http://"+endpoint+"/") })
}

// The limits of a smooth page: the longest task that blocks it, the time from the last letter of a search to the list,
// the time to the first list with its scripts, the size of an update, and the growth of the heap over many updates.
const (
	longestTask   = 200 * time.Millisecond
	longestSearch = 300 * time.Millisecond
	longestFirst  = time.Second
	largestUpdate = 64 << 10
	grownHeap     = 4 << 20
)

const (
	// watchTasks records the longest task since the page was loaded.
	watchTasks = `longest = 0; new PerformanceObserver(list => list.getEntries().forEach(e => { longest = Math.max(longest, e.duration) })).observe({type: "longtask", buffered: true})`
	// rows counts the rows of the list of targets.
	rows = `document.querySelectorAll("#view [aria-labelledby=s-list] tbody tr").length`
	// refresh requests new data.
	refresh = `document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "r", bubbles: true}))`
	// heap is the size of the page's heap.
	heap = `performance.memory.usedJSHeapSize`
)

// timed returns the time from an action on the page until a condition holds.
func timed(p *console.Page, action, until string) time.Duration {
	ms := console.Await[float64](p, fmt.Sprintf(`new Promise(done => {
		const began = performance.now();
		%s;
		const look = () => %s ? done(performance.now() - began) : setTimeout(look, 2);
		look();
	})`, action, until))
	return time.Duration(ms * float64(time.Millisecond))
}

// tries is how often each measurement is repeated. The least counts, because other processes also use the machine.
const tries = 3

// smooth measures the page, in a browser, with 10,000 targets and a million series.
func smooth(t *testing.T, a *collector, home string) {
	before := a.Usage().RSS
	browser := console.Open(t)
	var p *console.Page
	first := least(func() time.Duration {
		p = browser.Page(t, console.Wide, home, "#/targets")
		return time.Duration(console.Await[float64](p, `new Promise(done => {
			const look = () => `+rows+` >= 50 ? done(performance.now()) : setTimeout(look, 2);
			look();
		})`) * float64(time.Millisecond))
	})
	p.Do(watchTasks)
	p.Reads("main", "10,000 of 10,000 targets healthy")

	words := map[string]string{"t09999": "1 target", "t0888": "10 targets", "fleet t07": "1,000 targets", "nothing": "0 targets", "t0": "10,000 targets"}
	var search time.Duration
	for word, found := range words {
		search = max(search, least(func() time.Duration {
			write := func(text string) string {
				return fmt.Sprintf(`(box => { box.focus(); box.value = %q; box.dispatchEvent(new InputEvent("input", {bubbles: true})) })(document.querySelector("[data-search]"))`, text)
			}
			timed(p, write("t01234"), `document.querySelector("#s-list").textContent === "1 target of 10,000" && document.querySelector("#view tbody th").textContent.includes("t01234")`)
			return timed(p, write(word), fmt.Sprintf(`document.querySelector("#s-list").textContent === "%s of 10,000" && !document.querySelector("#view tbody th")?.textContent.includes("t01234")`, found))
		}))
	}

	var longest time.Duration
	for _, way := range []struct{ from, fromHolds, to, toHolds string }{
		{"#/targets", rows + " === 50", "#/targets?limit=1000", rows + " === 1000"},
		{"#/targets?limit=1000", rows + " === 1000", "#/targets?limit=1000&sort=url&order=desc", rows + ` === 1000 && document.querySelector("#view tbody th").textContent.includes("t09999")`},
		{"#/targets?limit=1000", rows + " === 1000", "#/targets", rows + " === 50"},
		{"#/overview", `document.querySelector(".chart canvas")`, "#/cardinality?of=groups&label=service.instance.id&n=1000", `document.querySelector("#view h1")?.textContent === "Cardinality" && document.querySelector("main").innerText.includes("t0")`},
		{"#/cardinality?of=groups&label=service.instance.id&n=1000", `document.querySelector("#view h1")?.textContent === "Cardinality" && document.querySelector("main").innerText.includes("t0")`, "#/overview", `document.querySelector(".chart canvas")`},
	} {
		took := least(func() time.Duration {
			p.Go(way.from)
			p.Holds(way.fromHolds)
			longestSince(p)
			p.Go(way.to)
			p.Holds(way.toHolds)
			return longestSince(p)
		})
		t.Logf("longest task from %s to %s: %v", way.from, way.to, took)
		longest = max(longest, took)
	}

	p.Go("#/targets?limit=1000")
	p.Holds(rows + " === 1000")
	refreshed := least(func() (longest time.Duration) {
		longestSince(p)
		timed(p, refresh, `!document.querySelector("#view[aria-busy]")`)
		for range 5 { // a long list is drawn in steps
			longest = max(longest, longestSince(p))
		}
		return longest
	})
	t.Logf("longest task of a refresh of 1000 rows: %v", refreshed)
	longest = max(longest, refreshed)

	p.Go("#/targets")
	p.Holds(rows + " === 50")
	p.Collect()
	held := console.Eval[float64](p, heap)
	for range 30 {
		timed(p, refresh, `!document.querySelector("#view[aria-busy]")`)
	}
	p.Collect()
	grown := console.Eval[float64](p, heap) - held
	update := console.Eval[float64](p, `performance.getEntriesByType("resource").filter(e => /targets\?limit=50&sort=state$|targets\?sort=state&limit=50$/.test(e.name)).at(-1).transferSize`)

	p.Go("#/cardinality")
	p.Reads("main", "1.05M", "load_3") // with the series that the receiver adds for each scrape
	p.Go("#/overview")
	p.Reads("main", "10,000 targets")
	p.Picture("overview-load-wide")
	t.Logf("first list %v; slowest search %v; longest task %v; %.0f bytes an update; heap %.1f MiB, %+.1f after 30 updates; the agent's RSS %d MiB, %+d",
		first.Round(time.Millisecond), search.Round(time.Millisecond), longest, update, held/(1<<20), grown/(1<<20), before>>20, (a.Usage().RSS-before)>>20)
	assert.Less(t, first, longestFirst)
	assert.Less(t, search, longestSearch)
	assert.Less(t, longest, longestTask)
	assert.Less(t, update, float64(largestUpdate))
	assert.Less(t, grown, float64(grownHeap))
}

// longestSince returns the longest task since its last call. Browsers report tasks a little late.
func longestSince(p *console.Page) time.Duration {
	return time.Duration(console.Await[float64](p, `new Promise(done => setTimeout(() => { const was = longest; longest = 0; done(was) }, 200))`) * float64(time.Millisecond))
}

// least returns the shortest of several tries.
func least(try func() time.Duration) time.Duration {
	shortest := try()
	for range tries - 1 {
		shortest = min(shortest, try())
	}
	return shortest
}

// another makes the URL unique: the console repeats a response for a second.
func another(path string, round int) string {
	divider := "?"
	if strings.Contains(path, divider) {
		divider = "&"
	}
	return fmt.Sprintf("%s%sround=%d", path, divider, round)
}

func ask(t *testing.T, url string) []byte {
	t.Helper()
	response, err := http.Get(url)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, "%s: %s", url, body)
	return body
}

// fleet starts one server for all targets, and returns the file that lists them.
func fleet(t *testing.T) (file string) {
	t.Helper()
	var page strings.Builder
	for i := range loadSeries {
		fmt.Fprintf(&page, "load_%d{part=\"p%d\"} %d\n", i/10, i%10, i)
	}
	body := []byte(page.String())
	listener := serve.Listen(t, "127.0.0.1:0")
	serve.HTTP(t, listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = w.Write(body)
	}))
	type group struct {
		Targets []string          `json:"targets"`
		Labels  map[string]string `json:"labels"`
	}
	groups := make([]group, loadTargets)
	for i := range groups {
		name := fmt.Sprintf("t%05d", i)
		groups[i] = group{[]string{listener.Addr().String()}, map[string]string{"instance": name, "__metrics_path__": "/" + name}}
	}
	list, err := json.Marshal(groups)
	require.NoError(t, err)
	file = filepath.Join(t.TempDir(), "fleet.json")
	require.NoError(t, os.WriteFile(file, list, 0o600))
	return file
}
