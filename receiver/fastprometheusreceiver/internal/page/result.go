// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/tree"
)

// A Result is what came of a scrape.
type Result struct {
	// Metrics has the samples, the stale markers of what is gone and the report; of a large page a part of that, until
	// Next. It may be empty, and is the caller's until Release.
	Metrics pmetric.Metrics
	// Err says why up is 0.
	Err error
	// Samples were on the page, PostRelabel of them were left by relabeling, Added were of series not on the page before.
	Samples, PostRelabel, Added int
	// Hits were lines as expected, Misses were not.
	Hits, Misses int
	// Limited samples were dropped for the series limit, Late ones for a timestamp too far in the future.
	Limited, Late int

	tree    *tree.Tree  // that can be filled again
	pools   *tree.Pools // to give it to
	layout  *plan.Layout
	parts   *tree.Parts   // nil unless the page is large
	lender  *Scrape       // that has the values of the parts
	passing *tree.Passing // nil unless others are made of the memory
	sent    *tree.Tree    // that comes back once it was exported, whoever has been given it meanwhile
	later   bool          // trees are sent
}

// ErrLimit is what Result.Err is, in the sense of errors.Is, when a page is beyond a limit of its job's.
var ErrLimit = catalog.ErrLimit

// A Family is what was said of a metric.
type Family struct{ Name, Type, Help, Unit string }

// Families visits what was said of the target's metrics, those of the report aside. One may come more than once.
func (t *Target) Families(r Result, yield func(Family)) {
	for i := range r.layout.Metrics {
		if b := r.layout.Metrics[i].Family.Base; !slices.Contains(t.cohort.Rules.Report, b.Name) {
			yield(Family{b.Out, string(b.PromType), b.Help, b.OutUnit})
		}
	}
}

// render makes metrics of the scrape, or the first part of them.
func (e *ending) render(l *plan.Layout, t *tree.Tree, v *tree.View) {
	res := &e.res
	res.layout = l
	j, n := v.Owner.Tree, v.Size(l)
	keeps := j.IsLarge(n) || !j.Reuse || e.target.cohort.pools.Keeps(l, v.At, j) || t != nil
	switch {
	case j.IsLarge(n) || !keeps && j.Divides(n):
		e.lent, res.lender = true, e.Scrape
		res.parts = tree.NewParts(l, v)
		res.Metrics = res.parts.Next()
	case !keeps:
		res.Metrics, res.passing = tree.Pass(l, v)
	default:
		res.Metrics, res.tree = tree.Render(l, t, v)
		res.pools, res.later = &e.target.cohort.pools, j.Later
	}
}

// Pending returns how many points the parts to come have, at most.
func (r Result) Pending() int {
	if r.parts == nil {
		return 0
	}
	return r.parts.Pending
}

// Next returns the result with the next part of a large page's metrics, in place of the one before, which must have been
// consumed.
func (r Result) Next() Result {
	consumed := r.Metrics
	r.Metrics = pmetric.Metrics{} // may go while the next is built
	r.Metrics = r.parts.After(consumed)
	return r
}

// Send is called before metrics are handed on, by the consumer's caller. Where they come back later, that is what it returns; else it means
// nothing.
func (r Result) Send() Result {
	if r.tree == nil || !r.later {
		return r
	}
	t, pools, md := r.tree, r.pools, r.Metrics
	if r.tree = nil; t.Send(md, func() { comeBack(t, pools, md) }) {
		r.sent = t
	}
	return r
}

// Recall says that the consumer has refused what was sent.
func (r Result) Recall() {
	if r.sent != nil {
		r.sent.Loan().Recall()
	}
}

// comeBack gives a tree to who fills it again.
func comeBack(t *tree.Tree, pools *tree.Pools, md pmetric.Metrics) {
	if t.Poisoned = handback.Poisons(); t.Poisoned {
		handback.Overwrite(md)
	}
	pools.Give(t)
}

// Loan is what goes with the metrics when they are handed out, nil if their memory is not used again.
func (r Result) Loan() *handback.Loan {
	switch {
	case r.tree != nil:
		return r.tree.Loan()
	case r.parts != nil:
		return r.parts.Loan()
	case r.passing != nil:
		return r.passing.Loan()
	default:
		return nil
	}
}

// Settle has all points say what they are to, for who reads them before the metrics are lent.
func (r Result) Settle() {
	if r.tree != nil {
		r.tree.Settle()
	}
}

// Release says that the consumer has returned without an error. With Config.Reuse the metrics may then be filled again;
// without, the call means nothing.
func (r Result) Release() {
	if r.Metrics.IsReadOnly() { // shared by several consumers: their flag cannot be taken back
		return
	}
	switch {
	case r.Pending() > 0: // nobody wants the rest
	case r.parts != nil:
		r.parts.Release(r.Metrics)
		if r.lender != nil {
			r.lender.recycle()
		}
	case r.passing != nil:
		r.passing.Release(r.Metrics)
	case r.tree != nil:
		comeBack(r.tree, r.pools, r.Metrics)
	}
}

// with returns the result with how many samples the page had.
func (r Result) with(n plan.Tally) Result {
	r.Samples, r.PostRelabel, r.Limited, r.Added = n.Samples, n.Samples-n.Dropped, n.Limited, n.Added
	return r
}
