// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

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
	"github.com/godwit-otel/godwit/internal/racetest"
)

// both are all changes of attributes, all these and removals: what can be undone.
var (
	both       = handback.Changes{Points: true, Resources: true}
	everything = handback.Changes{Points: true, Resources: true, Removes: true}
)

// change removes some metrics and changes some lists of attributes, in either order, as processors do.
func change(r *rand.Rand, what handback.Changes, md pmetric.Metrics) {
	first := r.IntN(2) == 0
	if what.Removes && first {
		removeSome(r, md)
	}
	changeAttributes(r, what, md)
	if what.Removes && !first {
		removeSome(r, md)
	}
}

// removeSome removes points, metrics, scopes and resources, and what is empty then, like filter.
func removeSome(r *rand.Rand, md pmetric.Metrics) {
	of := 2 + r.IntN(20)
	some := func() bool { return r.IntN(of) == 0 }
	md.ResourceMetrics().RemoveIf(func(rm pmetric.ResourceMetrics) bool {
		rm.ScopeMetrics().RemoveIf(func(sm pmetric.ScopeMetrics) bool {
			sm.Metrics().RemoveIf(func(m pmetric.Metric) bool { return removePoints(m, some) == 0 || some() })
			return sm.Metrics().Len() == 0 || some()
		})
		return rm.ScopeMetrics().Len() == 0 || some()
	})
}

// removePoints returns how many points are left.
func removePoints(m pmetric.Metric, some func() bool) (left int) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		m.Gauge().DataPoints().RemoveIf(func(pmetric.NumberDataPoint) bool { return some() })
		left = m.Gauge().DataPoints().Len()
	case pmetric.MetricTypeSum:
		m.Sum().DataPoints().RemoveIf(func(pmetric.NumberDataPoint) bool { return some() })
		left = m.Sum().DataPoints().Len()
	case pmetric.MetricTypeHistogram:
		m.Histogram().DataPoints().RemoveIf(func(pmetric.HistogramDataPoint) bool { return some() })
		left = m.Histogram().DataPoints().Len()
	case pmetric.MetricTypeExponentialHistogram:
		m.ExponentialHistogram().DataPoints().RemoveIf(func(pmetric.ExponentialHistogramDataPoint) bool { return some() })
		left = m.ExponentialHistogram().DataPoints().Len()
	case pmetric.MetricTypeSummary:
		m.Summary().DataPoints().RemoveIf(func(pmetric.SummaryDataPoint) bool { return some() })
		left = m.Summary().DataPoints().Len()
	default:
	}
	return left
}

// changeAttributes changes some lists of attributes as actions of processors do.
func changeAttributes(r *rand.Rand, what handback.Changes, md pmetric.Metrics) {
	for _, rm := range md.ResourceMetrics().All() {
		if what.Resources {
			changeList(r, rm.Resource().Attributes())
			rm.SetSchemaUrl([]string{"", "one", "another"}[r.IntN(3)])
		}
	}
	if what.Points {
		eachAttributes(md, func(list pcommon.Map) { changeList(r, list) })
	}
}

func changeList(r *rand.Rand, list pcommon.Map) {
	for range r.IntN(3) {
		list.PutStr(fmt.Sprint("inserted", r.IntN(4)), "north")
	}
	switch r.IntN(5) {
	case 0: // delete
		list.RemoveIf(func(string, pcommon.Value) bool { return r.IntN(2) == 0 })
	case 1: // hash
		for _, v := range list.All() {
			v.SetStr(v.AsString() + "hashed")
		}
	case 2: // convert
		for _, v := range list.All() {
			v.SetInt(7)
		}
	case 3: // update from another
		for _, v := range list.All() {
			if other, ok := list.Get("inserted0"); ok {
				other.CopyTo(v)
			}
		}
	default:
	}
}

// listChangers change a list of attributes; before is that of the previous point, resource that of the resource.
var listChangers = map[string]func(list, before, resource pcommon.Map){
	"inserts": func(list, _, _ pcommon.Map) { list.PutStr("region", "north") },
	"inserts many": func(list, _, _ pcommon.Map) {
		list.PutStr("region", "north")
		list.PutInt("n", 1)
		list.PutDouble("d", 1)
	},
	"inserts a map":   func(list, _, _ pcommon.Map) { list.PutEmptyMap("m").PutStr("a", "another") },
	"removes":         func(list, _, _ pcommon.Map) { list.Remove("a") },
	"removes all":     func(list, _, _ pcommon.Map) { list.RemoveIf(func(string, pcommon.Value) bool { return true }) },
	"clears":          func(list, _, _ pcommon.Map) { list.Clear() },
	"renames":         func(list, _, _ pcommon.Map) { rename(list, "a", "z"); rename(list, "service.name", "service") },
	"renames in turn": func(list, _, _ pcommon.Map) { rename(list, "a", "c"); rename(list, "b", "a"); rename(list, "c", "b") },
	"changes values":  func(list, _, _ pcommon.Map) { eachValue(list, func(v pcommon.Value) { v.SetStr("changed") }) },
	"changes types":   func(list, _, _ pcommon.Map) { eachValue(list, func(v pcommon.Value) { v.SetInt(7) }) },
	"empties values": func(list, _, _ pcommon.Map) {
		eachValue(list, func(v pcommon.Value) { v.MoveTo(pcommon.NewValueEmpty()) })
	},
	"makes it of another": func(list, _, _ pcommon.Map) {
		other := pcommon.NewMap()
		other.PutStr("a", "another")
		other.MoveTo(list)
	},
	"copies from the resource":     func(list, _, resource pcommon.Map) { copyAll(resource, list) },
	"copies to the resource":       func(list, _, resource pcommon.Map) { copyAll(list, resource) },
	"copies from the one before":   func(list, before, _ pcommon.Map) { before.CopyTo(list) },
	"moves it to the one before":   func(list, before, _ pcommon.Map) { list.MoveTo(before) },
	"moves it from the one before": func(list, before, _ pcommon.Map) { before.MoveTo(list) },
}

func rename(list pcommon.Map, from, to string) {
	if v, ok := list.Get(from); ok {
		moved := pcommon.NewValueEmpty()
		v.CopyTo(moved)
		list.Remove(from)
		moved.CopyTo(list.PutEmpty(to))
	}
}

func eachValue(list pcommon.Map, f func(pcommon.Value)) {
	for _, v := range list.All() {
		f(v)
	}
}

func copyAll(from, to pcommon.Map) {
	for k, v := range from.All() {
		v.CopyTo(to.PutEmpty("copied." + k))
	}
}

// Any change to attributes of points and resources is undone, and not reported as a broken promise.
func TestNeighboursThatChangeAttributes(t *testing.T) {
	racetest.Sequential(t)
	for _, poison := range []bool{false, true} {
		for name, change := range listChangers {
			for _, kind := range neighbourhoods {
				t.Run(fmt.Sprintf("%s/%s/poison=%v", name, kind, poison), func(t *testing.T) {
					t.Cleanup(handback.Poison(poison))
					said := testNeighbour(t, kind, both, func(md pmetric.Metrics) {
						resource := md.ResourceMetrics().At(0).Resource().Attributes()
						before := pcommon.NewMap()
						eachAttributes(md, func(list pcommon.Map) {
							change(list, before, resource)
							before = list
						})
						change(resource, before, pcommon.NewMap())
					})
					require.False(t, said)
				})
			}
		}
	}
}

const noTrees = -1

// Changes that a pipeline declares are undone without a message, for small pages, large pages, and pages for which no
// tree is kept. Changes that it does not declare are detected.
func TestChangesArePutBack(t *testing.T) {
	const text = "# TYPE a gauge\na{b=\"1\"} 1\na{b=\"2\",c=\"3\"} 2\n# TYPE h histogram\nh_bucket{le=\"+Inf\"} 2\nh_count 2\nh_sum 1\n"
	for _, part := range []int{0, 2, noTrees} {
		for _, c := range []struct{ told, done handback.Changes }{
			{both, both},
			{everything, everything},
			{handback.Changes{Removes: true}, handback.Changes{Removes: true}},
			{handback.Changes{Points: true}, handback.Changes{Points: true}},
			{handback.Changes{Resources: true}, handback.Changes{Resources: true}},
			{handback.Changes{Resources: true}, handback.Changes{Points: true}},
			{handback.Changes{Points: true}, handback.Changes{Resources: true}},
		} {
			about := fmt.Sprintf("parts of %d, told %s, done %s", part, c.told, c.done)
			j := newTestJob(t, Config{Scrape: testScrapeConfig(), Reuse: true, Changes: c.told})
			switch {
			case part == noTrees:
				j.tree.Idle = -1
			case part > 0:
				setParts(j, part, part)
			}
			r := rand.New(rand.NewPCG(1, 2))
			target, witness := testTarget(j, 1), testTarget(newTestJob(t, Config{Scrape: testScrapeConfig()}), 1)
			var kept bool
			var last pmetric.Metrics
			for i := range 20 {
				at := start.Add(time.Duration(i) * 15 * time.Second)
				want := canon(showBytes(witness, at, typeText, []byte(text)).Metrics)
				res := showBytes(target, at, typeText, []byte(text))
				var got []string
				for {
					got = append(got, canon(res.Metrics)...)
					kept = kept || part == 0 && res.Metrics == last
					last = res.Metrics
					switch {
					case c.told == c.done:
						change(r, c.done, res.Metrics)
					case c.done.Points:
						eachAttributes(res.Metrics, func(list pcommon.Map) { list.PutStr("inserted", "") })
					default:
						res.Metrics.ResourceMetrics().At(0).Resource().Attributes().PutStr("inserted", "")
					}
					if res.Pending() == 0 {
						break
					}
					res = res.Next()
				}
				res.Release()
				slices.Sort(got)
				requireSamePoints(t, want, got, about)
			}
			// Resources of parts are made for each scrape, and overwritten ones are restored.
			isFound := c.told != c.done && (c.done.Points || part == 0 && !handback.Poisons())
			require.Equal(t, isFound, j.tree.Changed.Load(), about)
			require.Equal(t, part == 0 && !isFound, kept, "the same memory again: %s", about)
		}
	}
}

// Metrics that were changed and then refused belong to their holder: they stay as they are, whatever comes next.
func TestWhatWasChangedAndRefusedIsLeftAlone(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	j := newTestJob(t, Config{Scrape: testScrapeConfig(), Reuse: true, Changes: everything})
	targets := []*Target{testTarget(j, 1), testTarget(j, 2)}
	var refused []pmetric.Metrics
	var were [][]string
	for n := range 40 {
		res := show(targets[n%2], start.Add(time.Duration(n)*time.Second), typeText, mixedPage(n/3, false), 1<<20)
		change(r, everything, res.Metrics)
		if r.IntN(2) > 0 {
			res.Release()
			continue
		}
		refused, were = append(refused, res.Metrics), append(were, canon(res.Metrics))
	}
	require.Greater(t, len(refused), 10)
	for i, md := range refused {
		require.Equal(t, were[i], canon(md))
	}
}

// A note refers to points as they were handed out, so it does not last if attributes of points may be changed, unless
// it is about everything else. Changes of resources do not matter, because notes are not about those.
func TestNotesDoNotLastWherePointsChange(t *testing.T) {
	t.Cleanup(handback.Poison(false)) // no note lasts if everything is overwritten
	for _, told := range []handback.Changes{{}, {Resources: true}, {Points: true}, {Removes: true}, both, everything} {
		target := testTarget(newTestJob(t, Config{Scrape: testScrapeConfig(), Reuse: true, Changes: told}), 1)
		owner := new(int)
		for n := range 4 {
			res := show(target, start.Add(time.Duration(n)*time.Second), typeText, mixedPage(0, false), 1<<20)
			loan := res.Loan()
			handback.Lend(t.Context(), loan, res.Metrics)
			if n > 1 || told.Points { // the first scrape may differ from the second
				require.Equal(t, !told.Points, loan.Lasts() && loan.Note(owner) != nil, "%s, scrape %d", told, n)
			}
			require.Equal(t, n > 0, loan.Places().Note(owner) != nil, "%s, scrape %d", told, n)
			loan.Leave(owner, n)
			loan.Places().Leave(owner, n)
			change(rand.New(rand.NewPCG(7, uint64(n))), told, res.Metrics)
			res.Release()
		}
	}
}
