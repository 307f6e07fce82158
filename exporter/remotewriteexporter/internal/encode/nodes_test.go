// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/internal/racetest"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/names"
)

// nodes is a fleet of node exporters, with the samples that have to arrive: each once, with its labels and time.
type nodes struct {
	r       *rand.Rand
	lines   []nodeLine
	lineOf  map[string]int // by all labels except those of the target
	targets []*nodeTarget
	byName  map[string]*nodeTarget
	rounds  []nodeRound // added, and expected to arrive
	round   int
}

// nodeLine is a series of the page.
type nodeLine struct {
	labLine

	counts bool
	step   float64 // the change per round; 0 if none
	own    bool    // changes differently on each target
}

type nodeTarget struct {
	number    int
	name, job string
	zone      string
	from      int // the round in which it first exists
	md        pmetric.Metrics
	points    []pmetric.NumberDataPoint // by line
	values    []float64                 // by line, in the first round
	start     int64
	loan      *handback.Loan
}

// nodeRound is what each target had in a round.
type nodeRound struct {
	number  int
	at      []int64 // 0 if the target did not exist
	stale   []bool  // the scrape failed
	arrived []bool  // by target and line
}

// newNodes makes the pages. Names have different lengths, a few targets have another job, and targets of a rack have
// the same zone.
func newNodes(t *testing.T, targets int) *nodes {
	f := &nodes{r: rand.New(rand.NewPCG(1, 26)), lineOf: map[string]int{}, byName: map[string]*nodeTarget{}}
	for _, l := range readPage(t) {
		l.attrs = slices.DeleteFunc(l.attrs, func(kv [2]string) bool { return kv[1] == "" }) // which is no label
		i := len(f.lines)
		n := nodeLine{labLine: l, counts: strings.HasSuffix(l.name, "_total")}
		switch i % 4 {
		case 0:
			n.step = float64(1 + i%7)
		case 1:
			n.step, n.own = 0.25, true
		case 2:
			n.step = float64(uint64(1) << (i % 40))
		}
		labels := append([][2]string{{names.NameLabel, l.name}}, l.attrs...)
		slices.SortFunc(labels, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
		var text strings.Builder
		for _, kv := range labels {
			text.WriteString(kv[0] + "=" + kv[1] + ",")
		}
		key := text.String()
		require.NotContains(t, f.lineOf, key)
		f.lines, f.lineOf[key] = append(f.lines, n), i
	}
	for i := range targets {
		x := &nodeTarget{number: i, name: fmt.Sprintf("host-%d:9100", i+1), job: "node", zone: fmt.Sprint("zone-", i/40%3), loan: new(handback.Loan)}
		if i%61 == 60 {
			x.job = "edge"
		}
		if i%17 == 16 {
			x.from = 1 + i%2
		}
		x.start = epoch.UnixMilli() - int64(1000*(i/3))
		f.makePage(x)
		f.targets, f.byName[x.name] = append(f.targets, x), x
	}
	return f
}

func (f *nodes) makePage(x *nodeTarget) {
	x.md = pmetric.NewMetrics()
	rm := x.md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", x.job)
	rm.Resource().Attributes().PutStr("service.instance.id", x.name)
	rm.Resource().Attributes().PutStr("zone", x.zone)
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName("github.com/godwit-otel/godwit/receiver/fastprometheusreceiver")
	var points pmetric.NumberDataPointSlice
	for i := range f.lines {
		l := &f.lines[i]
		if i == 0 || f.lines[i-1].name != l.name {
			m := sm.Metrics().AppendEmpty()
			m.SetName(l.name)
			m.SetDescription(l.help)
			if l.counts {
				m.SetEmptySum().SetIsMonotonic(true)
				m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			} else {
				m.SetEmptyGauge()
			}
			points = numbersOf(m)
		}
		dp := points.AppendEmpty()
		if l.counts {
			dp.SetStartTimestamp(pcommon.Timestamp(x.start * 1e6))
		}
		for _, kv := range l.attrs {
			dp.Attributes().PutStr(kv[0], kv[1])
		}
		x.values = append(x.values, labValue(&l.labLine, x.number, i))
	}
	for _, m := range sm.Metrics().All() { // their addresses, once all exist
		for _, dp := range numbersOf(m).All() {
			x.points = append(x.points, dp)
		}
	}
}

func (f *nodes) value(x *nodeTarget, line, round int) float64 {
	l := &f.lines[line]
	v := x.values[line] + l.step*float64(round)
	if l.own {
		v += l.step * float64(x.number%5*round)
	}
	return v
}

// scrape adds a round to an encoder: of all existing targets, in random order. Now and then one fails.
func (f *nodes) scrape(t *testing.T, e *Encoder, lent bool) {
	round := nodeRound{number: f.round, at: make([]int64, len(f.targets)), stale: make([]bool, len(f.targets)), arrived: make([]bool, len(f.targets)*len(f.lines))}
	f.round++
	begin := epoch.UnixMilli() + 15_000*int64(round.number)
	order := f.r.Perm(len(f.targets))
	if round.number%2 == 0 {
		slices.Sort(order) // as in the list
	}
	for _, i := range order {
		x := f.targets[i]
		if round.number < x.from {
			continue
		}
		at := begin
		switch round.number % 3 {
		case 0:
			at += int64(i) * 9
		case 1:
			at += int64(i / 50) // some have the same time
		}
		round.at[i], round.stale[i] = at, round.number > 0 && f.r.IntN(50) == 0
		for line, dp := range x.points {
			dp.SetTimestamp(pcommon.Timestamp(at * 1e6))
			dp.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(round.stale[i]))
			dp.SetDoubleValue(f.value(x, line, round.number))
		}
		var loan *handback.Loan
		if lent {
			loan = x.loan
			handback.Lend(context.Background(), loan, x.md)
		}
		require.NoError(t, e.AddLent(x.md, "", loan))
	}
	f.rounds = append(f.rounds, round)
}

// arrive checks a series, given its labels in order.
func (f *nodes) arrive(t *testing.T, buf []byte, labels int, label func(int) (name, value string), samples int, sample func(int) (v float64, at, start int64)) []byte {
	var x *nodeTarget
	job, zone := "", ""
	buf = buf[:0]
	for i := range labels {
		name, value := label(i)
		switch name {
		case "instance":
			x = f.byName[value]
		case "job":
			job = value
		case "zone":
			zone = value
		default:
			buf = append(append(append(append(buf, name...), '='), value...), ',')
		}
	}
	line, ok := f.lineOf[string(buf)]
	if !ok || x == nil || x.job != job || x.zone != zone {
		require.Fail(t, "a series that nobody has", "%s job %q, zone %q, known target %v", buf, job, zone, x != nil)
	}
	for i := range samples {
		v, at, start := sample(i)
		k := slices.IndexFunc(f.rounds, func(r nodeRound) bool { return r.at[x.number] == at })
		if k < 0 {
			require.Fail(t, "a time at which nothing was", "%s of %s: %d", buf, x.name, at)
		}
		r := &f.rounds[k]
		want, wantStart := math.Float64bits(f.value(x, line, r.number)), int64(0)
		if r.stale[x.number] {
			want = promwrite.StaleNaN
		}
		if f.lines[line].counts {
			wantStart = x.start
		}
		n := x.number*len(f.lines) + line
		if math.Float64bits(v) != want || start != wantStart && start != -1 || r.arrived[n] {
			require.Fail(t, "another sample", "%s of %s: %v from %d, want %v from %d; came before: %v", buf, x.name, v, start, math.Float64frombits(want), wantStart, r.arrived[n])
		}
		r.arrived[n] = true
	}
	return buf
}

// read decodes blocks with independent decoders. Each added sample has to be in one of them.
func (f *nodes) read(t *testing.T, d *zstd.Decoder, blocks []block.Block) {
	var buf, raw []byte
	for _, b := range blocks {
		var err error
		switch b.Compression {
		case promwrite.Zstd:
			raw, err = d.DecodeAll(b.Body(), raw[:0])
		default:
			raw, err = snappy.Decode(raw[:cap(raw)], b.Body())
		}
		require.NoError(t, err)
		if b.Version == promwrite.V1 {
			var r prompb.WriteRequest
			require.NoError(t, r.Unmarshal(raw))
			for i := range r.Timeseries {
				ts := &r.Timeseries[i]
				buf = f.arrive(t, buf, len(ts.Labels), func(i int) (name, value string) { return ts.Labels[i].Name, ts.Labels[i].Value },
					len(ts.Samples), func(i int) (v float64, at, start int64) { return ts.Samples[i].Value, ts.Samples[i].Timestamp, -1 })
			}
			continue
		}
		var r writev2.Request
		require.NoError(t, r.Unmarshal(raw))
		for i := range r.Timeseries {
			ts := &r.Timeseries[i]
			buf = f.arrive(t, buf, len(ts.LabelsRefs)/2, func(i int) (name, value string) {
				return r.Symbols[ts.LabelsRefs[2*i]], r.Symbols[ts.LabelsRefs[2*i+1]]
			},
				len(ts.Samples), func(i int) (v float64, at, start int64) {
					return ts.Samples[i].Value, ts.Samples[i].Timestamp, ts.Samples[i].StartTimestamp
				})
		}
	}
	for _, r := range f.rounds {
		for i, arrived := range r.arrived {
			x := f.targets[i/len(f.lines)]
			if there := r.at[x.number] > 0; there != arrived {
				require.Fail(t, "lost", "line %d of %s in round %d", i%len(f.lines), x.name, r.number)
			}
		}
	}
	f.rounds = f.rounds[:0]
}

// TestAFleetArrives: independent decoders read what a fleet exposes, series by series, in every format. Compression
// relies on what is declared about a request, and its result depends on which messages are adjacent: on names of
// several lengths, on times, on single differences, in runs of hundreds. Only this test found a pair of matches that
// was not verified to its end, and a thousand targets did so no better.
func TestAFleetArrives(t *testing.T) {
	racetest.Sequential(t)
	for _, format := range formats {
		for _, lent := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%s/lent=%v", format.Version, format.Compression, lent), func(t *testing.T) {
				t.Parallel()
				d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
				require.NoError(t, err)
				defer d.Close()
				shards := 1
				if lent {
					shards = 3
				}
				e, dropped := newEncoder(t, func(c *Config) {
					c.Shards, c.Names.ScrapedNames = shards, true
					if lent {
						c.Cache.PromoteResourceAttributes = []string{"zone"}
					}
				})
				f := newNodes(t, 300)
				if !lent {
					for _, x := range f.targets {
						x.zone = ""
					}
				}
				flush := func() {
					var blocks []block.Block
					for _, shard := range f.r.Perm(shards) {
						blocks = e.Flush(shard, "", format, blocks)
					}
					f.read(t, d, blocks)
				}
				for range 2 {
					f.scrape(t, e, lent)
					flush()
				}
				f.scrape(t, e, lent) // two rounds in the same requests
				f.scrape(t, e, lent)
				flush()
				require.Zero(t, dropped.total())
			})
		}
	}
}
