// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/alloctest"
	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/internal/racetest"
	pdataslab "github.com/godwit-otel/godwit/internal/slab"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
)

// lent has metrics that are filled again and again.
type lent struct {
	pmetric.Metrics

	r    *rand.Rand
	loan handback.Loan
}

func (l *lent) metric() pmetric.Metric {
	rms := l.ResourceMetrics()
	sms := rms.At(l.r.IntN(rms.Len())).ScopeMetrics()
	ms := sms.At(l.r.IntN(sms.Len())).Metrics()
	return ms.At(l.r.IntN(ms.Len()))
}

// refill sets another time on all points, and no value on some.
func (l *lent) refill(at pcommon.Timestamp) {
	flags := func() pmetric.DataPointFlags {
		return pmetric.DefaultDataPointFlags.WithNoRecordedValue(l.r.IntN(16) == 0)
	}
	for _, rm := range l.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				switch m.Type() {
				case pmetric.MetricTypeGauge:
					for _, dp := range m.Gauge().DataPoints().All() {
						dp.SetTimestamp(at)
						dp.SetFlags(flags())
					}
				case pmetric.MetricTypeSum:
					for _, dp := range m.Sum().DataPoints().All() {
						dp.SetTimestamp(at)
						dp.SetFlags(flags())
					}
				case pmetric.MetricTypeHistogram:
					for _, dp := range m.Histogram().DataPoints().All() {
						dp.SetTimestamp(at)
						dp.SetFlags(flags())
					}
				case pmetric.MetricTypeExponentialHistogram:
					for _, dp := range m.ExponentialHistogram().DataPoints().All() {
						dp.SetTimestamp(at)
						dp.SetFlags(flags())
					}
				case pmetric.MetricTypeSummary:
					for _, dp := range m.Summary().DataPoints().All() {
						dp.SetTimestamp(at)
						dp.SetFlags(flags())
					}
				default:
				}
			}
		}
	}
}

// change changes metrics like a receiver may, and like a processor that breaks its promise. It returns a function that
// undoes it, if that has to be done after the next consumer.
func (l *lent) change(serial int) (undo func()) {
	m := l.metric()
	switch l.r.IntN(9) {
	case 0: // other values of attributes, with notice
		if m.Type() == pmetric.MetricTypeGauge && m.Gauge().DataPoints().Len() > 0 {
			m.Gauge().DataPoints().At(0).Attributes().PutStr("k", fmt.Sprint("other-", serial))
			l.loan.Forget()
		}
	case 1: // another target
		l.ResourceMetrics().At(0).Resource().Attributes().PutStr("service.instance.id", fmt.Sprint("instance-", l.r.IntN(3)))
	case 2: // other labels of the resource
		l.ResourceMetrics().At(0).Resource().Attributes().PutStr(fmt.Sprint("promoted.", l.r.IntN(3)), "x")
	case 3: // hidden points
		if m.Type() == pmetric.MetricTypeGauge {
			return pdataslab.Hide(m.Gauge().DataPoints(), pmetric.NewNumberDataPointSlice, func(int) bool { return l.r.IntN(2) == 0 })
		}
	case 4: // hidden metrics
		ms := l.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
		return pdataslab.Hide(ms, pmetric.NewMetricSlice, func(int) bool { return l.r.IntN(4) == 0 })
	case 5: // one more point
		if m.Type() == pmetric.MetricTypeGauge {
			dp := m.Gauge().DataPoints().AppendEmpty()
			dp.SetTimestamp(1_700_000_000_000_000_000)
			dp.SetDoubleValue(float64(serial))
			dp.Attributes().PutStr("serial", fmt.Sprint(serial))
		}
	case 6: // other bounds
		if m.Type() == pmetric.MetricTypeHistogram {
			for _, dp := range m.Histogram().DataPoints().All() {
				dp.ExplicitBounds().FromRaw([]float64{float64(l.r.IntN(3)), 10})
				dp.BucketCounts().FromRaw([]uint64{dp.Count(), 0, 0})
			}
		}
	case 7: // another name
		m.SetName(fmt.Sprint("renamed_", l.r.IntN(3), ".", serial))
	case 8: // another type
		if m.Type() == pmetric.MetricTypeSum {
			m.Sum().SetIsMonotonic(!m.Sum().IsMonotonic())
		}
	}
	return nil
}

// mapsOf returns the attributes of all points.
func mapsOf(md pmetric.Metrics) (all []pcommon.Map) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				switch m.Type() {
				case pmetric.MetricTypeGauge:
					for _, dp := range m.Gauge().DataPoints().All() {
						all = append(all, dp.Attributes())
					}
				case pmetric.MetricTypeSum:
					for _, dp := range m.Sum().DataPoints().All() {
						all = append(all, dp.Attributes())
					}
				case pmetric.MetricTypeHistogram:
					for _, dp := range m.Histogram().DataPoints().All() {
						all = append(all, dp.Attributes())
					}
				case pmetric.MetricTypeExponentialHistogram:
					for _, dp := range m.ExponentialHistogram().DataPoints().All() {
						all = append(all, dp.Attributes())
					}
				case pmetric.MetricTypeSummary:
					for _, dp := range m.Summary().DataPoints().All() {
						all = append(all, dp.Attributes())
					}
				default:
				}
			}
		}
	}
	return all
}

// alter changes attributes of points as processors do: mostly the same each time, and now and then some differ.
func (l *lent) alter() {
	differs := l.r.IntN(3) == 0
	for i, m := range mapsOf(l.Metrics) {
		m.PutStr("region", "north")
		if i%3 == 0 {
			m.Remove("k")
		}
		if i%4 == 0 {
			m.PutInt("number", 7)
		}
		if !differs || l.r.IntN(4) > 0 {
			continue
		}
		switch l.r.IntN(4) {
		case 0:
			m.PutStr("region", fmt.Sprint("region-", l.r.IntN(3)))
		case 1:
			m.PutInt("number", int64(l.r.IntN(3)))
		case 2:
			m.PutStr("number", "7")
		default:
			m.PutEmptyMap("map").PutInt("n", int64(l.r.IntN(3)))
		}
	}
}

// Recalled metrics have the same result as if each point were looked up. On every other road, processors change
// attributes, which are restored each time.
func TestRecalledPointsAreThoseThatWouldBeRecognised(t *testing.T) {
	racetest.Sequential(t)
	recalled, compared := 0, 0
	for seed := range uint64(60) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			g := generator{r: rand.New(rand.NewPCG(seed, 11)), version: promwrite.V2}
			change := func(c *Config) {
				c.Cache.PromoteResourceAttributes = []string{"promoted.*"}
				c.Cache.TargetInfo = seed%3 == 0
				c.Cache.IdleGenerations = 2
				c.Cache.CustomBuckets = seed%5 == 0
				if seed%4 == 0 {
					c.Cache.MaxSeries = 8
				}
			}
			e, _ := newEncoder(t, change)
			oracle, _ := newEncoder(t, change)
			l := &lent{Metrics: g.workload().metrics(&g, 0), r: g.r}
			var lists pdataslab.Lists
			alters := seed%2 == 1
			for round := range 40 {
				tenant := ""
				if g.r.IntN(6) == 0 {
					tenant = "other"
				}
				l.refill(pcommon.NewTimestampFromTime(epoch.Add(time.Duration(round) * time.Minute)))
				var undo func()
				if g.r.IntN(2) == 0 {
					undo = l.change(round)
				}
				loan := handback.LoanOf(handback.Lend(t.Context(), &l.loan, l.Metrics), l.Metrics)
				require.NotNil(t, loan)
				if alters {
					loan.ForgetAttributes()
					for _, m := range mapsOf(l.Metrics) {
						lists.Keep(m)
					}
					l.alter()
				}
				require.NoError(t, e.AddLent(l.Metrics, tenant, loan))
				require.NoError(t, oracle.Add(l.Metrics, tenant))
				lists.PutBack()
				lists.Forget()
				got, _ := decode(t, flushAll(e, v2Zstd))
				want, _ := decode(t, flushAll(oracle, v2Zstd))
				require.Equal(t, canonical(want), canonical(got), "round %d", round)
				if undo != nil {
					undo()
				}
				if g.r.IntN(5) == 0 {
					e.Expire()
					oracle.Expire()
				}
				if r, _ := l.loan.Note(e).(*recollection); r != nil {
					recalled += len(r.points)
				}
				if r, _ := l.loan.Places().Note(e).(*recollection); r != nil {
					require.True(t, alters)
					compared += len(r.said)
				}
			}
		})
	}
	require.Positive(t, recalled)
	require.True(t, compared > 0 || !pdataslab.Readable())
}

// Where processors change attributes, these are compared with those of the last time, and the point is not looked up
// again if they are the same.
func TestAttributesThatProcessorsChangeAreCompared(t *testing.T) {
	if !pdataslab.Readable() {
		t.Skip("metrics look otherwise in this build")
	}
	e, _ := newEncoder(t, nil)
	md := page(0, 5, epoch)
	var loan handback.Loan
	add := func() []string {
		loan.ForgetAttributes()
		handback.Lend(t.Context(), &loan, md)
		require.NoError(t, e.AddLent(md, "", &loan))
		series, _ := decode(t, flushAll(e, v2Zstd))
		return canonical(series)
	}
	for range 2 {
		add()
	}
	was := add()
	r := loan.Places().Note(e).(*recollection)
	require.Len(t, r.points, 5)
	exchange := func() { r.points[1].number, r.points[2].number = r.points[2].number, r.points[1].number } // of one metric
	exchange()
	require.NotEqual(t, was, add(), "they are looked up")
	exchange()
	require.Equal(t, was, add())
	exchange()
	for _, m := range mapsOf(md) {
		m.PutStr("region", "north")
		m.Remove("region") // has the same attributes
		for k, v := range m.All() {
			m.PutStr(k, v.Str()+"!")
		}
	}
	altered := add()
	require.NotContains(t, fmt.Sprint(was), "!")
	require.Contains(t, fmt.Sprint(altered), "!")
	for range 2 {
		require.Equal(t, altered, add())
	}
}

// Attributes of recalled points are not read: the lender says when they change.
func TestAttributesOfRecalledPointsAreNotRead(t *testing.T) {
	e, _ := newEncoder(t, nil)
	md := page(0, 40, epoch)
	var loan handback.Loan
	add := func() []promwrite.Series {
		handback.Lend(t.Context(), &loan, md)
		require.NoError(t, e.AddLent(md, "", &loan))
		series, _ := decode(t, flushAll(e, v2Zstd))
		return series
	}
	for range 3 {
		require.Len(t, add(), 40)
	}
	known := e.Stats().Series
	for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		for _, dp := range m.Gauge().DataPoints().All() {
			for k := range dp.Attributes().All() {
				dp.Attributes().PutStr(k, "another")
			}
		}
	}
	require.Len(t, add(), 40)
	require.Equal(t, known, e.Stats().Series)
	loan.Forget()
	add()
	require.Greater(t, e.Stats().Series, known)
}

// Recalled results contain numbers of the cache: they are invalid when these expire.
func TestNothingIsRecalledOfWhatHasExpired(t *testing.T) {
	e, _ := newEncoder(t, func(c *Config) { c.Cache.IdleGenerations = 1 })
	md := page(0, 40, epoch)
	var loan handback.Loan
	add := func(md pmetric.Metrics, loan *handback.Loan) []promwrite.Series {
		if loan != nil {
			handback.Lend(t.Context(), loan, md)
		}
		require.NoError(t, e.AddLent(md, "", loan))
		series, _ := decode(t, flushAll(e, v2Zstd))
		return series
	}
	var want []string
	for range 3 {
		want = canonical(add(md, &loan))
	}
	e.Expire()
	e.Expire()
	require.Zero(t, e.Stats().Series)
	other := page(0, 40, epoch) // reuses the numbers
	for i, m := range other.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		m.SetName(fmt.Sprint("other_", i))
	}
	add(other, nil)
	require.Equal(t, want, canonical(add(md, &loan)))
}

func TestRecalledSamplesAllocateNothing(t *testing.T) {
	racetest.Sequential(t)
	pages, samples := labPages(t, 20)
	loans := make([]handback.Loan, len(pages))
	e, _ := newEncoder(t, func(c *Config) { c.Cache.TargetInfo = true })
	for range 3 {
		for i, md := range pages {
			handback.Lend(t.Context(), &loans[i], md)
			require.NoError(t, e.AddLent(md, "", &loans[i]))
		}
		e.Flush(0, "", v2Zstd, nil)
	}
	var blocks []block.Block
	allocs := alloctest.PerRun(func() {
		for i, md := range pages {
			require.NoError(t, e.AddLent(md, "", &loans[i]))
		}
		blocks = e.Flush(0, "", v2Zstd, blocks[:0])
	})
	require.Len(t, blocks, 1)
	assert.Equal(t, samples, blocks[0].Samples)
	assert.LessOrEqual(t, allocs, 2.0, "%d samples", samples)
}

// filler writes the values of the current target into the points when it is asked to.
type filler struct {
	metrics pmetric.Metrics
	owned   string
	more    int // which points have one more attribute; negative if none ever has
	times   int
}

func (d *filler) Settle() {
	d.times++
	for _, rm := range d.metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				for i, dp := range m.Gauge().DataPoints().All() {
					if v, ok := dp.Attributes().Get("own"); ok {
						v.SetStr(d.owned)
					}
					if d.more < 0 {
						continue
					}
					dp.Attributes().Remove("more") // which some targets have where others have none
					if i%3 == d.more {
						dp.Attributes().PutStr("more", d.owned)
					}
				}
			}
		}
	}
}

// Targets of a kind fill two memories in turn, and values of their own are only written on request. The result is the
// same as if they were always there, whatever happens to the cache and the metrics meanwhile.
func TestDeferredAttributesAreThoseOfTheTarget(t *testing.T) {
	racetest.Sequential(t)
	settled, lent := 0, 0
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 5))
		change := func(c *Config) {
			c.Cache.IdleGenerations = 2
			if seed%4 == 0 {
				c.Cache.MaxSeries = 40
			}
		}
		e, _ := newEncoder(t, change)
		oracle, _ := newEncoder(t, change)
		const targets = 4
		type memory struct {
			filler

			lent handback.Loan
		}
		var memories [2]memory
		for i := range memories {
			m := &memories[i]
			m.metrics = page(0, 12, epoch)
			for _, metric := range m.metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
				for j, dp := range metric.Gauge().DataPoints().All() {
					if j%5 != 4 { // the others have nothing of the target's own
						dp.Attributes().PutStr("own", "nobody's")
					}
				}
			}
			handback.Lend(t.Context(), &m.lent, m.metrics)
		}
		var wordings [targets]handback.Wording
		for round := range 60 {
			of, m := r.IntN(targets), &memories[r.IntN(2)]
			m.owned, m.more = fmt.Sprint("value-", of), -1
			if seed%2 == 1 {
				m.more = of
			}
			m.metrics.ResourceMetrics().At(0).Resource().Attributes().PutStr("service.instance.id", m.owned)
			at := pcommon.NewTimestampFromTime(epoch.Add(time.Duration(round) * time.Minute))
			for _, metric := range m.metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
				for _, dp := range metric.Gauge().DataPoints().All() {
					dp.SetTimestamp(at)
					dp.SetDoubleValue(r.Float64())
				}
			}
			if r.IntN(40) == 0 { // by a processor that breaks its promise
				down := r.IntN(2) == 0
				m.metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().Sort(func(a, b pmetric.Metric) bool { return (a.Name() < b.Name()) != down })
			}
			if r.IntN(8) == 0 {
				m.Settle()
				m.lent.Unword() // as if a page has other ones
				m.lent.Forget()
			} else {
				m.lent.Reword(&wordings[of], m.metrics.DataPointCount(), m)
			}
			tenant := ""
			if r.IntN(10) == 0 {
				tenant = "other"
			}
			before := m.times
			loan := handback.LoanOf(handback.Lend(t.Context(), &m.lent, m.metrics), m.metrics)
			require.NoError(t, e.AddLent(m.metrics, tenant, loan))
			if m.more < 0 { // else the points have other numbers of attributes now, since the oracle needs these below
				settled += m.times - before
				lent++
			}
			m.Settle()
			require.NoError(t, oracle.Add(m.metrics, tenant))
			got, _ := decode(t, flushAll(e, v2Zstd))
			want, _ := decode(t, flushAll(oracle, v2Zstd))
			require.Equal(t, canonical(want), canonical(got), "seed %d, round %d", seed, round)
			if r.IntN(9) == 0 {
				e.Expire()
				oracle.Expire()
			}
			m.owned, m.more = "nobody's", -1 // the previous values belonged to another target, or to none
			m.Settle()
		}
	}
	require.Positive(t, settled)
	require.Less(t, settled, lent/2, "what is known is not asked for")
}
