// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/tree"
)

// maxAhead is how far in the future a sample's timestamp may be.
const maxAhead = 10 * time.Minute

// End finishes the scrape. If r.Err is set or the page is invalid, what was fed is dropped, and the result has stale
// markers for the target's series, and up = 0.
func (s *Scrape) End(r Report) Result {
	defer s.release()
	e := ending{Scrape: s, about: r}
	res := e.decide()
	if e.isGood() {
		s.target.passing = s.passing
	}
	return res
}

// An ending decides what a page means after it was read, and makes metrics of it. Most pages are as planned (emitRepeated);
// some differ by series that come and go (emitVaried), or by label values that replaced others (emitReplaced). All others are
// processed line by line (settle).
type ending struct {
	*Scrape

	about Report
	res   Result
}

func (e *ending) decide() Result {
	t := e.target
	t.Iteration++
	t.cohort.rest(e.at)
	err := e.about.Err
	if err == nil {
		err = e.finish()
	}
	e.mix()
	if len(e.slots) > 0 {
		e.res.Hits = e.next
		if err == nil && e.emitReplaced() {
			return e.res
		}
		err = cmp.Or(err, e.putBack())
	}
	lines := e.readSoFar()
	if e.about.Err != nil && e.err == nil {
		lines = nil // the page is incomplete, so none of it counts
	}
	e.res = Result{Err: err, Hits: e.next, Misses: len(e.lines)}
	if e.strayed {
		e.res.Hits = 0
	}
	switch {
	case err != nil || e.size == 0 || e.join():
	case e.exact():
		if e.res = e.res.with(e.plan.Tally); over(e.target.cohort.job, e.res.PostRelabel-e.plan.Repeats) { // exact pages with timestamps have none
			e.res.Err = catalog.ErrSampleLimit
			break
		}
		t.Succeed()
		if t.Forget() {
			t.Settled = false
		}
		e.emitRepeated()
		return e.res
	case !e.renames() && e.emitVaried():
		return e.res
	default:
	}
	e.settle(lines)
	return e.res
}

func over(j *Job, samples int) bool {
	return j.cfg.Scrape.SampleLimit > 0 && samples > int(j.cfg.Scrape.SampleLimit)
}

// exact reports whether the page is the target's plan, so that nothing needs to be decided again.
func (e *ending) exact() bool {
	t := e.target
	if !e.isComplete() || e.plan == nil || e.plan != t.Plan || !t.Diff.IsEmpty() || !t.Settled || e.plan.Layout == nil {
		return false
	}
	if e.times == nil {
		return t.Timed == nil
	}
	if e.plan.Repeats > 0 || !slices.Equal(e.timestamped(e.next), t.Timed) || slices.Max(e.times) > latest(time.Now()) {
		return false
	}
	return e.haveOneTime(e.plan)
}

// haveOneTime reports whether all samples of each point have the same time. It reports false if a point has more samples
// than it can hold.
func (e *ending) haveOneTime(p *plan.Plan) bool {
	p.Owners()
	return !p.HasUnplaced && p.Layout.IsTogether(e.times)
}

func latest(now time.Time) int64 { return now.Add(maxAhead).UnixMilli() }

// timestamped returns a bitmap of the page's lines whose end will not be marked, because their samples had timestamps.
func (e *ending) timestamped(lines int) []uint64 {
	if e.times == nil || e.target.cohort.job.cfg.Scrape.TrackTimestampsStaleness {
		return nil
	}
	bits := make([]uint64, (lines+63)/64)
	found := false
	for i, t := range e.times[:lines] {
		if t != plan.NoTime {
			bits[i/64] |= 1 << (i % 64)
			found = true
		}
	}
	if !found {
		return nil
	}
	return bits
}

// emitRepeated makes metrics of a page that is as planned.
func (e *ending) emitRepeated() {
	t, p := e.target, e.plan
	e.report()
	v := tree.View{Owner: &t.owner, At: pcommon.Timestamp(e.at * 1e6), Values: e.values, Times: e.times, Natives: e.natives}
	if len(e.exemplars) > 0 {
		e.exemplars = plan.AssignExemplars(e.exemplars, p.Owners())
		v.Exemplars = e.exemplars
	}
	e.render(p.Layout, e.freeTree(p), &v)
}
