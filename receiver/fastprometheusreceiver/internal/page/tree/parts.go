// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/slab"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
)

// Parts builds the metrics of a large page one part after the other, so that they are never there as a whole: a point
// takes many times the memory of its value. Of the page only the values are held meanwhile.
type Parts struct {
	cursor

	Pending int        // points that no part had yet
	runs    []plan.Run // to come
	run     plan.Run
	rest    choice                 // of the run
	done    []int32                // points of each metric, of the runs until now
	changed map[int32]choice       // what is left of metrics that are not as the layout says
	given   []given                // metrics of the last part
	held    []pmetric.ScopeMetrics // scopes of the last part
	loan    handback.Loan
}

// Loan is what goes with the metrics of a part when they are handed out, nil if they will not be used again.
func (p *Parts) Loan() *handback.Loan {
	if !p.Owner.Tree.Reuse {
		return nil
	}
	return &p.loan
}

type given struct {
	pmetric.Metric

	scope int32
	place int // in the scope
	size  size
}

// NewParts prepares the parts of a large page's metrics.
func NewParts(l *plan.Layout, v *View) *Parts {
	v.hanging = len(v.Exemplars) > 0
	p := &Parts{cursor: cursor{View: v, Layout: l, slabs: new(slab.Slabs)}, Pending: v.Size(l), runs: l.Runs, done: make([]int32, len(l.Metrics))}
	if v.Owner.Tree.Reuse {
		p.slabs = slab.Kept()
	}
	if p.runs == nil {
		p.runs = l.InTurn(v.Owner.Catalog.Rules)
	}
	if v.Variation != nil {
		p.changed = map[int32]choice{}
		for _, ch := range v.Changes {
			p.changed[ch.Metric] = p.choose(&l.Metrics[ch.Metric], ch, nil, false)
		}
	}
	return p
}

// Next builds a part. A run that fits into one is not cut.
func (p *Parts) Next() pmetric.Metrics {
	md := pmetric.NewMetrics()
	p.loan.Forget()
	f := newFrame(p.Layout, md, p.Owner)
	p.broken = broken{}
	p.given, p.held = p.given[:0], nil
	most := p.Owner.Tree.Part
	for room := most; room > 0 && p.advance() && (p.rest.count <= room || p.rest.count > most); {
		var k choice
		k, p.rest = p.rest.cut(room)
		m := &p.Metrics[p.run.Metric]
		scope := f.scope(m.Scope)
		out := scope.AppendEmpty()
		p.metric(m, out, k, false)
		p.given = append(p.given, given{out, m.Scope, scope.Len() - 1, sizeOf(out)})
		room -= k.count
		p.Pending -= k.count
		if p.run.Ends && p.rest.count == 0 {
			break
		}
	}
	p.held = f.scopes
	if p.broken.count > 0 {
		removeEmpty(md)
		p.given = nil // nothing is where it was
	}
	isLast := !p.advance()
	if isLast {
		p.Pending = 0 // whatever the count says: there is no next part
	} else {
		p.Pending = max(p.Pending, 1)
	}
	p.broken.report(p.Owner, isLast)
	return md
}

// advance turns to the next run when nothing is left of one.
func (p *Parts) advance() bool {
	for p.rest.count == 0 {
		if len(p.runs) == 0 {
			return false
		}
		p.run, p.runs = p.runs[0], p.runs[1:]
		m, done := &p.Metrics[p.run.Metric], &p.done[p.run.Metric]
		p.rest = choice{first: m.First + *done, count: int(p.run.Points)}
		*done += p.run.Points
		if k, ok := p.changed[p.run.Metric]; ok {
			n := k.count
			if *done < m.Points {
				n, _ = slices.BinarySearch(k.list, m.First+*done)
			}
			p.rest, p.changed[p.run.Metric] = k.cut(n)
		}
	}
	return true
}

// cut divides a choice in two, none of which has been there.
func (k choice) cut(most int) (front, rest choice) {
	n := min(k.count, most)
	front, rest = choice{first: k.first, count: n}, choice{first: k.first + int32(n), count: k.count - n}
	if k.list != nil {
		front.list, rest.list = k.list[:n], k.list[n:]
	}
	return front, rest
}

// After takes back the part before, which was consumed, and builds the next: of the same memory, where nobody keeps it.
func (p *Parts) After(consumed pmetric.Metrics) pmetric.Metrics {
	switch j := p.Owner.Tree; {
	case !j.Reuse:
	case p.given == nil || consumed.IsReadOnly():
		p.slabs = slab.Kept()
	case !p.isIntact(consumed):
		j.cameBackChanged()
		p.slabs = slab.Kept()
	default:
		if handback.Poisons() {
			handback.Overwrite(consumed)
		}
		p.slabs.Again()
	}
	return p.Next()
}
