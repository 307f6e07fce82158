// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// A relay whose receiver knows runs of series that come in the same order: docs/design/066.
const relayRoad = `
receivers:
  remotewrite: {endpoint: %s}
processors:
  memory_limiter: {check_interval: 1s, limit_mib: 1000}
exporters:
  remotewrite: {endpoint: "%s", target_info: {enabled: false}, translation_strategy: UnderscoreEscapingWithoutSuffixes, batch: {timeout: 20ms}%s}
service:
  pipelines:
    metrics: {receivers: [remotewrite], processors: [memory_limiter], exporters: [remotewrite]}
`

const (
	relaySenders = 4
	relayRounds  = 40
	relayMetrics = 25
)

// Several senders write, at the same time, the same series for their own targets, by 1.0 and 2.0: mostly in the same
// order, but also in another one, cut anywhere, alternating, with series missing or ended. Each sample arrives exactly
// once, and nothing else does.
func TestRelaysWhatSeveralSendersWriteTurnByTurn(t *testing.T) {
	t.Parallel()
	relayTurnByTurn(t, rwserver.New(t, rwserver.Options{}), "")
}

// The same over a queue on disk, to a server that sometimes fails.
func TestRelaysOverDiskToAServerThatFails(t *testing.T) {
	t.Parallel()
	server := rwserver.New(t, rwserver.Options{})
	const failures = 6
	for range failures {
		server.Then(rwserver.Step{Status: http.StatusServiceUnavailable}, rwserver.Step{}, rwserver.Step{})
	}
	relayTurnByTurn(t, server, fmt.Sprintf(", queue: {directory: %q}", t.TempDir()))
	assert.Less(t, server.Left(), 3*failures, "it has failed")
}

func relayTurnByTurn(t *testing.T, server *rwserver.Server, more string) {
	addr := freeport.Addr(t)
	c := startDistribution(t, "godwit-gateway", fmt.Sprintf(relayRoad, addr, server.URL(), more))
	c.WaitLog(firstWords, reuses)

	var all []*relaySender
	var done sync.WaitGroup
	for i := range relaySenders {
		s := &relaySender{
			url: fmt.Sprintf("http://%s/api/v1/write", addr), number: i, second: i%2 == 1,
			random: rand.New(rand.NewPCG(uint64(i), 19)), written: map[string][]relaySample{},
		}
		all = append(all, s)
		done.Go(func() { s.write(t) })
	}
	done.Wait()
	require.False(t, t.Failed())

	want, total := map[string][]relaySample{}, 0
	for _, s := range all {
		for series, samples := range s.written {
			want[series] = samples
			total += len(samples)
		}
	}
	wait.Until(t, firstSeries, func() (bool, string) {
		n := server.Totals().Samples
		return n >= total, fmt.Sprintf("%d samples of %d arrived", n, total)
	})
	assert.Positive(t, c.metric(t, "otelcol_receiver_remotewrite_known_bytes"))
	assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))
	assert.Equal(t, total, server.Totals().Samples)
	got := map[string][]relaySample{}
	for _, s := range server.Series("") {
		for _, sample := range s.Samples {
			got[s.Labels.String()] = append(got[s.Labels.String()], relaySample{sample.T, math.Float64bits(sample.V)})
		}
	}
	for series, samples := range want {
		assert.Equal(t, samples, got[series], series)
		delete(got, series)
	}
	assert.Empty(t, got)
	assert.Empty(t, server.Violations())
	assert.Empty(t, server.StepsBack())
	assert.NotContains(t, c.Output(), "panic")
}

// relaySender writes the series of its targets, one request after the other.
type relaySender struct {
	url     string
	number  int
	second  bool // whether it writes 2.0
	random  *rand.Rand
	written map[string][]relaySample // by series
}

type relaySample struct {
	at   int64
	bits uint64
}

// relaySeries is one series of a target. The pages of all targets are similar.
type relaySeries struct {
	labels labels.Labels
	metric int
	number int
}

func (s *relaySender) targets() (all [][]relaySeries) {
	for target := range 3 {
		var page []relaySeries
		for metric := range relayMetrics {
			if metric%11 == target { // pages differ a little
				continue
			}
			for i := range 1 + metric%4 {
				page = append(page, relaySeries{labels.FromStrings(
					"__name__", fmt.Sprintf("relayed_%d_total", metric), "code", fmt.Sprint(200+i),
					"instance", fmt.Sprintf("sender-%d-%0*d:9100", s.number, 1+s.number%3, target), "job", []string{"node", "ns/node"}[s.number/2], "path", "/of/it",
				), metric, len(page)})
			}
		}
		all = append(all, page)
	}
	return all
}

func (s *relaySender) write(t *testing.T) {
	targets := s.targets()
	start := time.Now().Add(-time.Minute).UnixMilli()
	for round := range relayRounds {
		for _, request := range s.requests(targets, round) {
			var body []byte
			var err error
			if s.second {
				body, err = s.body2(request, start+int64(round), round)
			} else {
				body, err = s.body1(request, start+int64(round), round)
			}
			if !assert.NoError(t, err) || !assert.NoError(t, s.post(t.Context(), body)) {
				return
			}
		}
	}
}

// requests returns the requests of a round.
func (s *relaySender) requests(targets [][]relaySeries, round int) (all [][]relaySeries) {
	switch round % 8 {
	case 3: // the first half of each page, then the second halves
		var first, second []relaySeries
		for _, page := range targets {
			first, second = append(first, page[:len(page)/2]...), append(second, page[len(page)/2:]...)
		}
		return [][]relaySeries{slices.Concat(first, second)}
	case 4: // cut anywhere
		whole := slices.Concat(targets...)
		at := 1 + s.random.IntN(len(whole)-1)
		return [][]relaySeries{whole[:at], whole[at:]}
	case 5: // one series is missing
		whole := slices.Concat(targets...)
		at := s.random.IntN(len(whole))
		return [][]relaySeries{slices.Delete(whole, at, at+1)}
	case 6: // in another order
		others := slices.Clone(targets)
		slices.Reverse(others)
		return [][]relaySeries{slices.Concat(others...)}
	case 7: // the pages alternate
		var turns []relaySeries
		for i := 0; ; i++ {
			before := len(turns)
			for _, page := range targets {
				if i < len(page) {
					turns = append(turns, page[i])
				}
			}
			if len(turns) == before {
				return [][]relaySeries{turns}
			}
		}
	}
	return [][]relaySeries{slices.Concat(targets...)}
}

// say returns the value of a series in a round: mostly a unique number, sometimes zero, which a request omits, and
// sometimes a staleness marker.
func (s *relaySender) say(series *relaySeries, at int64, round int) float64 {
	v := float64(s.number)*1e8 + float64(series.number)*1e4 + float64(round) + float64(series.labels.Hash()%1000)/1e3
	switch {
	case s.random.IntN(9) == 0:
		v = 0
	case round%6 == 1 && s.random.IntN(40) == 0:
		v = math.Float64frombits(value.StaleNaN)
	}
	key := series.labels.String()
	s.written[key] = append(s.written[key], relaySample{at, math.Float64bits(v)})
	return v
}

func (s *relaySender) body1(all []relaySeries, at int64, round int) ([]byte, error) {
	var r prompb.WriteRequest
	for i := range all {
		r.Timeseries = append(r.Timeseries, prompb.TimeSeries{
			Labels:  prompb.FromLabels(all[i].labels, nil),
			Samples: []prompb.Sample{{Timestamp: at, Value: s.say(&all[i], at, round)}},
		})
	}
	return r.Marshal()
}

func (s *relaySender) body2(all []relaySeries, at int64, round int) ([]byte, error) {
	var r writev2.Request
	symbols := writev2.NewSymbolTable()
	if round%5 == 4 { // all symbol references change
		symbols.Symbolize(fmt.Sprint("nobody says ", round))
	}
	for i := range all {
		r.Timeseries = append(r.Timeseries, writev2.TimeSeries{
			LabelsRefs: symbols.SymbolizeLabels(all[i].labels, nil),
			Metadata: writev2.Metadata{
				Type:    []writev2.Metadata_MetricType{writev2.Metadata_METRIC_TYPE_COUNTER, writev2.Metadata_METRIC_TYPE_GAUGE}[all[i].metric%2],
				HelpRef: symbols.Symbolize(fmt.Sprint("Help of ", all[i].metric)),
			},
			Samples: []writev2.Sample{{Timestamp: at, Value: s.say(&all[i], at, round)}},
		})
	}
	r.Symbols = symbols.Symbols()
	return r.Marshal()
}

func (s *relaySender) post(ctx context.Context, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(snappy.Encode(nil, body)))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("X-Prometheus-Remote-Write-Version", "0.1.0")
	if s.second {
		req.Header.Set("Content-Type", "application/x-protobuf;proto=io.prometheus.write.v2.Request")
		req.Header.Set("X-Prometheus-Remote-Write-Version", "2.0.0")
	}
	req.Header.Set("Content-Encoding", "snappy")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	if err = resp.Body.Close(); err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("sender %d was answered %d", s.number, resp.StatusCode)
	}
	return err
}
