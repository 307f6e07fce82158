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

// A Result is the outcome of a scrape.
type Result struct {
	// Metrics has the samples, the stale markers of series that are gone and the report; for a large page, a part of
	// these, until Next. It may be empty, and belongs to the caller until Release.
	Metrics pmetric.Metrics
	// Err is the reason that up is 0.
	Err error
	// Samples is the number of samples on the page, PostRelabel that of samples left after relabeling, Added that of
	// series that were not on the last page.
	Samples, PostRelabel, Added int
	// Hits counts lines that were expected, Misses those that were not.
	Hits, Misses int
	// Limited counts samples dropped by the series limit, Late those with a timestamp too far in the future.
	Limited, Late int

	tree      *tree.Tree  // that may be filled again
	pools     *tree.Pools // that take the tree back
	layout    *plan.Layout
	parts     *tree.Parts     // nil if the page is not large
	lender    *Scrape         // holds the values of the parts
	transient *tree.Transient // nil unless the memory of the metrics is used again
	sent      *tree.Tree      // the tree that comes back once it was exported, even after its owner has been retired
	later     bool            // trees are sent, and come back later
}

// ErrLimit matches Result.Err, by errors.Is, when a page exceeds a limit of its job.
var ErrLimit = catalog.ErrLimit

// A Family is the metadata of a metric.
type Family struct{ Name, Type, Help, Unit string }

// Families visits the metadata of the target's metrics, except those of the report. A family may be visited more than
// once.
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
	j, n := v.Owner.Tree, v.Weight(l)
	keeps := j.IsLarge(n) || !j.Reuse || e.target.cohort.pools.Keeps(l, v.At, j) || t != nil
	switch {
	case j.IsLarge(n) || !keeps && j.Divides(n):
		e.lent, res.lender = true, e.Scrape
		res.parts = tree.NewParts(l, v)
		res.Metrics = res.parts.Next()
	case !keeps:
		res.Metrics, res.transient = tree.RenderTransient(l, v)
	default:
		res.Metrics, res.tree = tree.Render(l, t, v)
		res.pools, res.later = &e.target.cohort.pools, j.Later
	}
}

// Pending returns at most how many points are in the parts that follow.
func (r Result) Pending() int {
	if r.parts == nil {
		return 0
	}
	return r.parts.Pending
}

// Width returns how many attributes the points have on average.
func (r Result) Width() int {
	if r.layout == nil || len(r.layout.Points) == 0 {
		return 0
	}
	return r.layout.Attributes / len(r.layout.Points)
}

// Next returns the result with the next part of a large page's metrics, in place of the previous part, which must have
// been consumed.
func (r Result) Next() Result {
	consumed := r.Metrics
	r.Metrics = pmetric.Metrics{} // may be freed while the next part is built
	r.Metrics = r.parts.After(consumed)
	return r
}

// Send must be called before metrics are handed to the consumer, by its caller. The result that it returns is to be
// used from then on, if the metrics come back later.
func (r Result) Send() Result {
	if r.tree == nil || !r.later {
		return r
	}
	t, pools, md := r.tree, r.pools, r.Metrics
	if r.tree = nil; t.Send(md, func() { returnTree(t, pools, md) }) {
		r.sent = t
	}
	return r
}

// Recall records that the consumer has refused the metrics that were sent.
func (r Result) Recall() {
	if r.sent != nil {
		r.sent.Loan().Recall()
	}
}

// returnTree returns a tree to its pool.
func returnTree(t *tree.Tree, pools *tree.Pools, md pmetric.Metrics) {
	t.PutBack()
	if t.Poisoned = handback.Poisons(); t.Poisoned {
		handback.Overwrite(md)
	}
	pools.Give(t)
}

// Loan is passed along with the metrics; it is nil if their memory is not used again.
func (r Result) Loan() *handback.Loan {
	switch {
	case r.tree != nil:
		return r.tree.Loan()
	case r.parts != nil:
		return r.parts.Loan()
	case r.transient != nil:
		return r.transient.Loan()
	default:
		return nil
	}
}

// Settle fills in the attributes of points that were left out, for those who read the metrics before they are lent.
func (r Result) Settle() {
	if r.tree != nil {
		r.tree.Settle()
	}
}

// Release records that the consumer has returned without an error. With Config.Reuse, the metrics may then be filled
// again; otherwise the call has no effect.
func (r Result) Release() {
	if r.Metrics.IsReadOnly() { // several consumers share the metrics: the read-only flag cannot be removed
		return
	}
	switch {
	case r.Pending() > 0: // the remaining parts are not wanted
	case r.parts != nil:
		r.parts.Release(r.Metrics)
		if r.lender != nil {
			r.lender.recycle()
		}
	case r.transient != nil:
		r.transient.Release(r.Metrics)
	case r.tree != nil:
		returnTree(r.tree, r.pools, r.Metrics)
	}
}

// with returns the result with the page's numbers of samples.
func (r Result) with(n plan.Tally) Result {
	r.Samples, r.PostRelabel, r.Limited, r.Added = n.Samples, n.Samples-n.Dropped, n.Limited, n.Added
	return r
}
