// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/console"
	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/targets"
	"github.com/godwit-otel/godwit/e2e/wait"
)

const (
	// perScrape is the number of samples of a target. All are gauges, so that each sample is one point.
	perScrape = 100
	// ofAScrape also counts the five samples about the scrape itself.
	ofAScrape = perScrape + 5
)

// The parts of the console API's responses that the tests read.
type (
	shownDestination struct {
		Name        string
		State       string
		Taken       int64
		Sent        int64
		Waiting     int64
		Requests    int64
		Retries     int64
		WireBytes   *int64   `json:"wire_bytes"`
		TakenRate   *float64 `json:"taken_per_second"`
		SentRate    *float64 `json:"sent_per_second"`
		LostRate    *float64 `json:"lost_per_second"`
		WaitingRate *float64 `json:"waiting_per_second"`
		RetryRate   *float64 `json:"retries_per_second"`
		WireRate    *float64 `json:"wire_bytes_per_second"`
		Ack         *float64 `json:"ack_seconds"`
		Queue       struct{ Items, Bytes float64 }
		InFlight    struct{ Requests float64 } `json:"in_flight"`
		Responses   []shownCount
		Dropped     []shownCount
	}

	shownCount struct {
		Reason, Status string
		Count          int64
	}

	shownOverview struct {
		Started, Loaded time.Time
		Over            *float64 `json:"over_seconds"`
		Process         struct {
			CPU *float64 `json:"cpu_cores"`
			RSS *float64 `json:"rss_bytes"`
			GC  *float64 `json:"gc_cpu_ratio"`
		}
		Totals struct {
			In           *float64 `json:"in_per_second"`
			Limited      *float64 `json:"limited_per_second"`
			Out          *float64 `json:"out_per_second"`
			Lost         *float64 `json:"dropped_per_second"`
			Wire         *float64 `json:"wire_bytes_per_second"`
			Queued       float64  `json:"queued_bytes"`
			Destinations int
		}
		Latest   map[string]*float64
		Targets  shownCounts
		Findings []struct{ Title, Severity string }
		Nodes    []struct {
			ID           string
			Rates        *struct{ In, Out, Limited, Dropped, Refused *float64 }
			Targets      *shownCounts
			Destinations []shownDestination
		}
	}

	shownDelivery struct {
		Over      *float64 `json:"over_seconds"`
		Exporters []struct {
			Exporter     string
			Destinations []shownDestination
		}
	}

	shownCounts struct{ Healthy, Failing, Unknown, Dropped, Elsewhere int }

	shownTargets struct {
		Total  int
		Counts shownCounts
		Errors []struct {
			Reason string
			Count  int
		}
		Jobs []struct {
			Job              string
			Targets, Healthy int
			Failing, Dropped int
		}
	}

	shownCardinality struct {
		Processors []struct {
			Over     *float64 `json:"over_seconds"`
			New      *float64 `json:"new_per_minute"`
			Gone     *float64 `json:"gone_per_minute"`
			Series   float64
			Metrics  float64
			Admitted float64                        `json:"admitted_total"`
			Expired  float64                        `json:"expired_total"`
			Memory   float64                        `json:"memory_bytes"`
			Sample   float64                        `json:"sample_size"`
			Rejected struct{ Value, Error float64 } `json:"rejected_series"`
			Limits   []struct {
				Rule   string
				Used   float64
				Max    float64
				Points float64 `json:"rejected_points"`
			}
		}
	}
)

func (d *shownDestination) lost() (n int64) {
	for _, drop := range d.Dropped {
		n += drop.Count
	}
	return n
}

func known(n *float64) float64 {
	if n == nil {
		return math.NaN()
	}
	return *n
}

// near tolerates the samples in flight between two components when they are read: those of two scrapes.
func (o *shownOverview) near(a, b float64) bool {
	return math.Abs(a-b)*known(o.Over) <= 2.5*perScrape
}

// In each situation the console's numbers add up and agree with the metrics, and the page shows them.
func TestConsoleNumbers(t *testing.T) {
	t.Parallel()
	browser := console.Open(t)
	var page strings.Builder
	page.WriteString("# TYPE goose gauge\n")
	for i := range perScrape {
		fmt.Fprintf(&page, "goose{ring=\"r%02d\"} %d\n", i, i)
	}
	for _, s := range situations {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.run(t, browser, page.String())
		})
	}
}

func (s *situation) run(t *testing.T, browser *console.Browser, body string) {
	target := targets.New(t, targets.Page{Body: body})
	a, b := rwserver.New(t, rwserver.Options{CountOnly: true}), rwserver.New(t, rwserver.Options{CountOnly: true})
	a.Always(s.a)
	b.Always(s.b)
	endpoint, free, second := freeport.Addr(t), freeport.Addr(t), freeport.Addr(t)
	configs := []string{
		fmt.Sprintf(scraping, a.URL(), jobs(job("goose", target.Addr(), ""))),
		fmt.Sprintf("extensions: {console: {endpoint: %s}}\nservice: {extensions: [health_check, console]}", endpoint),
	}
	for part := range strings.SplitSeq(s.config, over) {
		if part == "" {
			continue
		}
		configs = append(configs, addressed(part, a.URL(), b.URL(), free, t.TempDir(), target.Addr(), second))
	}
	c := startDistribution(t, cmp.Or(s.distribution, "godwit-agent"), configs...)
	api := "http://" + endpoint + "/api/v1/"
	p := browser.Page(t, console.Wide, "http://"+endpoint+"/", "")
	p.Do(listens)
	now := &staged{collector: c, target: target, a: a, b: b, api: api, page: p}
	now.comesTo(t, s.holds)
	wait.Until(t, time.Minute, func() (bool, string) {
		why := now.asReceived(t)
		return why == "", why
	})
	p.Reads("main", s.reads...)
	now.shows(t)
	if s.then != nil {
		s.then(t, now)
		now.comesTo(t, s.thenHolds)
	}
}

// comesTo waits until the numbers meet the condition and agree with the metrics.
func (s *staged) comesTo(t *testing.T, holds func(*shownOverview) string) {
	t.Helper()
	wait.Until(t, time.Minute, func() (bool, string) {
		var o shownOverview
		if err := look(s.api+"overview", &o); err != nil {
			return false, err.Error()
		}
		require.Empty(t, unknownAtFirst(&o))
		why := all(longEnough, holds, addsUp)(&o)
		return why == "", why
	})
	wait.Until(t, time.Minute, func() (bool, string) {
		why := sandwich(t, s.collector, s.api)
		return why == "", why
	})
}

// look decodes a response of the API.
func look(url string, into any) error {
	response, err := http.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	return json.NewDecoder(response.Body).Decode(into)
}

// unknownAtFirst complains of rates that are given before there are two measurements: they would be zero, or all since
// the start.
func unknownAtFirst(o *shownOverview) string {
	if o.Over != nil {
		return ""
	}
	t := &o.Totals
	return say(t.In == nil && t.Out == nil && t.Limited == nil && t.Lost == nil && t.Wire == nil, "rates over no time: %+v", *t)
}

// addressed replaces the placeholders %[n]s of a configuration.
func addressed(config string, values ...string) string {
	for i, v := range values {
		config = strings.ReplaceAll(config, fmt.Sprintf("%%[%d]s", i+1), v)
	}
	return config
}

// longEnough requires a period in which the tolerance of near is small, a quarter of the samples.
func longEnough(o *shownOverview) string {
	return say(known(o.Over) >= 9, "rates are over %v s", known(o.Over))
}

// addsUp checks the balance of each destination, and that the last point of each chart is the number above it.
func addsUp(o *shownOverview) string {
	for i := range o.Nodes {
		for _, d := range o.Nodes[i].Destinations {
			if missing := d.Taken - d.Sent - d.lost() - d.Waiting; missing < 0 || missing > perScrape {
				return fmt.Sprintf("%s: %d taken are not %d sent + %d lost + %d waiting", d.Name, d.Taken, d.Sent, d.lost(), d.Waiting)
			}
			if taken, rest := known(d.TakenRate), known(d.SentRate)+known(d.LostRate)+known(d.WaitingRate); !o.near(taken, rest) {
				return fmt.Sprintf("%s: %v/s taken are not %v/s", d.Name, taken, rest)
			}
		}
	}
	for name, number := range map[string]*float64{"in": o.Totals.In, "out": o.Totals.Out, "limited": o.Totals.Limited, "dropped": o.Totals.Lost, "rss": o.Process.RSS} {
		if last := o.Latest[name]; (last == nil) != (number == nil) || last != nil && *last != *number {
			return fmt.Sprintf("%s is %v, and %v in its chart", name, known(number), known(last))
		}
	}
	return ""
}

// sandwich reads the metrics before and after the console, whose numbers must lie between.
func sandwich(t *testing.T, c *collector, api string) string {
	t.Helper()
	before := page(t, c.telemetry)
	var d shownDelivery
	var list shownTargets
	var series shownCardinality
	var o shownOverview
	for path, into := range map[string]any{"delivery": &d, "targets?limit=1": &list, "cardinality": &series, "overview": &o} {
		if err := look(api+path, into); err != nil {
			return err.Error()
		}
	}
	after := page(t, c.telemetry)
	shown := map[string]float64{}
	for i := range d.Exporters {
		for _, to := range d.Exporters[i].Destinations {
			shown["otelcol_exporter_sent_metric_points"] += float64(to.Sent)
			shown["otelcol_exporter_send_failed_metric_points"] += float64(to.lost())
			if strings.HasPrefix(d.Exporters[i].Exporter, "remotewrite") {
				shown["otelcol_exporter_remotewrite_requests"] += float64(to.Requests)
				shown["otelcol_exporter_remotewrite_retries"] += float64(to.Retries)
				shown["otelcol_exporter_remotewrite_wire_bytes"] += float64(*to.WireBytes)
				shown["otelcol_exporter_remotewrite_queue_bytes"] += to.Queue.Bytes
				shown["otelcol_exporter_remotewrite_queued_blocks"] += to.Queue.Items
				shown["otelcol_exporter_remotewrite_in_flight"] += to.InFlight.Requests
			}
		}
	}
	for _, p := range series.Processors {
		shown["otelcol_processor_cardinality_admitted_series"] += p.Admitted
		shown["otelcol_processor_cardinality_expired_series"] += p.Expired
		for _, l := range p.Limits {
			shown["otelcol_processor_cardinality_rejected_points"] += l.Points
		}
	}
	for name, value := range shown {
		if why := between(name, value, metric(t, before, name), metric(t, after, name)); why != "" {
			return why
		}
	}
	counted := map[string]shownCounts{"": list.Counts} // of all receivers, and of each
	for i := range o.Nodes {
		if own := o.Nodes[i].Targets; own != nil {
			counted[fmt.Sprintf("receiver=%q", strings.TrimPrefix(o.Nodes[i].ID, "receiver/"))] = *own
		}
	}
	const name = "otelcol_receiver_fastprometheus_targets"
	for of, counts := range counted {
		for state, n := range map[string]int{"healthy": counts.Healthy, "failing": counts.Failing, "unknown": counts.Unknown, "dropped": counts.Dropped} {
			labels := []string{of, fmt.Sprintf("state=%q", state)}
			if why := between(fmt.Sprint(name, labels), float64(n), metricWith(t, before, name, labels...), metricWith(t, after, name, labels...)); why != "" {
				return why
			}
		}
	}
	// Memory grows and shrinks between two readings.
	rss := metric(t, after, "otelcol_process_memory_rss")
	return say(math.Abs(known(o.Process.RSS)-rss) < 0.3*rss, "the console says %v bytes of memory, the metrics %v", known(o.Process.RSS), rss)
}

// asReceived compares the samples that the console calls acknowledged with those that the destinations received.
func (s *staged) asReceived(t *testing.T) string {
	t.Helper()
	got := func() map[string]int {
		return map[string]int{s.a.URL(): s.a.Totals().Samples, s.b.URL(): s.b.Totals().Samples}
	}
	before := got()
	var d shownDelivery
	if err := look(s.api+"delivery", &d); err != nil {
		return err.Error()
	}
	after, sent := got(), map[string]int{}
	for i := range d.Exporters {
		for _, to := range d.Exporters[i].Destinations {
			sent[to.Name] += int(to.Sent)
		}
	}
	for url := range before { // samples in flight are received but not acknowledged yet
		if n := sent[url]; n > after[url] || n < before[url]-3*ofAScrape {
			return fmt.Sprintf("%s had %d samples, then the console said %d, then it had %d", url, before[url], n, after[url])
		}
	}
	return ""
}

// between checks that a value that goes up and down lies between two readings.
func between(name string, shown, before, after float64) string {
	return say(min(before, after) <= shown && shown <= max(before, after), "%s was %v, then the console said %v, then it was %v", name, before, shown, after)
}
