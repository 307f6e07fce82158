// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"maps"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/aggregate"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/moment"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/overflow"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/series"
)

// effects are the changes that a batch makes once it is accepted. If it is refused, nothing changes. docs/design/016
// lists all of them.
type effects struct {
	staged     overflow.Staged
	departures []series.Departure
	paid       []series.Paid
	views      map[uint64]overflow.View     // members with a value in this batch
	anew       map[uint64]pcommon.Timestamp // members with a place that restarted, and when
	ending     map[uint64]uint32            // series that end, and what is remembered of them
	ended      []uint64                     // their scopes
	gathered   aggregate.Gathered

	counts []counted       // by limit
	met    []*policy.Limit // limits with counts
	losses [amount.Losses]int64
	marked int64
	came   int64 // points that came in
	gone   int64 // points that were removed
	added  int64 // points that were added
	taken  int64 // points that were removed because they are aggregated
}

// counted are the numbers of a limit's rejected points, by reason and action.
type counted struct {
	points [policy.Reasons][policy.Actions]int64
	any    bool
}

// count returns the counts of a limit.
func (e *effects) count(l *policy.Limit) *[policy.Reasons][policy.Actions]int64 {
	if n := l.Index + 1; len(e.counts) < n {
		e.counts = slices.Grow(e.counts, n-len(e.counts))[:n] // all are 0
	}
	c := &e.counts[l.Index]
	if !c.any {
		c.any = true
		e.met = append(e.met, l)
	}
	return &c.points
}

// pays records that a point of a series has paid.
func (e *effects) pays(s *series.Set) {
	if n := len(e.paid); n > 0 && e.paid[n-1].Set == s {
		e.paid[n-1].Points++
		return
	}
	e.paid = append(e.paid, series.Paid{Set: s, Points: 1})
}

// saw records the state of a member for the rest of the batch.
func (e *effects) saw(fp uint64, v *overflow.View) {
	if e.views == nil {
		e.views = map[uint64]overflow.View{}
	}
	e.views[fp] = *v
}

// began records that a series with a place has restarted since it was a member.
func (e *effects) began(fp uint64, since pcommon.Timestamp) {
	if e.anew == nil {
		e.anew = map[uint64]pcommon.Timestamp{}
	}
	e.anew[fp] = since
}

// ends records that a series of a scope ends. The last value of a counter must not be counted again.
func (e *effects) ends(fp, scope uint64, class amount.Class) {
	if e.ending == nil {
		e.ending = map[uint64]uint32{}
	}
	e.ending[fp] = 0
	if class == amount.ClassCumulative {
		e.ending[fp] = series.LeftIdle
	}
	if n := len(e.ended); n == 0 || e.ended[n-1] != scope {
		e.ended = append(e.ended, scope)
	}
}

// again returns the memory for the next batch, if it is not too large.
func (e *effects) again() effects {
	for _, l := range e.met { // not all limits: there may be many, and batches may be small
		e.counts[l.Index] = counted{}
	}
	clear(e.met)
	e.staged.Reset()
	e.gathered.Reset()
	clear(e.paid)
	if len(e.departures) > overflow.MaxStaged {
		e.departures = nil
	}
	if len(e.views)+len(e.anew)+len(e.ending) > overflow.MaxStaged {
		e.views, e.anew, e.ending = nil, nil, nil
	}
	clear(e.views)
	clear(e.anew)
	clear(e.ending)
	return effects{
		staged:     e.staged,
		departures: e.departures[:0],
		paid:       e.paid[:0],
		views:      e.views,
		anew:       e.anew,
		ending:     e.ending,
		ended:      e.ended[:0],
		gathered:   e.gathered,
		counts:     e.counts[:0],
		met:        e.met[:0],
	}
}

// settles reports whether there are changes to the state of series.
func (e *effects) settles() bool {
	return !e.staged.Empty() || len(e.departures)+len(e.anew)+len(e.ending) > 0
}

// commit makes the changes of a batch.
func (g *Gate) commit(ctx context.Context, b *Batch) {
	g.Points.In.Add(b.came)
	g.Points.Passed.Add(b.came - b.gone)
	g.Points.Taken.Add(b.taken)
	if b.settles() {
		g.settle(&b.effects)
	}
	if len(b.gathered.Intakes) > 0 {
		g.feed(&b.gathered)
	}
	b.report(ctx)
}

// settle changes the state of series.
func (g *Gate) settle(e *effects) {
	g.Rules.RLock()
	defer g.Rules.RUnlock()
	x := series.Sighting{Policy: g.Rules.Policy, Moment: g.Limiter.Now()}
	g.Overflow.Commit(&overflow.Settlement{
		Staged: &e.staged, Epoch: x.Moment.Epoch(), Now: g.Now(), Lost: &e.losses,
		Placed: func(fp uint64) bool { return g.Limiter.Placed(fp, &x) },
	})
	for fp, since := range e.anew { // after their earlier values
		g.Overflow.Outgrown(fp, since)
	}
	for _, fp := range e.staged.Owned {
		g.Limiter.Own(fp, &x)
	}
	for _, departure := range e.departures { // after their values were added
		g.Limiter.Part(departure, g.Overflow.View(departure.FP).Member != nil, x.Moment)
	}
	g.endAll(e.ending, x.Moment)
	g.Familiar.end(e.ended)
}

// endAll takes the places of series that end.
func (g *Gate) endAll(ending map[uint64]uint32, now moment.Moment) {
	for _, fp := range slices.Sorted(maps.Keys(ending)) {
		if g.Limiter.End(fp, ending[fp], now) {
			g.Limiter.Ended.Add(1)
		}
	}
}

// feed adds the gathered points to aggregates.
func (g *Gate) feed(gathered *aggregate.Gathered) {
	g.Aggregator.Feed(gathered, g.Limiter.Now().Epoch(), g.Now())
	for i := range gathered.Births {
		if fp := gathered.Births[i].Ousts; fp != 0 {
			g.Overflow.Release(fp)
		}
	}
}

// discard undoes everything, as if the batch had never come.
func (g *Gate) discard(e *effects) {
	g.Overflow.Discard(&e.staged)
	g.Aggregator.Discard(e.gathered.Births)
	for _, paid := range e.paid {
		paid.Refund()
	}
}

// report counts the points by what happened to them.
func (b *Batch) report(ctx context.Context) {
	for _, l := range b.met {
		var all int64
		for why := range b.counts[l.Index].points {
			for what, n := range b.counts[l.Index].points[why] {
				if n > 0 {
					all += n
					b.g.Telemetry.ProcessorCardinalityRejectedPoints.Add(ctx, n, l.Rejected[why][what])
				}
			}
		}
		b.g.note(l, all, b.Now)
	}
	b.reportGathered(ctx)
	if b.marked > 0 {
		b.g.Telemetry.ProcessorCardinalityEndMarkers.Add(ctx, b.marked, b.g.Telemetry.Own)
	}
	for loss, n := range b.losses {
		if loss != int(amount.LossNone) && n > 0 {
			b.g.Telemetry.ProcessorCardinalityUnaccountedPoints.Add(ctx, n, b.g.Telemetry.Losses[loss])
		}
	}
}
