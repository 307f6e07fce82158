// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/process"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// vmagentVariable names the environment variable with the path of the vmagent to compare with.
const vmagentVariable = "VMAGENT"

// Both have the same rules. vmagent's `total` also adds the first value of a new series, so the rule asks for
// `total_prometheus` as well. Without staleness_interval vmagent would forget inputs after an interval.
const (
	ourAggregation = `
receivers: {remotewrite: {endpoint: %q}}
processors:
  cardinality:
    rules:
      - {name: counters, match: {metric: honks_total}, aggregate: {without: [ring], interval: 1s}}
      - {name: gauges, match: {metric: height}, aggregate: {without: [ring], interval: 1s, outputs: [sum, count, min, max, avg, last]}}
exporters: {remotewrite: {endpoint: %q, translation_strategy: UnderscoreEscapingWithoutSuffixes}}
service: {pipelines: {metrics: {receivers: [remotewrite], processors: [cardinality], exporters: [remotewrite]}}}
`
	theirAggregation = `
- {match: honks_total, interval: 1s, staleness_interval: 1h, without: [ring], outputs: [total_prometheus, total]}
- {match: height, interval: 1s, staleness_interval: 1h, without: [ring], outputs: [sum_samples, count_series, min, max, avg, last]}
`
)

// theirNames maps our names of aggregates to vmagent's.
var theirNames = map[string]string{
	"honks_total":  "honks_total:1s_without_ring_total_prometheus",
	"height_count": "height:1s_without_ring_count_series",
	"height_min":   "height:1s_without_ring_min",
	"height_max":   "height:1s_without_ring_max",
	"height_avg":   "height:1s_without_ring_avg",
	"height_last":  "height:1s_without_ring_last",
}

// aggregators are our gateway and a vmagent with the same rules.
type aggregators struct {
	t              *testing.T
	gateway        *collector
	ours, theirs   string // URLs that receive remote write
	made, theyMade *rwserver.Server
	last           int64 // timestamp of the last samples sent
}

func startAggregators(t *testing.T) *aggregators {
	t.Helper()
	binary := os.Getenv(vmagentVariable)
	if binary == "" {
		t.Skipf("no vmagent to compare with: set %s to its binary", vmagentVariable)
	}
	ours, theirs := freeport.Addr(t), freeport.Addr(t)
	a := &aggregators{
		t: t, ours: "http://" + ours + "/api/v1/write", theirs: "http://" + theirs + "/api/v1/write",
		made: rwserver.New(t, rwserver.Options{}), theyMade: rwserver.New(t, rwserver.Options{}),
	}
	vmagent := process.Start(t, process.Settings{Path: binary, Args: []string{
		"-httpListenAddr=" + theirs,
		"-remoteWrite.url=" + a.theyMade.URL(),
		"-remoteWrite.tmpDataPath=" + t.TempDir(),
		"-remoteWrite.forcePromProto",
		"-remoteWrite.streamAggr.config=" + configFile(t, theirAggregation),
	}})
	vmagent.WaitHTTP(firstWords, "http://"+theirs+"/health", nil)
	a.gateway = startDistribution(t, "godwit-gateway", fmt.Sprintf(ourAggregation, ours, a.made.URL()))
	return a
}

// input is a sample of a series to aggregate.
type input struct {
	name, flock, ring string
	start, at         int64 // in milliseconds; start 0 means unknown
	value             float64
}

func (in *input) labels() labels.Labels {
	return labels.FromStrings("__name__", in.name, "flock", in.flock, "ring", in.ring)
}

// tick returns the timestamp for the next samples: later than that of any samples before.
func (a *aggregators) tick() int64 {
	a.last = max(a.last+1, time.Now().UnixMilli())
	return a.last
}

// send sends the same samples to both, in one request each. Ours also gets the metric types; vmagent takes them from
// its rules.
func (a *aggregators) send(all []input) {
	a.t.Helper()
	var first prompb.WriteRequest
	second, symbols := writev2.Request{}, writev2.NewSymbolTable()
	for _, in := range all {
		typ := writev2.Metadata_METRIC_TYPE_GAUGE
		if in.name == "honks_total" {
			typ = writev2.Metadata_METRIC_TYPE_COUNTER
		}
		first.Timeseries = append(first.Timeseries, prompb.TimeSeries{
			Labels: prompb.FromLabels(in.labels(), nil), Samples: []prompb.Sample{{Timestamp: in.at, Value: in.value}},
		})
		second.Timeseries = append(second.Timeseries, writev2.TimeSeries{
			LabelsRefs: symbols.SymbolizeLabels(in.labels(), nil), Metadata: writev2.Metadata{Type: typ},
			Samples: []writev2.Sample{{Timestamp: in.at, Value: in.value, StartTimestamp: in.start}},
		})
	}
	second.Symbols = symbols.Symbols()
	body, err := first.Marshal()
	require.NoError(a.t, err)
	a.post(a.theirs, "application/x-protobuf", "0.1.0", body)
	body, err = second.Marshal()
	require.NoError(a.t, err)
	a.post(a.ours, "application/x-protobuf;proto=io.prometheus.write.v2.Request", "2.0.0", body)
}

func (a *aggregators) post(url, contentType, version string, body []byte) {
	a.t.Helper()
	req, err := http.NewRequestWithContext(a.t.Context(), http.MethodPost, url, bytes.NewReader(snappy.Encode(nil, body)))
	require.NoError(a.t, err)
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("Content-Encoding", "snappy")
	req.Header.Set("X-Prometheus-Remote-Write-Version", version)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(a.t, err)
	require.NoError(a.t, resp.Body.Close())
	require.Equal(a.t, 2, resp.StatusCode/100, "status %d of %s", resp.StatusCode, url)
}

// said returns the values of an aggregate for a flock, in order of arrival.
func said(s *rwserver.Server, name, flock string) (all []float64) {
	for _, series := range s.Series(name, "flock", flock) {
		for _, sample := range series.Samples {
			if !sample.Stale() {
				all = append(all, sample.V)
			}
		}
	}
	return all
}

// is reports whether the last value is the wanted one.
func is(all []float64, want float64) bool {
	return len(all) > 0 && math.Abs(all[len(all)-1]-want) < 1e-6
}

// agree waits until the last values of both, per aggregate and flock, are the wanted ones. It calls meanwhile before
// each check.
func (a *aggregators) agree(want map[string]map[string]float64, meanwhile func()) {
	a.t.Helper()
	wait.Until(a.t, delivery, func() (bool, string) {
		meanwhile()
		for name, flocks := range want {
			for flock, v := range flocks {
				ours, theirs := said(a.made, name, flock), said(a.theyMade, theirNames[name], flock)
				if !is(ours, v) || !is(theirs, v) {
					return false, fmt.Sprintf("%s of flock %s is to be %v: ours says %v, vmagent %v", name, flock, v, ours, theirs)
				}
			}
		}
		return true, ""
	})
}

// Sums of counters equal vmagent's when inputs, at random, start late, are silent, are reset or send late samples. So
// do all aggregates of gauges except the sum.
func TestAggregatesAreWhatVmagentMakes(t *testing.T) {
	t.Parallel()
	a := startAggregators(t)
	const flocks, rounds = 20, 40
	random := rand.New(rand.NewPCG(21, 56))
	type bird struct {
		input

		known bool
	}
	seen, grown := map[string]int{}, map[string]float64{}
	birds := make([][]*bird, flocks)
	for range rounds {
		var all []input
		at := a.tick()
		for i := range birds {
			flock := strconv.Itoa(i)
			if len(birds[i]) < 2 || random.IntN(6) == 0 {
				birds[i] = append(birds[i], &bird{input: input{name: "honks_total", flock: flock, ring: strconv.Itoa(len(birds[i])), value: float64(random.IntN(1000))}})
			}
			for _, b := range birds[i] {
				before := b.value
				switch what := random.IntN(10); {
				case what == 0:
					seen["silence"]++
					continue
				case what == 1 && b.known:
					seen["late"]++
					late := b.input
					late.at--
					late.value += 5000
					all = append(all, late)
					continue
				case what == 2 && before > 1:
					seen["reset"]++
					b.value = math.Floor(before / 2)
				default:
					b.value += float64(random.IntN(1000))
				}
				b.at = at
				switch {
				case !b.known: // a new input's first value may be older than the aggregate, so it does not count
				case b.value < before:
					grown[flock] += b.value
				default:
					grown[flock] += b.value - before
				}
				b.known = true
				all = append(all, b.input)
			}
		}
		a.send(all)
	}
	for _, what := range []string{"silence", "late", "reset"} {
		assert.Positive(t, seen[what], what)
	}

	want := map[string]map[string]float64{"honks_total": grown}
	for _, name := range []string{"count", "min", "max", "avg", "last"} {
		want["height_"+name] = map[string]float64{}
	}
	for i := range flocks {
		flock, n := strconv.Itoa(i), 1+random.IntN(6)
		want["height_count"][flock] = float64(n)
		want["height_min"][flock], want["height_max"][flock] = 100, float64(100*n)
		want["height_avg"][flock], want["height_last"][flock] = float64(100*(n+1))/2, float64(100*n)
	}
	heights := func() { // called repeatedly, because vmagent aggregates only samples of the current interval
		var all []input
		for i := range flocks {
			for ring := range int(want["height_count"][strconv.Itoa(i)]) {
				all = append(all, input{name: "height", flock: strconv.Itoa(i), ring: strconv.Itoa(ring), at: a.tick(), value: float64(100 * (ring + 1))})
			}
		}
		a.send(all)
	}
	a.agree(want, heights)
	assert.Empty(t, a.made.StepsBack())
	assert.Zero(t, a.gateway.Stop(syscall.SIGTERM, drainTime))
}

// The differences: our sum of gauges adds the last value of each series, vmagent's all samples of an interval. And of a
// counter with a start timestamp we count everything since then; vmagent either ignores its first value, or counts that
// of every counter.
func TestAggregatesThatDifferFromVmagents(t *testing.T) {
	t.Parallel()
	a := startAggregators(t)
	const flock = "grey"
	began := a.tick()
	a.send([]input{
		{name: "height", flock: flock, ring: "a", at: a.tick(), value: 5},
		{name: "height", flock: flock, ring: "a", at: a.tick(), value: 6},
		{name: "height", flock: flock, ring: "a", at: a.tick(), value: 7},
		{name: "height", flock: flock, ring: "b", at: a.tick(), value: 1},
		{name: "honks_total", flock: flock, ring: "a", start: began, at: a.tick(), value: 30},
		{name: "honks_total", flock: flock, ring: "a", start: began, at: a.tick(), value: 42},
	})
	for _, of := range []struct {
		server *rwserver.Server
		name   string
		want   float64
	}{
		{a.made, "height_sum", 7 + 1},
		{a.theyMade, "height:1s_without_ring_sum_samples", 5 + 6 + 7 + 1},
		{a.made, "honks_total", 42},
		{a.theyMade, "honks_total:1s_without_ring_total_prometheus", 12},
		{a.theyMade, "honks_total:1s_without_ring_total", 12},
	} {
		wait.Until(t, delivery, func() (bool, string) {
			all := said(of.server, of.name, flock)
			return slices.Contains(all, of.want), fmt.Sprintf("%s said %v, not %v", of.name, all, of.want)
		})
	}
	assert.Zero(t, a.gateway.Stop(syscall.SIGTERM, drainTime))
}
