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

// Parts makes the metrics of a large page one part after the other, so that they never exist as a whole: a point takes
// many times the memory of its value. Meanwhile only the values of the page are held.
type Parts struct {
	cursor

	Pending int        // points in the parts that follow
	made    int        // parts so far
	runs    []plan.Run // still to be made
	run     plan.Run
	rest    choice           // of the current run
	done    []int32          // points of each metric in earlier runs
	changed map[int32]choice // the remaining points of metrics that differ from the layout
	memory  *recycled        // memory of the parts, if it is used again, else nil
}

// Loan is passed along with the metrics of a part; nil if they are not used again.
func (p *Parts) Loan() *handback.Loan {
	if p.memory == nil {
		return nil
	}
	return &p.memory.loan
}

// NewParts prepares the parts of a large page's metrics.
func NewParts(l *plan.Layout, v *View) *Parts {
	v.hasExemplars = len(v.Exemplars) > 0
	p := &Parts{cursor: cursor{View: v, Layout: l}, Pending: v.Size(l), runs: l.Runs, done: make([]int32, len(l.Metrics))}
	if v.Owner.Tree.remakes() {
		p.memory = idleRecycled.Get().(*recycled)
		p.slabs = p.memory.slabs
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

// Next makes a part. A run that fits into one is not cut.
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
		k, p.rest = p.rest.split(room)
		m := &p.Metrics[p.run.Metric]
		scope := f.scope(m.Scope)
		out := p.append(scope, m.Family.Base.Kind, k.count)
		p.metric(m, out, k, false)
		if p.memory != nil {
			p.memory.add(out, m.Scope, scope)
		}
		room -= k.count
		p.Pending -= k.count
		if p.run.Ends && p.rest.count == 0 {
			break
		}
	}
	if p.memory != nil {
		p.memory.scopes = append(p.memory.scopes, f.scopes...)
	}
	switch {
	case p.broken.count > 0:
		removeEmpty(md)
		p.memory.abandon() // parts are not where isIntact expects them
	case p.memory != nil:
		p.memory.know(p.View, p.Layout, true, p.made)
	}
	p.made++
	isLast := !p.advance()
	if isLast {
		p.Pending = 0 // a safeguard: there is no next part, even if the count says so
	} else {
		p.Pending = max(p.Pending, 1)
	}
	p.broken.report(p.Owner, isLast)
	return md
}

// advance turns to the next run when the current one is done.
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
			p.rest, p.changed[p.run.Metric] = k.split(n)
		}
	}
	return true
}

// After takes back the previous part, which was consumed, and makes the next one, of the same memory if that is used
// again.
func (p *Parts) After(consumed pmetric.Metrics) pmetric.Metrics {
	if p.memory != nil {
		if !p.memory.reclaim(consumed, p.Owner) {
			p.memory = idleRecycled.Get().(*recycled)
		}
		p.slabs = p.memory.slabs
	}
	return p.Next()
}

// Release takes back the last part, which was consumed, to use its memory again.
func (p *Parts) Release(consumed pmetric.Metrics) {
	if p.memory != nil {
		p.memory.release(consumed, p.Owner)
		p.memory = nil
	}
}
