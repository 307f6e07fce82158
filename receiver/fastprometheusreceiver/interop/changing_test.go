// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/attributesprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/filterprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/resourceprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/transformprocessor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest/observer"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

// changers are processors that change attributes, and others next to them.
const changers = `
  memory_limiter: {check_interval: 1s, limit_mib: 4000}
  attributes/insert: {actions: [{key: region, value: north, action: insert}]}
  attributes/edit: {actions: [{key: code, value: changed, action: update}, {key: region, value: far, action: upsert}, {key: user, action: delete}]}
  attributes/convert: {actions: [{key: path, action: hash}, {key: code, action: convert, converted_type: int}]}
  attributes/extract: {actions: [{key: path, pattern: "^/(?P<kind>[a-z]+)(?P<number>[0-9]+)$", action: extract}]}
  attributes/rename: {actions: [{key: route, from_attribute: path, action: insert}, {key: path, action: delete}]}
  attributes/include: {include: {match_type: regexp, metric_names: ["flights.*", "took.*"]}, actions: [{key: code, value: included, action: upsert}]}
  attributes/exclude: {exclude: {match_type: strict, metric_names: [birds]}, actions: [{key: user, action: delete}]}
  attributes/resources: {include: {match_type: regexp, resources: [{key: service.instance.id, value: "localhost.*"}]}, actions: [{key: code, action: hash}]}
  attributes/upsert: {actions: [{key: kind, from_attribute: code, action: upsert}, {key: le, action: hash}]}
  batch: {timeout: 5ms, send_batch_size: 100}
  batch/cut: {timeout: 5ms, send_batch_size: 30, send_batch_max_size: 37}
  transform: {metric_statements: [{context: datapoint, statements: ['set(attributes["path"], Concat([attributes["path"], "x"], ""))', 'delete_key(attributes, "user")']}]}
  filter/names: {metrics: {exclude: {match_type: regexp, metric_names: ["birds", "took", "up", "scrape_.*"]}}}
  filter/points: {error_mode: ignore, metric_conditions: ['datapoint.attributes["path"] == "/page3"', 'IsMatch(datapoint.attributes["path"], "/(bird[0-4]|took1|size1)")']}
  filter/values: {error_mode: ignore, metrics: {datapoint: ['IsMatch(String(value_double), "[147]$")', 'IsMatch(String(value_double), "[258][.]5$")']}}
  filter/target: {metrics: {metric: ['resource.attributes["service.instance.id"] != nil and IsMatch(resource.attributes["service.instance.id"], "localhost.*")']}}
  resource/insert: {attributes: [{key: cluster, value: north, action: insert}]}
  resource/edit: {attributes: [{key: service.name, value: renamed, action: upsert}, {key: service.instance.id, action: hash}, {key: server.port, action: delete}]}
  resource/rename: {attributes: [{key: host, from_attribute: server.address, action: insert}, {key: server.address, action: delete}, {key: service.name, value: other, action: update}]}
  cardinality: {}
  cardinality/labels: {rules: [{name: labels, match: {metric: "*"}, max_series: 100000, label_limits: {user: 0}}]}
  cardinality/few: {rules: [{name: few, match: {metric: "kept_*", attributes: {target: a, zone: zone0}}, max_series: 6, on_exceed: [drop]}]}
`

// changingRoads are pipelines of them. Each exists twice: with and without reuse of memory.
var changingRoads = []string{
	"attributes/insert",
	"attributes/edit",
	"attributes/convert, attributes/extract",
	"attributes/rename",
	"attributes/include, attributes/exclude",
	"attributes/resources, resource/edit",
	"resource/edit, attributes/resources",
	"resource/insert",
	"resource/rename",
	"resource/rename, attributes/edit",
	"attributes/insert, resource/insert",
	"attributes/edit, cardinality/labels",
	"cardinality/labels, attributes/rename",
	"resource/edit, cardinality/few",
	"cardinality/few, attributes/convert, resource/insert",
	"filter/names",
	"filter/points, resource/insert",
	"attributes/edit, filter/points",
	"filter/values, attributes/rename, filter/names",
	"filter/target, batch",
	"filter/values, resource/edit, batch/cut",
	"batch, filter/names",
	"cardinality, filter/names",
	"attributes/rename, cardinality, resource/rename",
	"batch",
	"batch/cut",
	"attributes/edit, resource/edit, batch",
	"attributes/rename, batch/cut",
	"batch, attributes/edit, resource/edit",
	"resource/insert, batch/cut, attributes/rename",
}

// somePieces are the processors for random pipelines, with the seed of the environment variable. None of them merges
// several series into one: which of them arrives would depend on their order.
const seedVariable, randomRoads = "GODWIT_ROADS", 24

// withoutUser are those that remove the label that cardinality/labels limits.
var withoutUser = []string{"attributes/edit", "attributes/exclude", "transform"}

var somePieces = []string{
	"attributes/insert", "attributes/edit", "attributes/convert", "attributes/extract", "attributes/rename", "attributes/include", "attributes/exclude",
	"attributes/resources", "attributes/upsert", "batch", "batch/cut", "transform", "resource/insert", "resource/edit", "resource/rename", "cardinality",
	"cardinality/labels", "filter/names", "filter/points", "filter/values",
}

// roadsToGo returns the pipelines, and additional random ones if there is a seed.
func roadsToGo(t *testing.T) []string {
	seed := os.Getenv(seedVariable)
	if seed == "" {
		return changingRoads
	}
	n, err := strconv.ParseUint(seed, 10, 64)
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(n, 19))
	all := slices.Clone(changingRoads)
	for range randomRoads {
		var road []string
		for _, i := range random.Perm(len(somePieces))[:1+random.IntN(4)] {
			road = append(road, somePieces[i])
		}
		if slices.Contains(road, "cardinality/labels") { // the field recognises what it collapses by the label
			road = slices.DeleteFunc(road, func(p string) bool { return slices.Contains(withoutUser, p) })
		}
		all = append(all, strings.Join(road, ", "))
	}
	return all
}

// keeps reports whether a processor of the pipeline keeps the metrics it gets, or does not say that it releases them.
// Metrics that batch keeps come back if behind it are only processors that change attributes, and none before it
// borrows them.
func keeps(road string) bool {
	before, behind, batched := strings.Cut(road, "batch")
	return strings.Contains(road, "transform") || strings.Contains(road, "filter") && strings.Contains(road, "cardinality") ||
		batched && strings.Contains(behind, "filter") || batched && (strings.Contains(before, "cardinality") || strings.Contains(behind, "cardinality") || strings.Contains(behind, "batch"))
}

// Pages change from one scrape to the next. From pageOfLabels on, the target has other labels, and it stays at the last
// page.
const pageOfLabels, lastPage = 4, 9

// A field has two targets for each pipeline, and receives what the pipeline writes.
type field struct {
	address string

	mu    sync.Mutex
	pages map[string]int // shown by each target of a pipeline; the last one is shown as often as it is requested
	got   map[string]map[string][]said
}

// said is the value of a series at a time.
type said struct {
	at   int64
	what string
}

func (f *field) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind, road, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	f.mu.Lock()
	defer f.mu.Unlock()
	switch kind {
	case "targets":
		f.discover(w, road)
	case "page":
		f.page(w, road, r.URL.Query())
	default:
		if err := f.take(road, r); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

// discover lists the targets of a pipeline. Once they have shown enough pages, they have other labels.
func (f *field) discover(w http.ResponseWriter, road string) {
	port := f.address[strings.LastIndex(f.address, ":"):]
	var list []string
	for name, host := range map[string]string{"a": "127.0.0.1", "b": "localhost"} {
		zone := 0
		if f.pages[road+name] > pageOfLabels {
			zone = 1
		}
		list = append(list, fmt.Sprintf(`{"targets":["%s%s"],"labels":{"target":"%s","zone":"zone%d","__param_target":"%s","__param_zone":"%d","__metrics_path__":"/page/%s"}}`,
			host, port, name, zone, name, zone, road))
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, "[%s]", strings.Join(list, ","))
}

func (f *field) page(w http.ResponseWriter, road string, asked map[string][]string) {
	name := asked["target"][0]
	n := f.pages[road+name]
	f.pages[road+name]++
	if asked["zone"][0] == "0" {
		n = min(n, pageOfLabels)
	} else if n > pageOfLabels && f.pages[road+"moved"+name] == 0 {
		n = pageOfLabels + 1
		f.pages[road+name], f.pages[road+"moved"+name] = n+1, 1
	}
	w.Header().Set("Content-Type", "application/openmetrics-text; version=1.0.0; charset=utf-8")
	fmt.Fprint(w, changingPage(name, min(n, lastPage)))
}

// changingPage returns one of a target's pages: some series are missing, and now and then some move to other families.
// Those that are on every page are for limits: which of several new series gets the last place depends on their order,
// which depends on the memory they are in.
func changingPage(target string, n int) string {
	r := rand.New(rand.NewPCG(uint64(target[0]), uint64(n/2))) // every other page has the series of the previous one
	var b strings.Builder
	b.WriteString("# TYPE flights counter\n")
	for i := range 12 {
		if r.IntN(4) > 0 {
			fmt.Fprintf(&b, "flights_total{code=\"%d\",path=\"/page%d\",user=\"u%d\"} %d # {trace_id=\"t%d\"} %d\n", 200+i%3, i, i, 100*n+i, n, n)
		}
	}
	if n%4 == 3 {
		fmt.Fprintf(&b, "# TYPE guests gauge\nguests{path=\"/once%d\"} %d\n", n, n)
	}
	b.WriteString("# TYPE birds gauge\n")
	for i := range 12 {
		if r.IntN(4) > 0 {
			fmt.Fprintf(&b, "birds{path=\"/bird%d\",user=\"u%d\"} %d.5\n", i, i, n)
		}
	}
	b.WriteString("# TYPE took histogram\n")
	for i := range 3 {
		if r.IntN(4) > 0 {
			of := fmt.Sprintf("code=\"200\",path=\"/took%d\"", i)
			fmt.Fprintf(&b, "took_bucket{%s,le=\"1.0\"} %d # {trace_id=\"h%d\"} 0.5\ntook_bucket{%s,le=\"+Inf\"} %d\ntook_count{%s} %d\ntook_sum{%s} %d\n",
				of, n, n, of, 2*n, of, 2*n, of, n)
		}
	}
	b.WriteString("# TYPE kept_birds gauge\n")
	for i := range 4 {
		fmt.Fprintf(&b, "kept_birds{path=\"/kept%d\",user=\"u%d\"} %d\n", i, i, n)
	}
	b.WriteString("# TYPE kept_flights counter\n")
	for i := range 4 { // half of them exceed the limit
		fmt.Fprintf(&b, "kept_flights_total{code=\"200\",path=\"/kept%d\"} %d\n", i, n)
	}
	b.WriteString("# TYPE kept_times histogram\n") // all of them exceed it
	fmt.Fprintf(&b, "kept_times_bucket{path=\"/kept\",le=\"+Inf\"} %d\nkept_times_count{path=\"/kept\"} %d\nkept_times_sum{path=\"/kept\"} %d\n", n, n, n)
	fmt.Fprintf(&b, "# TYPE sizes summary\nsizes{path=\"/size1\",quantile=\"0.5\"} %d\nsizes_count{path=\"/size1\"} %d\nsizes_sum{path=\"/size1\"} %d\n# EOF\n", n, n, n)
	return b.String()
}

func (f *field) take(road string, r *http.Request) error {
	got := f.got[road]
	if got == nil {
		got = map[string][]said{}
		f.got[road] = got
	}
	return eachSeries(r, func(s *promwrite.Series) {
		of := fmt.Sprint(s.Labels)
		if strings.Contains(of, "{__name__ scrape_") || strings.Contains(of, "__collapsed__") {
			return // the duration of scrapes differs, and so do collapsed series, which are sent once a minute
		}
		for _, v := range s.Samples {
			got[of] = append(got[of], said{v.Timestamp, fmt.Sprintf("%v %x", v.Value, math.Float64bits(v.Value))})
		}
		for _, e := range s.Exemplars {
			got["exemplars "+of] = append(got["exemplars "+of], said{e.Timestamp, fmt.Sprint(e.Labels, e.Value)})
		}
	})
}

// all returns what the series of a pipeline contained, in order of time, without repetitions.
func (f *field) all(road string) map[string][]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[string][]string{}
	for of, list := range f.got[road] {
		list = slices.Clone(list)
		slices.SortStableFunc(list, func(a, b said) int { return int(a.at - b.at) })
		for _, s := range list {
			if said := all[of]; len(said) == 0 || said[len(said)-1] != s.what {
				all[of] = append(said, s.what)
			}
		}
	}
	return all
}

// isThrough reports whether the last page of both targets has been requested more than once.
func (f *field) isThrough(road string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pages[road+"a"] > lastPage+2 && f.pages[road+"b"] > lastPage+2 && f.pages[road+"moveda"]+f.pages[road+"movedb"] == 2
}

// TestWhatChangesAttributesIsPutBack: with processors that change attributes, memory is reused, and the same arrives as
// without reuse.
func TestWhatChangesAttributesIsPutBack(t *testing.T) {
	f := &field{pages: map[string]int{}, got: map[string]map[string][]said{}}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	f.address = server.Listener.Addr().String()

	var receivers, exporters, between strings.Builder
	all := roadsToGo(t)
	for i, processors := range all {
		for _, reuse := range []string{"auto", "never"} {
			road := fmt.Sprintf("%s%d", reuse, i)
			fmt.Fprintf(&receivers, "  fastprometheus/%s: {reuse: %s, config: {scrape_configs: [{job_name: a, scrape_interval: 2s, scrape_timeout: 2s, http_sd_configs: [{url: '%s/targets/%s', refresh_interval: 1s}]}]}}\n",
				road, reuse, server.URL, road)
			fmt.Fprintf(&exporters, "  remotewrite/%s: {endpoint: '%s/write/%s', batch: {timeout: 5ms}}\n", road, server.URL, road)
			fmt.Fprintf(&between, "    metrics/%s: {receivers: [fastprometheus/%s], processors: [memory_limiter, %s], exporters: [remotewrite/%s]}\n", road, road, processors, road)
		}
	}
	c := start(t, fmt.Sprintf("receivers:\n%sprocessors:%sexporters:\n%sservice:\n  telemetry: {metrics: {level: none}, logs: {sampling: {enabled: false}}}\n  pipelines:\n%s",
		receivers.String(), changers, exporters.String(), between.String()), attributesprocessor.NewFactory(), resourceprocessor.NewFactory(), transformprocessor.NewFactory(), filterprocessor.NewFactory())

	for i, processors := range all {
		t.Run(processors, func(t *testing.T) {
			road, plain := fmt.Sprint("auto", i), fmt.Sprint("never", i)
			of := used
			if keeps(processors) {
				of = unused
			}
			for id, message := range map[string]string{road: of, plain: unused} {
				require.Equal(t, 1, c.log.Filter(func(e observer.LoggedEntry) bool {
					return e.Message == message && e.ContextMap()["otelcol.component.id"] == "fastprometheus/"+id
				}).Len(), "%s of %s", message, id)
			}
			require.Eventually(t, func() bool { return f.isThrough(road) && f.isThrough(plain) }, patience, glance)
			require.EventuallyWithT(t, func(t *assert.CollectT) {
				assert.Equal(t, f.all(plain), f.all(road))
			}, patience/6, 20*glance)
			require.Greater(t, len(f.all(road)), 30, "series")
		})
	}
}
