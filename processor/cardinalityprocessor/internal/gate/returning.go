// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/overflow"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/series"
)

// viewed returns a member as the batch sees it.
func (b *Batch) viewed(fp uint64) overflow.View {
	if v, ok := b.views[fp]; ok {
		return v
	}
	return b.g.Overflow.View(fp)
}

// present updates a verdict to the current rules: its rule may have changed, or be gone.
func (b *Batch) present(v ruling) ruling {
	if i := v.Limit.Index; i < len(b.Policy.Limits) && b.Policy.Limits[i] == v.Limit { // fast path: the rules are still the same
		return v
	}
	if v.Limit = b.Policy.Named[v.Limit.Name]; v.Limit == nil {
		v.Limit = b.Policy.Named[policy.RuleTotal]
	}
	return v
}

// own decides about a point of a series that has a place, and is a member or was one.
func (b *Batch) own(i int, s *series.Set) (passes bool) {
	w := amount.WhenAt(b.at.m, i)
	b.Class, b.NoValue = amount.ClassOf(b.at.m), w.NoValue
	fp := b.fps[i]
	v := b.viewed(fp)
	since, anew := b.anew[fp]
	switch {
	case v.Member == nil: // it has restarted
		b.match()
		b.g.Limiter.Ordinary(fp, &b.Sighting)
		return b.payPointLimits(i, s)
	case anew && (b.NoValue || w.Start == since):
		return b.payPointLimits(i, s)
	case !b.NoValue && w.Anew(v.When(), pcommon.Timestamp(b.Now)): // it is no member any more once the batch is accepted: what it said before may come again with it
		b.began(fp, w.Start)
		return b.payPointLimits(i, s)
	case v.Own == nil:
		if !v.Exact { // it can never restart
			b.g.Limiter.End(fp, 0, b.Moment)
		}
		return b.exceed(i, b.present(ruling{Verdict: series.Verdict{Limit: v.Limit, Reason: v.Reason}, held: v.Member.Output}))
	case !v.Noted:
		return b.exceed(i, b.present(ruling{Verdict: series.Verdict{Limit: v.Limit, Reason: v.Reason, Waits: true}}))
	default:
		return b.payPointLimits(i, s) && b.restate(i, &v, false)
	}
}

// demote is for a series of its own that has lost its place, and finds none. Its value is sent once more; from then on
// it is added to the overflow.
func (b *Batch) demote(i int, v ruling) (passes bool) {
	seen := b.viewed(b.fps[i])
	if seen.Member == nil || seen.Own == nil || !seen.Noted {
		v.Waits, v.Step, v.Last = true, series.Step{}, series.NoLastPoint
		return b.exceed(i, v)
	}
	seen.Limit, seen.Reason = v.Limit, v.Reason
	return b.restate(i, &seen, true)
}

// restate changes a point to what its series reports by itself.
func (b *Batch) restate(i int, v *overflow.View, demote bool) (passes bool) {
	m, w := b.at.m, amount.WhenAt(b.at.m, i)
	add := overflow.Addition{FP: b.fps[i], Start: w.Start, Time: w.Time, NoValue: w.NoValue, Kind: overflow.AdditionOwn}
	if w.NoValue {
		b.write(i, nil, v.Own.Since, nil)
		b.g.Overflow.StageOwn(&b.staged, v, &add, &amount.Bucketed{})
		return true
	}
	now := amount.Bucketed{Value: amount.ValueAt(m, i)}
	if now.Shape == amount.ShapeNumber && !amount.Finite(now.Number()) {
		b.write(i, nil, v.Own.Since, nil)
		return true
	}
	base, is, in := v.Own.Base, now.Value, (*amount.Bounds)(nil)
	if now.Shape == amount.ShapeHistogram {
		of, ok := amount.BoundsOf(m.Histogram().DataPoints().At(i), v.Own.Bounds)
		if now.Bounds, in = of, of; ok && !base.Nothing() { // in the bounds that both have
			in = v.Own.Bounds.Common(of)
			ok = in != nil || of == nil && v.Own.Bounds == nil
			base.Cells, is.Cells = v.Own.Bounds.Coarsen(base.Cells, in), of.Coarsen(is.Cells, in)
		}
		if !ok {
			b.losses[amount.LossBounds]++
			return b.g.DryRun
		}
	}
	said, grown := is.Minus(base)
	anew := !grown || now.Fell(&v.Last)
	if w.Time <= v.Time {
		if anew {
			b.losses[amount.LossOld]++
			return b.g.DryRun
		}
		b.write(i, &said, v.Own.Since, in)
		return true
	}
	if anew { // without a new start
		in, said, v.Own = now.Bounds, now.Clone(), &overflow.Own{Since: v.Time, Noted: true}
	} else if !base.Nothing() && !base.HasSum {
		said.HasSum = false
	}
	b.write(i, &said, v.Own.Since, in)
	add.Own, add.Demoted = v.Own, demote
	v.Time, v.Last = w.Time, now.Scalar()
	if demote {
		id, _ := b.g.Limiter.Series.Touch(b.fps[i], b.Moment)
		b.part(b.fps[i], series.Step{From: uint8(min(id, series.LeftLast)), To: uint8(series.LeftValue)})
		v.Last, v.Own = now.Value, nil
	} else {
		now.Value = v.Last
	}
	b.g.Overflow.StageOwn(&b.staged, v, &add, &now)
	b.saw(b.fps[i], v)
	return true
}

// write changes the value of a point and its start. Minimum and maximum are removed, since they are not known for a
// part of the time.
func (b *Batch) write(i int, v *amount.Value, since pcommon.Timestamp, in *amount.Bounds) {
	m := b.at.m
	if b.g.DryRun {
		return
	}
	switch m.Type() {
	case pmetric.MetricTypeSum:
		m.Sum().DataPoints().At(i).SetStartTimestamp(since)
	case pmetric.MetricTypeHistogram:
		dp := m.Histogram().DataPoints().At(i)
		dp.SetStartTimestamp(since)
		dp.RemoveMin()
		dp.RemoveMax()
		if v != nil && !v.HasSum {
			dp.RemoveSum()
		}
		if v != nil && in != nil {
			dp.ExplicitBounds().FromRaw(in.Upper)
		}
	case pmetric.MetricTypeExponentialHistogram:
		dp := m.ExponentialHistogram().DataPoints().At(i)
		dp.SetStartTimestamp(since)
		dp.RemoveMin()
		dp.RemoveMax()
		if v != nil && !v.HasSum {
			dp.RemoveSum()
		}
	case pmetric.MetricTypeSummary:
		m.Summary().DataPoints().At(i).SetStartTimestamp(since)
	default:
	}
	if v != nil {
		v.WriteTo(m, i)
	}
}
