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
	rest    choice           // of the run
	done    []int32          // points of each metric, of the runs until now
	changed map[int32]choice // what is left of metrics that are not as the layout says
	made    *made            // of which parts are made whose memory is used again, nil if it is not
}

// Loan is what goes with the metrics of a part when they are handed out, nil if they will not be used again.
func (p *Parts) Loan() *handback.Loan {
	if p.made == nil {
		return nil
	}
	return &p.made.loan
}

// NewParts prepares the parts of a large page's metrics.
func NewParts(l *plan.Layout, v *View) *Parts {
	v.hanging = len(v.Exemplars) > 0
	p := &Parts{cursor: cursor{View: v, Layout: l}, Pending: v.Size(l), runs: l.Runs, done: make([]int32, len(l.Metrics))}
	if v.Owner.Tree.remakes() {
		p.made = makings.Get().(*made)
		p.slabs = p.made.slabs
	} else {
		p.slabs = new(slab.Slabs)
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
	f := newFrame(p.Layout, md, p.Owner)
	p.broken = broken{}
	most := p.Owner.Tree.Part
	if len(p.Scopes) == 1 && len(p.runs) > 0 {
		f.scope(0).EnsureCapacity(min(len(p.runs), most))
	}
	for room := most; room > 0 && p.advance() && (p.rest.count <= room || p.rest.count > most); {
		var k choice
		k, p.rest = p.rest.cut(room)
		m := &p.Metrics[p.run.Metric]
		scope := f.scope(m.Scope)
		out := p.append(scope, m.Family.Base.Kind, k.count)
		p.metric(m, out, k, false)
		if p.made != nil {
			p.made.note(out, m.Scope, scope)
		}
		room -= k.count
		p.Pending -= k.count
		if p.run.Ends && p.rest.count == 0 {
			break
		}
	}
	if p.made != nil {
		p.made.scopes = append(p.made.scopes, f.scopes...)
	}
	if p.broken.count > 0 {
		removeEmpty(md)
		p.made.lose() // nothing is where it was
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

// After takes back the part before, which was consumed, and builds the next: of the same memory, where nobody keeps it.
func (p *Parts) After(consumed pmetric.Metrics) pmetric.Metrics {
	if p.made != nil {
		if !p.made.takeBack(consumed, p.Owner) {
			p.made = makings.Get().(*made)
		}
		p.slabs = p.made.slabs
	}
	return p.Next()
}

// Release takes back the last part, which was consumed: others are made of its memory.
func (p *Parts) Release(consumed pmetric.Metrics) {
	if p.made != nil {
		p.made.release(consumed, p.Owner)
		p.made = nil
	}
}
