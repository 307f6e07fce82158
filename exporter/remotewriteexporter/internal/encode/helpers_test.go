// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/promwrite"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/loss"
)

// leastRun is the minimum number of similar messages that are declared to compression.
const leastRun = 5

// drops is a Telemetry that records its calls.
type drops struct {
	mu     sync.Mutex
	counts map[loss.Reason]int
	firsts map[loss.Reason]string
	panics []string
}

func (d *drops) Dropped(reason loss.Reason, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.counts == nil {
		d.counts = map[loss.Reason]int{}
	}
	d.counts[reason] += n
}

func (d *drops) First(reason loss.Reason, metric string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.firsts == nil {
		d.firsts = map[loss.Reason]string{}
	}
	d.firsts[reason] = metric
}

func (d *drops) Panicked(cause any, _ []byte, _ int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.panics = append(d.panics, fmt.Sprint(cause))
}

func (d *drops) total() (n int) {
	for _, c := range d.counts {
		n += c
	}
	return n
}

var (
	v2Zstd   = block.Format{Version: promwrite.V2, Compression: promwrite.Zstd}
	v2Snappy = block.Format{Version: promwrite.V2, Compression: promwrite.Snappy}
	v1Zstd   = block.Format{Version: promwrite.V1, Compression: promwrite.Zstd}
	v1Snappy = block.Format{Version: promwrite.V1, Compression: promwrite.Snappy}
	formats  = []block.Format{v2Zstd, v2Snappy, v1Zstd, v1Snappy}

	epoch = time.UnixMilli(1_700_000_000_000)
)

func newEncoder(t testing.TB, change func(*Config)) (*Encoder, *drops) {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Cache.TargetInfo = false
	cfg.RepeatExemplars = true // as the encoders do that tests compare with
	if change != nil {
		change(&cfg)
	}
	d := &drops{}
	e, err := New(cfg, d)
	require.NoError(t, err)
	return e, d
}

// flushAll flushes every shard of every tenant.
func flushAll(e *Encoder, f block.Format) (blocks []block.Block) {
	for _, tenant := range e.Cut(nil) {
		for shard := range e.cfg.Shards {
			blocks = e.Flush(shard, tenant, f, blocks)
		}
	}
	return blocks
}

// decode decodes blocks with our own decoder, and compares each with its header.
func decode(t testing.TB, blocks []block.Block) (series []promwrite.Series, metadata []promwrite.Metadata) {
	t.Helper()
	for _, b := range blocks {
		raw, err := b.Raw()
		require.NoError(t, err)
		require.Len(t, raw, b.RawSize)
		var d promwrite.Decoder
		require.NoError(t, d.Decode(b.Version, raw))
		samples, histograms, exemplars := 0, 0, 0
		for _, s := range d.Series {
			samples += len(s.Samples)
			histograms += len(s.Histograms)
			exemplars += len(s.Exemplars)
			for _, p := range s.Samples {
				require.LessOrEqual(t, b.MinTime, p.Timestamp)
				require.GreaterOrEqual(t, b.MaxTime, p.Timestamp)
			}
		}
		require.Equal(t, []int{b.Samples, b.Histograms, b.Exemplars, b.Metadata}, []int{samples, histograms, exemplars, len(d.Metadata)})
		series = append(series, d.Series...)
		metadata = append(metadata, d.Metadata...)
	}
	return series, metadata
}

func labelsOf(s promwrite.Series) string {
	var b strings.Builder
	for _, l := range s.Labels {
		fmt.Fprintf(&b, "%s=%q,", l.Name, l.Value)
	}
	return b.String()
}

// page returns a scrape of one target: n gauges, some with attributes.
func page(target, n int, at time.Time) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	a := rm.Resource().Attributes()
	a.PutStr("service.name", "node")
	a.PutStr("service.instance.id", fmt.Sprintf("127.0.%d.%d:9100", target/250, target%250))
	a.PutStr("server.port", "9100")
	a.PutStr("url.scheme", "http")
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName("github.com/godwit-otel/godwit/receiver/fastprometheusreceiver")
	for i := 0; i < n; {
		m := sm.Metrics().AppendEmpty()
		m.SetName(fmt.Sprintf("node_metric_%03d_things", i))
		m.SetDescription(fmt.Sprintf("What metric %d is about.", i))
		points := m.SetEmptyGauge().DataPoints()
		width := 1 + i%4
		for j := 0; j < width && i < n; j++ {
			dp := points.AppendEmpty()
			dp.SetTimestamp(pcommon.NewTimestampFromTime(at))
			dp.SetDoubleValue(float64((target*7919 + i*104729) % 100_000))
			if width > 1 {
				dp.Attributes().PutStr("device", fmt.Sprintf("eth%d", j))
				dp.Attributes().PutStr("mode", "idle")
			}
			i++
		}
	}
	return md
}
