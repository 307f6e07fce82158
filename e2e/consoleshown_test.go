// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/godwit-otel/godwit/e2e/console"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// listens records the API's last responses to the page, by path.
const listens = `{
	answers = {};
	const ask = fetch;
	fetch = async (url, options) => {
		const answer = await ask(url, options);
		const text = await answer.clone().text();
		if (answer.ok) answers[String(url).replace(/[?].*/, "").replace("api/v1/", "")] = text;
		return answer;
	};
}`

// sight is what a page shows: numbers by name, tables by caption, and the API's responses behind them.
type sight struct {
	Answers map[string]string
	Stats   []map[string]string            // one for each list of numbers
	Tables  map[string][]map[string]string // cells by column title; "" is the row's header
	Chips   map[string]string
	Heading string
}

const reading = `(() => {
	const words = e => (e?.innerText ?? "").trim();
	const stats = [...document.querySelectorAll("#view dl.stats")].map(dl => Object.fromEntries([...dl.children].map(d => [words(d.querySelector("dt")), (d.querySelector("dd").firstChild?.textContent ?? "").trim()])));
	const tables = {};
	for (const t of document.querySelectorAll("#view table")) {
		const titles = [...t.tHead.rows[0].cells].map(words);
		tables[t.caption.textContent] = [...t.tBodies[0].rows].map(r => Object.fromEntries([...r.cells].map((c, i) => [c.tagName === "TH" ? "" : titles[i], words(c)])));
	}
	const chips = Object.fromEntries([...document.querySelectorAll("#view .filters [aria-label=State] a")].map(a => [a.firstChild.textContent, words(a.querySelector("b"))]));
	return {answers: window.answers ?? {}, stats, tables, chips, heading: words(document.querySelector("#view .heading"))};
})()`

// written matches a formatted number with its unit and perhaps its error.
var written = regexp.MustCompile(`^~?([\d,]+(?:\.\d+)?) ?(T|G|M|k|TiB|GiB|MiB|KiB|B|%|µs|ms|s)?(?:/s)?(?: requests?| items?)?(?: ± [\d,.]+k?)?$`)

var units = map[string]float64{
	"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
	"%": 0.01, "µs": 1e-6, "ms": 1e-3, "s": 1,
}

// says returns why a text does not show a number to three digits, "" if it does.
func says(text string, number, over *float64) string {
	switch {
	case number == nil && over == nil && text == "measuring", number == nil && text == "–":
		return ""
	case number == nil:
		return fmt.Sprintf("%q, and nothing is known", text)
	case text == "<0.1%":
		return say(*number > 0 && *number < 0.001, "%q of %v", text, *number)
	}
	match := written.FindStringSubmatch(text)
	if match == nil {
		return fmt.Sprintf("%q is no number, and %v is known", text, *number)
	}
	n, err := strconv.ParseFloat(strings.ReplaceAll(match[1], ",", ""), 64)
	if err != nil {
		return err.Error()
	}
	unit := units[match[2]]
	return say(math.Abs(n*unit-*number) <= 0.0051*math.Abs(*number)+0.0051*unit, "%q of %v", text, *number)
}

func TestSaysWhatIsWritten(t *testing.T) {
	f := func(text string, number float64, well bool) {
		t.Helper()
		assert.Equal(t, well, says(text, &number, nil) == "", "%s of %v", text, number)
	}
	f("45.5k/s", 45_512, true)
	f("45.5k/s", 46_000, false)
	f("0/s", 0, true)
	f("0/s", 12, false)
	f("1.5 MiB", 1.5*(1<<20), true)
	f("1.5 MiB/s", 1.5e6, false)
	f("12.1 ms", 0.0121, true)
	f("<0.1%", 0.0004, true)
	f("<0.1%", 0, false)
	f("1,234", 1234, true)
	f("3 requests", 3, true)
	f("~26", 26, true)
	f("1.8k ± 59", 1804, true)
	f("1.8k ± 59", 1850, false)
	f("measuring", 3, false)
	assert.Empty(t, says("measuring", nil, nil))
	over := 1.0
	assert.NotEmpty(t, says("measuring", nil, &over))
	assert.NotEmpty(t, says("0/s", nil, nil))
	assert.NotEmpty(t, differ(map[string]string{}, nil, map[string]*float64{"In": nil}))
	assert.NotEmpty(t, differ(map[string]string{"In": "3/s"}, nil, map[string]*float64{"In": nil}))
}

// shows checks that each number in the views is the API's.
func (s *staged) shows(t *testing.T) {
	t.Helper()
	for _, view := range []struct {
		name  string
		check func(r *sight) string
	}{
		{"overview", showsOverview}, {"delivery", showsDelivery}, {"targets", showsTargets}, {"cardinality", showsCardinality},
	} {
		s.page.Go("#/" + view.name)
		s.page.Holds(fmt.Sprintf(`location.hash === "#/%s" && document.querySelector("#view h1") && !document.querySelector("#view[aria-busy]")`, view.name))
		s.page.Keys("r")
		wait.Until(t, time.Minute, func() (bool, string) {
			r := console.Eval[sight](s.page, reading)
			if r.Answers[view.name] == "" {
				return false, view.name + " has not been asked for"
			}
			why := view.check(&r)
			return why == "", fmt.Sprintf("%s: %s", view.name, why)
		})
	}
}

func answerOf[T any](r *sight, name string) (out T, err error) {
	err = json.Unmarshal([]byte(r.Answers[name]), &out)
	return out, err
}

// differ compares the numbers that are shown with those of the API, by name.
func differ(stats map[string]string, over *float64, numbers map[string]*float64) string {
	for name, number := range numbers {
		text, there := stats[name]
		if !there {
			return fmt.Sprintf("there is no %q in %v", name, stats)
		}
		if why := says(text, number, over); why != "" {
			return name + " is " + why
		}
	}
	return ""
}

func showsOverview(r *sight) string {
	o, err := answerOf[shownOverview](r, "overview")
	if err != nil {
		return err.Error()
	}
	if len(r.Stats) != 1 {
		return fmt.Sprintf("%d places of numbers", len(r.Stats))
	}
	t, p := &o.Totals, &o.Process
	numbers := map[string]*float64{
		"In": t.In, "Limited": t.Limited, "Out": t.Out, "On the wire": t.Wire, "Waiting": &t.Queued, "CPU": p.CPU, "Memory": p.RSS, "GC": p.GC,
		"Lost": t.Lost,
	}
	var refused float64
	for i := range o.Nodes {
		if rates := o.Nodes[i].Rates; o.Nodes[i].Targets != nil && rates != nil && rates.Refused != nil {
			refused += *rates.Refused
		}
	}
	if refused > 0 && known(t.Lost) == 0 { // then the lost data are scrapes
		numbers["Lost"] = &refused
	}
	if why := differ(r.Stats[0], o.Over, numbers); why != "" {
		return why
	}
	if all := o.Targets.Healthy + o.Targets.Failing + o.Targets.Unknown; all > 0 && !strings.Contains(r.Heading, fmt.Sprintf("%d of %d target", o.Targets.Healthy, all)) {
		return fmt.Sprintf("%q of %+v", r.Heading, o.Targets)
	}
	return ""
}

func showsDelivery(r *sight) string {
	d, err := answerOf[shownDelivery](r, "delivery")
	if err != nil {
		return err.Error()
	}
	i := 0
	for _, e := range d.Exporters {
		for _, to := range e.Destinations {
			if i >= len(r.Stats) {
				return fmt.Sprintf("%d places of numbers", len(r.Stats))
			}
			waiting := float64(to.Waiting)
			if why := differ(r.Stats[i], d.Over, map[string]*float64{
				"Accepted": to.TakenRate, "Acknowledged": to.SentRate, "Lost": to.LostRate, "Waiting": &waiting, "Retries": to.RetryRate,
				"On the wire": to.WireRate, "In flight": &to.InFlight.Requests, "Response time": to.Ack,
			}); why != "" {
				return to.Name + ": " + why
			}
			for caption, counts := range map[string][]shownCount{"What was lost for " + to.Name: to.Dropped, "Answers of " + to.Name: to.Responses} {
				rows := r.Tables[caption]
				if len(rows) != len(counts) {
					return fmt.Sprintf("%s: %v of %v", caption, rows, counts)
				}
				for j, c := range counts {
					n := float64(c.Count)
					if why := says(rows[j]["Items"]+rows[j]["Requests"], &n, nil); why != "" {
						return caption + ": " + why
					}
				}
			}
			i++
		}
	}
	return ""
}

func showsTargets(r *sight) string {
	list, err := answerOf[shownTargets](r, "targets")
	if err != nil {
		return err.Error()
	}
	for name, n := range map[string]int{"All": list.Total, "Failing": list.Counts.Failing, "Healthy": list.Counts.Healthy, "Dropped": list.Counts.Dropped} {
		if text, there := r.Chips[name]; there && text != strconv.Itoa(n) || !there && n > 0 {
			return fmt.Sprintf("%s is %q of %d", name, text, n)
		}
	}
	rows := r.Tables["Jobs"]
	if len(rows) != len(list.Jobs) {
		return fmt.Sprintf("%d jobs of %d", len(rows), len(list.Jobs))
	}
	for i, j := range list.Jobs {
		row := rows[i]
		if row[""] != j.Job || row["Healthy"] != fmt.Sprintf("%d of %d", j.Healthy, j.Targets) || row["Failing"] != strconv.Itoa(j.Failing) || row["Dropped"] != strconv.Itoa(j.Dropped) {
			return fmt.Sprintf("%v of %+v", row, j)
		}
	}
	reasons := r.Tables["Why targets fail"]
	if len(reasons) != len(list.Errors) {
		return fmt.Sprintf("%d reasons of %d", len(reasons), len(list.Errors))
	}
	for i, e := range list.Errors {
		if reasons[i]["Targets"] != strconv.Itoa(e.Count) {
			return fmt.Sprintf("%v of %+v", reasons[i], e)
		}
	}
	return ""
}

func showsCardinality(r *sight) string {
	c, err := answerOf[shownCardinality](r, "cardinality")
	if err != nil {
		return err.Error()
	}
	if len(c.Processors) == 0 {
		return say(strings.Contains(r.Heading, "Cardinality") && len(r.Stats) == 0, "%q", r.Heading)
	}
	p := &c.Processors[0]
	if len(r.Stats) != 1 {
		return fmt.Sprintf("%d places of numbers", len(r.Stats))
	}
	if why := differ(r.Stats[0], nil, map[string]*float64{
		"Active series": &p.Series, "Metrics": &p.Metrics, "New per minute": p.New, "Gone per minute": p.Gone, "Memory": &p.Memory, "Sample": &p.Sample,
	}); why != "" {
		return why
	}
	rows := r.Tables["Limits and how far they are used"]
	if len(rows) != len(p.Limits) {
		return fmt.Sprintf("%d limits of %d", len(rows), len(p.Limits))
	}
	for i, l := range p.Limits {
		if used := fmt.Sprintf("%.0f of %.0f", l.Used, l.Max); l.Max > 0 && !strings.Contains(strings.ReplaceAll(rows[i]["Used"], ",", ""), used) {
			return fmt.Sprintf("%v of %s", rows[i], used)
		}
	}
	return ""
}
