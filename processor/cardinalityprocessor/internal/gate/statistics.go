// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/stats"
)

// telling is what a batch reports to statistics.
type telling struct {
	weighed  bool // report the number of points, too
	refusals refusals
	account  account
}

// dropReferences removes references to the data.
func (t *telling) dropReferences() {
	labels := t.account.series.Labels
	clear(labels[:cap(labels)])
	t.account = account{series: stats.Series{Labels: labels[:0]}}
}

// again returns the memory for the next batch.
func (t *telling) again() telling {
	t.refusals.reset()
	return telling{refusals: t.refusals, account: t.account}
}

// account is the description of one series for statistics.
type account struct {
	series stats.Series
	rm     pmetric.ResourceMetrics // of the first labels
	common int                     // number of these
}

// observe reports the point's series.
func (b *Batch) observe(i int) {
	b.fill(i)
	s := &b.account.series
	s.New, s.Again, s.Moment, s.Chosen = b.Fresh, b.Missed, b.Moment, b.Chosen
	b.g.Book.Observe(s)
}

// refusals are the rejected points of the current metric, for statistics.
type refusals struct {
	fps []uint64
	all []refusal
	of  []int // to be reported
}

type refusal struct {
	index int
	limit *policy.Limit
	why   policy.Reason
	what  policy.Action
}

// observeRejected records a series without a place.
func (b *Batch) observeRejected(i int, v ruling, what policy.Action) {
	if b.g.Book != nil {
		b.refusals.fps = append(b.refusals.fps, b.fps[i])
		b.refusals.all = append(b.refusals.all, refusal{i, v.Limit, v.Reason, what})
	}
}

// observeAllRejected reports the rejected series of the current metric.
func (b *Batch) observeAllRejected() {
	r := &b.refusals
	r.of = b.g.Book.RefuseAll(b.Owner.Metric, r.fps, r.of[:0])
	for _, i := range r.of {
		of := &r.all[i]
		b.fill(of.index)
		s := &b.account.series
		s.Rejected, s.Rule, s.Reason, s.Action = true, of.limit.Name, policy.ReasonNames[of.why], policy.ActionNames[of.what]
		s.Tenant, s.At = b.Owner.Tenant, time.Unix(0, b.Now)
		b.g.Book.Observe(s)
	}
	r.reset()
}

func (r *refusals) reset() {
	clear(r.all)
	r.fps, r.all = r.fps[:0], r.all[:0]
	if cap(r.fps) > maxRetained {
		*r = refusals{}
	}
}

func (b *Batch) fill(i int) {
	a := &b.account
	if a.rm != b.at.rm {
		a.rm = b.at.rm
		a.series.Labels = appendLabels(b.Hash, a.series.Labels[:0], b.Owner.Resource, stats.MaxLabels/2)
		a.common = len(a.series.Labels)
	}
	labels := appendLabels(b.Hash, a.series.Labels[:a.common], amount.AttributesAt(b.at.m, i), stats.MaxLabels-a.common)
	scope := b.Hash.Scope(b.at.seed, b.at.sm.Scope())
	a.series = stats.Series{
		Fingerprint: b.fps[i], Base: b.Hash.Metric(scope, b.at.m), Labels: labels,
		Metric: b.Owner.Metric, Unit: b.at.m.Unit(), Kind: amount.KindOf(b.at.m),
	}
}

// appendLabels appends attributes in the form that statistics need.
func appendLabels(h *ident.Hasher, dst []stats.Label, attributes pcommon.Map, limit int) []stats.Label {
	for key, value := range attributes.All() {
		if limit--; limit < 0 {
			break
		}
		name := h.Text(key)
		dst = append(dst, stats.Label{Key: key, Value: value, Name: name, Hash: h.Attribute(name, value)})
	}
	return dst
}
