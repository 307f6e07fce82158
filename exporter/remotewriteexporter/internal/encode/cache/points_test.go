// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"testing"

	"github.com/prometheus/otlptranslator"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/names"
)

// page is a cache with one metric.
type page struct {
	c *Cache
	t *Tenant
	f *Family
}

func newPage(t *testing.T, most int) page {
	t.Helper()
	translator, err := names.New(names.Config{Strategy: otlptranslator.UnderscoreEscapingWithSuffixes})
	require.NoError(t, err)
	p := page{c: New(Config{MaxSeries: most, IdleGenerations: 5}, translator, nil, nil), t: NewTenant()}
	p.f = p.family("g")
	return p
}

func (p *page) family(name string) *Family {
	m := pmetric.NewMetric()
	m.SetName(name)
	m.SetEmptyGauge()
	r := p.c.Resource(p.t, pcommon.NewResource())
	return p.c.Family(p.t, m, ShapeOf(m), r.Schema, nil, false)
}

// find returns the point with the given attributes.
func (p *page) find(attributes ...string) (number uint32, known bool) {
	m := pcommon.NewMap()
	for i := 0; i < len(attributes); i += 2 {
		m.PutStr(attributes[i], attributes[i+1])
	}
	point, number, known := p.c.Find(p.t, p.f, m, nil)
	point.Seen.Store(p.c.Ages.Now())
	return number, known
}

// TestPointsShareAForm adds many points of a metric: similar ones, some with other keys, and some whose values lead to
// other labels.
func TestPointsShareAForm(t *testing.T) {
	p := newPage(t, 10_000)
	for i := range 100 {
		p.find("a", fmt.Sprint(i), "b", "x")
	}
	require.Len(t, p.f.forms, 1)
	p.find("a", "", "b", "x") // no label at all: a form of its own
	p.find("a", "", "b", "y") // which others share
	require.Len(t, p.f.forms, 2)
	p.find("a", "\xff\xfe", "b", "x")        // replaced in the label
	p.find("a.c", "1", "a/c", "2", "b", "x") // two attributes, one label
	require.Len(t, p.f.forms, 2, "only plain ones are shared")
	for i := range 2 * maxForms {
		p.find(fmt.Sprint("k", i), "v")
	}
	require.Len(t, p.f.forms, maxForms)
}

// Points of a histogram may have other bounds each. What their series have in common is stored once.
func TestFormsShareLayouts(t *testing.T) {
	p := newPage(t, 10_000)
	m := pmetric.NewMetric()
	m.SetName("h")
	m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	r := p.c.Resource(p.t, pcommon.NewResource())
	p.f = p.c.Family(p.t, m, ShapeOf(m), r.Schema, nil, false)
	const others = 6
	for i := range others {
		attributes := pcommon.NewMap()
		attributes.PutStr("path", fmt.Sprint(i))
		var bounds []float64
		for j := range 5 {
			bounds = append(bounds, float64(1+i%3+j))
		}
		point, _, known := p.c.Find(p.t, p.f, attributes, bounds)
		require.False(t, known)
		var got []string
		for _, s := range *p.c.Parts.One(point.Parts) {
			row, label := p.c.Row(s), ""
			for _, l := range row.Layout.Labels {
				label += p.c.Symbols.Snapshot()[l.Name] + "=" + p.c.Symbols.Snapshot()[row.Ref(l)] + " "
			}
			got = append(got, label)
		}
		want := []string{fmt.Sprintf("__name__=h_sum path=%d ", i), fmt.Sprintf("__name__=h_count path=%d ", i)}
		for _, b := range bounds {
			want = append(want, fmt.Sprintf("__name__=h_bucket le=%v path=%d ", b, i))
		}
		require.Equal(t, append(want, fmt.Sprintf("__name__=h_bucket le=+Inf path=%d ", i)), got)
	}
	require.Len(t, p.f.forms, 3)
	require.Equal(t, 2+7+1, p.c.Layouts.Size()-1-len(p.c.Layouts.Free))
	require.Same(t, p.c.Forms.One(p.f.forms[0]).Keys, p.c.Forms.One(p.f.forms[1]).Keys)
}

// Metrics with the same attributes share their names.
func TestMetricsShareKeys(t *testing.T) {
	p := newPage(t, 10_000)
	p.find("a", "1", "b", "2")
	one := p.c.Forms.One(p.f.forms[0]).Keys
	p.f = p.family("other")
	p.find("a", "3", "b", "4")
	require.Same(t, one, p.c.Forms.One(p.f.forms[0]).Keys)
	p.f = p.family("third")
	p.find("b", "3", "a", "4")
	require.NotSame(t, one, p.c.Forms.One(p.f.forms[0]).Keys)
}

// A series is only one, in whatever ways its labels are given.
func TestPointsOfOneSeries(t *testing.T) {
	p := newPage(t, 10_000)
	first, _ := p.find("a", "1", "b", "2")
	second, _ := p.find("b", "2", "a", "1")
	third, _ := p.find("b", "2", "a", "1", "c", "")
	require.NotEqual(t, first, second)
	require.NotEqual(t, second, third)
	require.Equal(t, 1, p.t.series.Len())
	again, known := p.find("a", "1", "b", "2")
	require.True(t, known)
	require.Equal(t, first, again)
}

// Attributes that are chosen by an attacker must not make one long chain of the points of a metric.
func TestPointsWithOtherKeysHaveOtherHashes(t *testing.T) {
	const points = 2000
	p := newPage(t, 10_000)
	for i := range points {
		p.find(fmt.Sprint("key", i), "same")
	}
	alike := map[uint32]int{}
	for _, s := range p.t.points.Slots {
		if s.Entry != 0 {
			alike[s.Hash]++
		}
	}
	require.Greater(t, len(alike), points-10)
}

// A full cache still finds its points, and requests an expiry.
func TestFullCacheStillFindsWhatItHas(t *testing.T) {
	p := newPage(t, 10)
	for i := range 10 {
		number, known := p.find("a", fmt.Sprint(i))
		require.NotZero(t, number)
		require.False(t, known)
	}
	require.False(t, p.c.WantsExpiry())
	for i := range 3 {
		number, known := p.find("b", fmt.Sprint(i))
		require.Zero(t, number)
		require.False(t, known)
	}
	require.True(t, p.c.WantsExpiry())
	_, known := p.find("a", "3")
	require.True(t, known)
}

// expire does what the owner of the cache does. Nothing else holds an entry.
func (p *page) expire(t *testing.T) (evicted int) {
	t.Helper()
	x := p.c.BeginExpiry()
	x.Points()
	require.True(t, x.Tenant(p.t))
	return x.End(func(yield func(*Tenant) bool) { yield(p.t) }, true)
}

// Points without a place are forgotten soon, with their attributes.
func TestPointsWithoutAPlaceTakeNoMemory(t *testing.T) {
	p := newPage(t, 10)
	for i := range 10 {
		p.find("a", fmt.Sprint(i))
	}
	for i := range 2000 {
		p.find(fmt.Sprint("key", i), fmt.Sprint("value", i))
		if p.c.WantsExpiry() {
			for again := range 10 {
				p.find("a", fmt.Sprint(again))
			}
			p.f = p.family("g")
			require.Zero(t, p.expire(t))
		}
		require.LessOrEqual(t, p.c.Forms.Size(), 256)
		require.LessOrEqual(t, p.c.Symbols.Size(), 40)
	}
}

// Equal attributes of points of several metrics are stored once, also for points that are added after a sweep.
func TestMetricsOfTheSameThingsShareValues(t *testing.T) {
	const pods, kinds = 100, 6
	p := newPage(t, 10_000)
	fill := func() {
		for pod := range pods {
			for kind := range kinds {
				p.f = p.family(fmt.Sprint("metric", kind))
				p.find("namespace", "n", "pod", fmt.Sprint("pod-", pod), "phase", fmt.Sprint("phase-", kind%3))
			}
		}
	}
	sets := func() int {
		s := p.c.sets.byWidth[3]
		return s.Size() - 1 - len(s.Free)
	}
	for range 2 {
		fill()
		points, _ := p.c.Size()
		assert.Equal(t, kinds*pods, points)
		assert.Less(t, sets(), 3*pods*11/10, "each of three phases once, but for a few that met in the table")
		require.Zero(t, p.expire(t))
	}
}
