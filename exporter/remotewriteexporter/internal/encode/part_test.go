// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/reuse"
	pdataslab "github.com/godwit-otel/godwit/internal/slab"
)

// parts is a receiver that assembles metrics from parts again and again, between others.
type parts struct {
	r      *rand.Rand
	again  *reuse.Metrics
	slabs  pdataslab.Slabs
	lists  []reuse.Attributes
	idle   [][]*reuse.Part // by kind
	defers bool
	// The values of points that are not written later: scratch memory.
	floats []pdataslab.Float
	out    []placedPart
}

type placedPart struct {
	part *reuse.Part
	kind int
}

func needParts(t *testing.T) {
	if !pdataslab.Places() || handback.Poisons() {
		t.Skip("nothing is shared in this build")
	}
}

func newParts(r *rand.Rand, kinds int) *parts {
	p := &parts{r: r, again: reuse.New(), idle: make([][]*reuse.Part, kinds)}
	for i := range 12 {
		m := pcommon.NewMap()
		for j := range i % 4 {
			m.PutStr(fmt.Sprint("key", j), fmt.Sprint("value", i))
		}
		p.lists = append(p.lists, reuse.Seal(m))
	}
	return p
}

// part returns a part of the given kind, with other values.
func (p *parts) part(kind int, at uint64) *reuse.Part {
	list := &p.idle[kind]
	var part *reuse.Part
	if n := len(*list); n > 0 {
		part, *list = (*list)[n-1], (*list)[:n-1]
	} else {
		b := reuse.BuildPart(3, 3+4*kind, &p.slabs)
		for m := range 3 {
			shape, n := pmetric.MetricTypeGauge, 1
			if m == 1 {
				shape, n = pmetric.MetricTypeSum, 1+4*kind
			}
			metric := b.Metric(shape, n, reuse.None)
			metric.SetName(fmt.Sprintf("kind.%d.%d", kind, m))
			metric.SetDescription("what it is")
			metric.SetUnit([]string{"", "s", "By"}[m])
			if m == 1 {
				metric.Sum().SetIsMonotonic(kind%2 == 0)
				metric.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			}
			for i := range n {
				b.Point(p.lists[(i+m+kind)%len(p.lists)])
			}
		}
		part = b.Part()
	}
	p.floats = slices.Grow(p.floats[:0], part.Len())[:part.Len()]
	floats := p.floats
	if p.defers {
		floats = part.Defer()
	}
	for i := range floats {
		floats[i] = pdataslab.Float{Value: p.r.Float64(), At: int64(at / 1e6), Start: int64(i%2) * 1e9}
	}
	if !p.defers {
		part.Fill(floats)
	}
	return part
}

// fill makes the metrics of some targets.
func (p *parts) fill(at uint64) {
	for target := range 1 + p.r.IntN(3) {
		rm := p.again.Resource()
		rm.Resource().Attributes().PutStr("service.name", "node")
		rm.Resource().Attributes().PutStr("service.instance.id", fmt.Sprint("host-", target))
		if p.r.IntN(10) == 0 {
			rm.Resource().Attributes().PutStr("promoted", "x") // another schema
		}
		sm := p.again.Scope(rm.ScopeMetrics())
		if p.r.IntN(10) == 0 {
			sm.Scope().SetName("scope")
		}
		for kind := range p.idle {
			if p.r.IntN(3) == 0 {
				n := p.again.Gauge(sm.Metrics())
				n.Metric.SetName(fmt.Sprint("loose.", kind))
				p.again.Double(n.Points, p.lists[kind], float64(kind), &p.slabs).SetTimestamp(pcommon.Timestamp(at))
			}
			if p.r.IntN(4) > 0 {
				part := p.part(kind, at)
				p.again.PlacePart(sm.Metrics(), target, part)
				p.out = append(p.out, placedPart{part, kind})
			}
		}
	}
}

// disturb changes metrics like a processor that releases them may, and like one that breaks its promise.
func (p *parts) disturb(md pmetric.Metrics) (undo func()) {
	ms := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
	if ms.Len() == 0 {
		return nil
	}
	m := ms.At(p.r.IntN(ms.Len()))
	points := numbersOf(m)
	switch p.r.IntN(8) {
	case 0:
		return pdataslab.Hide(ms, pmetric.NewMetricSlice, func(int) bool { return p.r.IntN(4) == 0 })
	case 1:
		return pdataslab.Hide(points, pmetric.NewNumberDataPointSlice, func(int) bool { return p.r.IntN(2) == 0 })
	case 2:
		points.RemoveIf(func(pmetric.NumberDataPoint) bool { return p.r.IntN(2) == 0 })
	case 3:
		points.AppendEmpty().SetTimestamp(1_700_000_000_000_000_000)
	case 4:
		m.SetName("renamed")
	case 5:
		points.At(0).SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	case 6:
		points.At(0).SetIntValue(5)
	case 7:
		x := points.At(0).Exemplars().AppendEmpty()
		x.SetDoubleValue(4)
		x.SetTimestamp(1_700_000_000_000_000_000)
	}
	return nil
}

func (p *parts) takeBack(t *testing.T) {
	require.True(t, p.again.TakeBack())
	for _, o := range p.out {
		if o.part.Whole() {
			p.idle[o.kind] = append(p.idle[o.kind], o.part)
		}
	}
	p.out = p.out[:0]
}

// Metrics in parts have the same result as if each point were looked up.
func TestPartsAreWhatWouldBeRecognised(t *testing.T) {
	needParts(t)
	wholes := 0
	for seed := range uint64(24) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 23))
			change := func(c *Config) {
				c.Cache.PromoteResourceAttributes = []string{"promoted"}
				c.Cache.IdleGenerations = 2
				c.Cache.TargetInfo = seed%3 == 0
				c.Shards = 1 + int(seed%3)
				if seed%4 == 0 {
					c.Cache.MaxSeries = 30
				}
			}
			e, _ := newEncoder(t, change)
			oracle, _ := newEncoder(t, change)
			p := newParts(r, 4)
			for round := range 60 {
				tenant := ""
				if r.IntN(6) == 0 {
					tenant = "other"
				}
				p.defers = r.IntN(2) == 0
				p.fill(uint64(epoch.Add(time.Duration(round) * time.Minute).UnixNano()))
				md := p.again.Metrics()
				loan := handback.LoanOf(p.again.Lend(t.Context()), md)
				var undo func()
				if r.IntN(3) == 0 {
					loan.Settle() // a processor that does so may have read points
					undo = p.disturb(md)
				}
				require.NoError(t, e.AddLent(md, tenant, loan))
				loan.Settle()
				require.NoError(t, oracle.Add(md, tenant))
				if r.IntN(3) > 0 || round == 59 {
					got, _ := decode(t, flushAll(e, v2Zstd))
					want, _ := decode(t, flushAll(oracle, v2Zstd))
					require.Equal(t, canonical(want), canonical(got), "round %d", round)
				}
				for _, part := range loan.Parts() {
					if n, _ := part.Note(e).(*knownPart); n != nil && len(n.points) > 0 {
						wholes++
					}
				}
				if undo != nil {
					undo()
				}
				p.takeBack(t)
				if r.IntN(5) == 0 {
					e.Expire()
					oracle.Expire()
				}
			}
		})
	}
	require.Greater(t, wholes, 1000)
}

// Samples in parts allocate nothing, and count as hits.
func TestPartsAllocateNothing(t *testing.T) {
	needParts(t)
	for _, defers := range []bool{false, true} {
		samplesOfPartsAllocateNothing(t, defers)
	}
}

func samplesOfPartsAllocateNothing(t *testing.T, defers bool) {
	e, _ := newEncoder(t, nil)
	p := newParts(rand.New(rand.NewPCG(1, 1)), 3)
	p.defers = defers
	at := uint64(epoch.UnixNano())
	metrics := 0
	round := func() {
		at += 1e9
		rm := p.again.Resource()
		sm := p.again.Scope(rm.ScopeMetrics())
		for kind := range p.idle {
			part := p.part(kind, at)
			p.again.PlacePart(sm.Metrics(), 0, part)
			p.out = append(p.out, placedPart{part, kind})
		}
		md := p.again.Metrics()
		require.NoError(t, e.AddLent(md, "", handback.LoanOf(p.again.Lend(t.Context()), md)))
		metrics = md.MetricCount()
		p.takeBack(t)
	}
	for range 3 {
		round()
	}
	if defers {
		require.Equal(t, len(p.idle), metrics, "each part has one that stands for its metrics")
	} else {
		require.Equal(t, 3*len(p.idle), metrics)
	}
	before := e.Stats()
	require.LessOrEqual(t, testing.AllocsPerRun(20, round), 2.)
	after := e.Stats()
	require.Equal(t, before.Series, after.Series)
	require.Equal(t, before.Misses, after.Misses)
	require.Equal(t, uint64(21*21), after.Hits-before.Hits)
}
