// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/console"
	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/targets"
)

// Hostile values of labels.
const (
	script = `<script>document.title="taken"</script><img src=x onerror="document.title='taken'">`
	// Shown unchanged, this would look like a text file.
	backwards = "\u202etxt.exe"
)

var endless = strings.Repeat("goose", 2000)

// consolePage returns a page with a label that looks like an ID, a metric without one, and hostile label values.
func consolePage() string {
	var b strings.Builder
	b.WriteString("# TYPE geese gauge\ngeese{flock=\"north\"} 42\n# TYPE sightings counter\n")
	for i := range 400 {
		fmt.Fprintf(&b, "sightings{ring_id=\"r%06d\",sex=\"f\"} %d\n", i*7919, i)
	}
	fmt.Fprintf(&b, "# TYPE strange gauge\nstrange{markup=\"%s\",reversed=\"%s\",huge=\"%s\"} 1\n", strings.ReplaceAll(script, `"`, `\"`), backwards, endless)
	return b.String()
}

const consoleConfig = `
extensions: {console: {endpoint: %s}}
processors:
  cardinality:
    rules: [{name: flocks, match: {metric: sightings}, group_by: [metric], max_series: 100, on_exceed: [drop]}]
service:
  extensions: [health_check, console]
  pipelines: {metrics: {receivers: [fastprometheus], processors: [cardinality], exporters: [remotewrite]}}
`

// consoleAgent scrapes a healthy target with hostile labels, one that responds with 503 and one that does not listen.
// Relabelling drops all targets of a fourth job.
type consoleAgent struct {
	*collector

	home        string
	well        *targets.Target
	silent      string
	destination *rwserver.Server
}

func startConsoleAgent(t *testing.T) *consoleAgent {
	t.Helper()
	a := &consoleAgent{
		well:        targets.New(t, targets.Page{Body: consolePage()}),
		silent:      freeport.Addr(t),
		destination: rwserver.New(t, rwserver.Options{}),
	}
	ill := targets.New(t, targets.Page{Status: 503})
	endpoint := freeport.Addr(t)
	a.home = "http://" + endpoint + "/"
	strange := fmt.Sprintf("        - {job_name: strange, static_configs: [{targets: [%q], labels: {script: %q, backwards: %q, endless: %q}}], "+
		"relabel_configs: [{source_labels: [__address__], target_label: nest}]}\n", a.well.Addr(), script, backwards, endless)
	a.collector = startCollector(t,
		fmt.Sprintf(scraping, a.destination.URL(), jobs(
			strange,
			job("ill", ill.Addr(), ""),
			job("silent", a.silent, ""),
			job("unwanted", a.silent, ", relabel_configs: [{action: drop}]"),
		)),
		fmt.Sprintf(consoleConfig, endpoint))
	return a
}

// namedLook is a look and its name in file names of screenshots.
type namedLook struct {
	name string
	look console.Look
}

// looks returns a wide light and a narrow dark look. With GODWIT_CONSOLE_LOOKS it returns all four combinations, which
// takes minutes longer, for those who want the screenshots.
func looks() []namedLook {
	dark := func(l console.Look) console.Look { l.Dark = true; return l }
	usual := []namedLook{{"wide", console.Wide}, {"narrow-dark", dark(console.Narrow)}}
	if os.Getenv("GODWIT_CONSOLE_LOOKS") == "" {
		return usual
	}
	return append(usual, namedLook{"wide-dark", dark(console.Wide)}, namedLook{"narrow", console.Narrow})
}

// Users' ways through the console of an agent that has problems.
func TestConsole(t *testing.T) {
	browser := console.Open(t)
	a := startConsoleAgent(t)

	t.Run("targets", func(t *testing.T) {
		p := browser.Page(t, console.Wide, a.home, "#/targets")
		p.Reads("main", "1 of 3 targets healthy, 2 failing", "503 Service Unavailable", "connection refused")
		p.Click(`a[href*="state=failing"]`)
		p.Reads("main", "of 3")
		p.Go("#/targets?job=strange")
		p.Reads("tbody", a.well.URL(), "Healthy", "402") // 402 samples
		p.Go("#/targets?q=" + a.silent)
		p.Reads("tbody", a.silent, "connection refused")
		p.Holds(`document.querySelectorAll("table.cards")[0].tBodies[0].rows.length === 1`)
		p.Go("#/targets?q=no-such-goose")
		p.Reads("main", "No target fits")
		p.Go("#/targets?q=" + a.silent + "&state=failing")
		p.Holds(`document.querySelector("tbody").rows.length === 1`)
		csv := console.Await[string](p, `fetch(document.querySelector(".exports a").href).then(r => r.text())`)
		lines := strings.Split(strings.TrimSpace(csv), "\n")
		require.Len(t, lines, 2, "what is seen is what is exported: %s", csv)
		assert.Regexp(t, "^receiver,job,url,state,", lines[0])
		assert.Contains(t, lines[1], "fastprometheus,silent,http://"+a.silent+"/metrics,failing,")
		p.Go("#/targets?state=dropped")
		p.Reads("main", a.silent, "Why was it dropped?")
		p.Click(`a[href*="relabel"]`)
		p.Reads("main", "Relabel debugger", "__address__")
	})
	t.Run("one target", func(t *testing.T) {
		p := browser.Page(t, console.Wide, a.home, "#/targets?job=strange")
		p.Reads("tbody", a.well.URL())
		p.Click("tbody th a")
		p.Reads("h1", a.well.URL())
		p.Reads("main", "Before relabelling", "__address__", "After relabelling", "nest")
		p.Click(".live button")
		p.Reads(".live pre", `geese{flock="north"} 42`)
		p.Fill(".live input", "north")
		p.Holds(`document.querySelector(".live pre").textContent.split("\n").length === 1`)
		p.Picture("target-wide")
		p.Click(`a[href*="relabel"]`)
		p.Reads("main", "Kept", "Rule 1: replace", "matched, 1 change", "nest added: "+a.well.Addr())
		p.Picture("relabel-wide")
		p.Go("#/relabel?" + `labels=env%3Dtest&rules=-%20%7Bsource_labels%3A%20%5Benv%5D%2C%20regex%3A%20prod%2C%20action%3A%20keep%7D`)
		p.Reads("main", "Dropped by rule 1")
		p.Forgive() // the browser logs the rejected request to its own console
		p.Go("#/relabel?labels=env%3Dtest&rules=%7B")
		p.Reads("[role=alert]", "rules")
	})
	t.Run("cardinality", func(t *testing.T) {
		p := browser.Page(t, console.Wide, a.home, "#/cardinality")
		p.Reads("main", "The label ring_id has", "it looks like an ID")
		p.Reads("main", "flocks", "100 of 100", "Series that were rejected")
		p.Reads("tbody tr", "sightings", "ring_id", "100% of 100")
		p.Go("#/cardinality?of=labels&match=ring")
		p.Reads("tbody", "ring_id", "looks like an ID")
		p.Go("#/cardinality/sightings")
		p.Reads("h1", "sightings")
		p.Click(`input[aria-label="Without ring_id"]`)
		p.Reads(".whatif", "series become", "fewer", "rules: - name:", "ring_id: 0")
		consoleCopies(t, p)
		p.Go("#/cardinality")
		p.Click("#advice")
		p.Reads(".advice", "1 rule would save", "series: ", "sightings", "without_ring_id", "Queries that ask by these labels")
		p.Picture("cardinality-wide-advice")
		p.Go("#/cardinality?of=groups")
		p.Reads("tbody", "strange")
		p.Go("#/cardinality?of=groups&label=job")
		p.Reads("main", "No series has the label job", "job is service.name here")
		p.Go("#/cardinality?match=no-such-goose")
		p.Reads("main", "Nothing matches")
	})
	t.Run("delivery", func(t *testing.T) {
		p := browser.Page(t, console.Wide, a.home, "#/delivery")
		p.Reads("main", a.destination.URL(), "Delivering", "remote write 2.0", "zstd", "Nothing was lost since the start")
	})
	t.Run("live data", func(t *testing.T) {
		p := browser.Page(t, console.Wide, a.home, "#/overview")
		p.Holds(`document.querySelector(".picture a[href*='#/live/processor']")`)
		p.Do(`document.querySelector(".picture a[href*='#/live/processor']").dispatchEvent(new MouseEvent("click", {bubbles: true, view: window}))`)
		p.Reads("h1", "processor/cardinality")
		p.Reads("main", "points came", "went on", "sightings", "ring_id=", "not passed on")
		p.Go("#/live/processor%2Fcardinality?fate=gone")
		p.Holds(`[...document.querySelectorAll("tbody tr")].every(r => r.textContent.includes("not passed on"))`)
		p.Picture("live-wide")
		p.Go("#/live/exporter%2Fremotewrite")
		p.Reads("main", "Some of what it takes", "sightings")
		p.Go("#/live/exporter%2Fother")
		p.Reads("main", "No data can be looked at here")
	})
	t.Run("configuration", func(t *testing.T) {
		p := browser.Page(t, console.Wide, a.home, "#/configuration?q=cardinality")
		p.Reads("tbody", "processor/cardinality", "ok", "metrics")
		p.Holds(`document.querySelector("tbody").rows.length === 1`)
		p.Reads("pre", "max_series: 100", "fastprometheus:")
	})
	t.Run("strangers", func(t *testing.T) {
		for _, look := range []console.Look{console.Wide, console.Narrow} {
			p := browser.Page(t, look, a.home, "#/targets?job=strange")
			p.Reads("tbody", "script=<script>", "backwards=⟨U+202E⟩txt.exe", "endless=goosegoose")
			p.Fits()
			p.Click("tbody th a")
			p.Reads("main", "script", script, "All 10,000 characters")
			p.Fits()
			p.Go("#/cardinality/strange")
			p.Reads("main", "Example series", "⟨U+202E⟩txt.exe")
			p.Fits()
			p.Go("#/cardinality?of=pairs&metric=strange&match=markup")
			p.Reads("tbody", `markup <script>document.title="taken"</script>`)
			p.Fits()
			p.Go("#/configuration")
			p.Reads("main", "Effective configuration")
			p.Fits()
			assert.NotEqual(t, "taken", console.Eval[string](p, "document.title"))
			assert.Equal(t, 2, p.Count("script"), "the page's own")
			assert.Zero(t, p.Count("main img"))
		}
	})
	t.Run("keyboard", func(t *testing.T) { consoleKeyboard(t, browser, a) })
	t.Run("hurry", func(t *testing.T) { consoleHurry(t, browser, a) })
	t.Run("hidden", func(t *testing.T) {
		p := browser.Page(t, console.Wide, a.home, "#/delivery")
		p.Reads("h1", "Delivery")
		hide := func(hidden bool) {
			p.Do(fmt.Sprintf(`Object.defineProperty(document, "hidden", {value: %t, configurable: true}), document.dispatchEvent(new Event("visibilitychange"))`, hidden))
		}
		hide(true)
		// Two periods of the timer that polls, which would fire before this one. A request in flight may still end.
		asked := `(began => new Promise(done => setTimeout(() => done(performance.getEntriesByType("resource").filter(e => e.startTime > began).length), 5500)))(performance.now())`
		assert.Zero(t, console.Await[int](p, asked), "it asks while nobody looks")
		p.Do("performance.clearResourceTimings()")
		hide(false)
		p.Holds(`performance.getEntriesByType("resource").length > 0`)
	})
	t.Run("overview", func(t *testing.T) {
		p := browser.Page(t, console.Wide, a.home, "")
		p.Reads("main", "problem", "503", "connection refused", "flocks", "Next:", "1 of 3 targets healthy", "Nothing is being lost")
		p.Holds(`document.querySelector(".problem a.go[href*='#/targets'][href*='reason=']")`)
		p.Reads(".picture", "fastprometheus", "cardinality", "remotewrite", "limited")
		p.Reads(".picture", a.destination.Addr(), "Delivering")
		p.Holds(`[...document.querySelectorAll(".picture .flow")].some(e => /samples\/s/.test(e.textContent))`)
		p.Holds(`document.querySelectorAll(".chart canvas").length >= 6`)
		p.Click(".problem a.go")
		p.Holds(`location.hash !== "" && !location.hash.startsWith("#/overview")`)
	})
	t.Run("away", func(t *testing.T) {
		a.destination.Always(rwserver.Step{Status: 503})
		for _, l := range looks() {
			p := browser.Page(t, l.look, a.home, "#/overview")
			p.Holds(`/Breaker open.*queue \S+ full/.test(document.querySelector(".picture")?.textContent)`) // in whole words, not cut off
			p.Fits()
			p.Picture("overview-away-" + l.name)
			p.Go("#/delivery")
			p.Reads("main", "Breaker open", "it waits in the queue", "Items, on one scale")
			p.Fits()
			p.Picture("delivery-away-" + l.name)
		}
		a.destination.Always(rwserver.Step{})
		p := browser.Page(t, console.Wide, a.home, "#/delivery")
		p.Reads("main", "All destinations take what comes", "Nothing was lost since the start")
	})
	t.Run("loss", func(t *testing.T) {
		p := browser.Page(t, console.Wide, a.home, "#/delivery")
		p.Reads("h1", "Delivery")
		a.destination.Always(rwserver.Step{Status: 400})
		p.Reads("main", "is being lost now", "Lost, by reason", "400", "Next: The destination will never take it")
		p.Holds(`document.querySelector(".chart .legends").textContent.includes("lost")`)
		p.Picture("delivery-loss-wide")
		p.Go("#/overview")
		p.Reads("main", "are being lost", "Next:")
		p.Reads(".picture", "lost")
		p.Picture("overview-loss-wide")
	})
	t.Run("gone", func(t *testing.T) {
		p := browser.Page(t, console.Wide, a.home, "#/delivery")
		p.Reads("main", "Acknowledged")
		p.Forgive()
		require.Zero(t, a.Stop(syscall.SIGINT, drainTime))
		p.Keys("r")
		p.Reads("#notice [role=alert]", "The collector does not answer.", "What you see is from")
		p.Reads("#live", "No answer")
		p.Reads("main", "Acknowledged")
		p.Picture("gone-wide")
		p.Go("#/targets")
		p.Reads("main [role=alert]", "The collector does not answer", "Try again")
		p.Picture("gone-at-first-wide")
		a.Restart()
		a.ready()
		p.Click("main [role=alert] button")
		p.Reads("main", "of 3 targets")
		p.Reads("#live", "Live")
	})
}

// Each view of that agent, in each look, fits the window and is accessible; a screenshot is taken.
func TestConsoleViews(t *testing.T) {
	t.Parallel()
	browser := console.Open(t)
	a := startConsoleAgent(t)
	p := browser.Page(t, console.Wide, a.home, "#/targets?job=ill")
	p.Reads("tbody", "503")
	ill := console.Eval[string](p, `document.querySelector("tbody th a").hash`)
	p.Go(ill)
	p.Reads("main", "The last scrape failed: an HTTP error status", "Next: 500 and above: see the target's own log")
	views := map[string]string{
		"overview": "#/overview", "targets": "#/targets", "cardinality": "#/cardinality", "delivery": "#/delivery", "configuration": "#/configuration",
		"target": ill, "metric": "#/cardinality/sightings?drop=ring_id", "labels": "#/cardinality?of=labels",
		"advice": "#/cardinality?advice=1",
		"groups": "#/cardinality?of=groups", "pairs": "#/cardinality?of=pairs",
		"live":    "#/live/processor%2Fcardinality",
		"relabel": "#/relabel?labels=env%3Dtest&rules=-%20%7Bsource_labels%3A%20%5Benv%5D%2C%20regex%3A%20prod%2C%20action%3A%20keep%7D",
	}
	for _, l := range looks() {
		p := browser.Page(t, l.look, a.home, "")
		for _, view := range slices.Sorted(maps.Keys(views)) {
			p.Go(views[view])
			p.Holds(fmt.Sprintf(`location.hash === %q && document.querySelector("#view h1") && !document.querySelector("#view[aria-busy]")`, views[view]))
			if view == "live" {
				p.Reads("main", "points came")
			}
			p.Fits()
			p.Accessible()
			p.Picture(view + "-" + l.name)
		}
	}
}

const limitedConfig = `
receivers: {otlp: {protocols: {grpc: {}}}}
exporters: {nop: {}}
service: {pipelines: {metrics: {receivers: [otlp], processors: [cardinality], exporters: [nop]}}}
processors:
  cardinality:
    %s
`

// The rule that is shown can be copied with the browser's clipboard API and without it, and the agent accepts it.
func consoleCopies(t *testing.T, p *console.Page) {
	p.Do(`addEventListener("copy", () => { copied = document.activeElement.value })`)
	for _, clipboard := range []string{`{writeText: async text => { copied = text }}`, `undefined`} {
		p.Do(`copied = "", Object.defineProperty(navigator, "clipboard", {value: ` + clipboard + `, configurable: true})`)
		p.Click(".whatif button")
		p.Reads(".whatif button", "Copied")
		rule := console.Eval[string](p, "copied")
		require.Contains(t, rule, "ring_id: 0", clipboard)
		config := configFile(t, fmt.Sprintf(limitedConfig, strings.ReplaceAll(rule, "\n", "\n    ")))
		exit, output := command(t, "godwit-agent", nil, "validate", "--config", config)
		assert.Zero(t, exit, output)
	}
	p.Picture("metric-wide-copied")
	p.Reads(".whatif button", "Copy the rule")
}

// The keyboard reaches everything.
func consoleKeyboard(t *testing.T, browser *console.Browser, a *consoleAgent) {
	p := browser.Page(t, console.Wide, a.home, "#/overview")
	p.Reads("h1", "problem")
	require.Equal(t, "Skip to the content", p.Tab())
	p.Keys(kb.Enter)
	assert.Equal(t, "main", p.Focused())
	p.Keys("?")
	p.Reads("dialog[open]", "Keyboard shortcuts", "Search in this view")
	p.Screen("help-wide")
	p.Keys(kb.Escape)
	p.Holds(`!document.querySelector("dialog[open]")`)
	p.Keys("?")
	p.Keys(kb.Enter) // on the dialog's button, which has the focus
	p.Holds(`!document.querySelector("dialog[open]")`)
	p.Keys("2")
	p.Reads("h1", "Targets")
	assert.Equal(t, "main", p.Focused(), "a new view begins at its top")
	p.Keys("/")
	assert.Equal(t, "Search in address, labels, job, error", p.Focused())
	p.Keys("2 strange") // in a text field, a shortcut is a letter
	p.Holds(`location.hash.includes("q=2+strange")`)
	p.Keys(strings.Repeat(kb.Backspace, len("2 strange")) + "silent")
	p.Reads("main", "1 target of 3")
	p.Holds(`document.activeElement.value === "silent"`)
	p.Keys(kb.Escape)
	p.Holds(`document.activeElement === document.body`)
	p.Holds(`document.querySelector("th[aria-sort=ascending]")`)
	p.Do(`document.querySelector("th[aria-sort] button").focus()`)
	p.Keys(kb.Enter)
	p.Holds(`location.hash.includes("sort=url")`)
	p.Keys(kb.Enter)
	p.Holds(`document.querySelector("th[aria-sort=descending]") && location.hash.includes("order=desc")`)
	assert.Equal(t, "Target", p.Focused(), "it keeps the focus")
	p.Keys("p")
	p.Holds(`document.querySelector("#live[aria-pressed=true]")`)
	p.Reads("#announcer", "Updates paused")
	p.Keys("p")
	p.Keys("t")
	p.Holds(`document.documentElement.dataset.theme === "light"`)
	p.Keys("t")
	p.Holds(`document.documentElement.dataset.theme === "dark"`)
	p.Keys("t")
	p.Holds(`document.documentElement.dataset.theme === undefined`)
}

// Actions during the search box's delay do not undo the search, and it does not undo them.
func consoleHurry(t *testing.T, browser *console.Browser, a *consoleAgent) {
	p := browser.Page(t, console.Wide, a.home, "#/targets")
	const write = `(box => { box.focus(); box.value = %q; box.dispatchEvent(new InputEvent("input", {bubbles: true})) })(document.querySelector("[data-search]"));`
	const press = `[...document.querySelectorAll("section th button")].find(b => b.textContent === "Target").click();`
	p.Reads("main", "1 of 3 targets")
	p.Do(fmt.Sprintf(write, "silent") + press)
	p.Holds(`location.hash.includes("sort=url") && location.hash.includes("q=silent")`)
	p.Reads("main", "1 target of 3")
	p.Do(press + press) // before the view is drawn again
	p.Holds(`document.querySelector("th[aria-sort=ascending]") && !location.hash.includes("order=desc")`)
	p.Do(fmt.Sprintf(write, "ill") + `location.hash = "#/delivery"`)
	p.Reads("h1", "Delivery")
	assert.Equal(t, "#/delivery", console.Await[string](p, `new Promise(done => setTimeout(() => done(location.hash), 500))`))
}

const idleConfig = `
extensions: {console: {endpoint: %s}}
receivers: {fastprometheus: {config: {scrape_configs: [{job_name: nobody, static_configs: []}]}}}
exporters: {debug: {}}
service:
  extensions: [health_check, console]
  pipelines: {metrics: {receivers: [fastprometheus], exporters: [debug]}}
`

// Without targets, limits and destinations, every view says so and what to do.
func TestConsoleOfAnIdleAgent(t *testing.T) {
	t.Parallel()
	browser := console.Open(t)
	endpoint := freeport.Addr(t)
	startCollector(t, fmt.Sprintf(idleConfig, endpoint))
	p := browser.Page(t, console.Wide, "http://"+endpoint+"/", "#/targets")
	p.Reads("main", "There are no targets")
	p.Picture("targets-empty")
	p.Go("#/cardinality")
	p.Reads("main", "No cardinality processor runs")
	p.Go("#/delivery")
	p.Reads("main", "No exporter shows its deliveries")
	p.Go("#/relabel")
	p.Reads("main", "No labels yet")
	p.Go("#/overview")
	p.Reads(".picture", "fastprometheus", "debug")
	p.Reads("main", "1 warning", "fastprometheus has no targets: nothing is scraped", "Next: See whether the jobs are those you mean")
	p.Picture("overview-empty")
	p.Forgive() // the response is a 404
	p.Go("#/targets/0123456789abcdef")
	p.Reads("main [role=alert]", "Nothing is known of this")
}
