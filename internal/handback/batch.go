// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package handback

import (
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// A Returner is an exporter that returns what comes out of a batch: it asks what has arrived ([Arrive]) before it reads
// metrics without a loan, returns that once nothing of it is read any more ([Return]), and abandons metrics that it
// refuses ([Abandon]). It must be the last to have the metrics.
type Returner interface {
	Releaser

	ReturnsBatches()
}

// An Arrival is resources of a batch that were sent together, complete and in order. Other resources may lie between
// two arrivals.
type Arrival struct {
	*Loan

	First, End int // indices in the batch's resources
	batch      pmetric.Metrics
}

const (
	// MaxSent is the largest number of points in flight through batches, of all metrics that are to come back to
	// receivers.
	MaxSent = 1 << 16
	// longest is how long metrics are waited for when there are that many. Metrics that a batch had to cut never come
	// back.
	longest = 30 * time.Second
)

// sent are the resources in flight, by the address of their first scope. Nothing else identifies them: batch moves them
// into other metrics, and their contents into other resources.
var sent = struct {
	mu     sync.Mutex
	loans  map[uintptr]*Loan
	points int
	any    atomic.Bool
}{loans: map[uintptr]*Loan{}}

// Send arranges for metrics to come back that will be in flight for longer than ConsumeMetrics takes: once the exporter
// has done with them, back is called, on any goroutine, and they are unchanged. It is for receivers to which [Ask]
// reports that only batch is in the way. It returns false if too much is in flight; then they do not come back. If the
// metrics are refused, the receiver calls [Loan.Recall].
func (l *Loan) Send(md pmetric.Metrics, points int, back func()) bool {
	now, rms := time.Now(), md.ResourceMetrics()
	l.scopes = l.scopes[:0]
	for _, rm := range rms.All() {
		if rm.ScopeMetrics().Len() == 0 {
			return false
		}
		l.scopes = append(l.scopes, rm.ScopeMetrics().At(0))
	}
	sent.mu.Lock()
	defer sent.mu.Unlock()
	if sent.points+points > MaxSent {
		for _, other := range sent.loans {
			if now.Sub(other.left) > longest {
				other.claim()
			}
		}
	}
	if len(l.scopes) == 0 || sent.points+points > MaxSent {
		return false
	}
	l.metrics, l.back, l.away, l.left = md, back, points, now
	for _, sm := range l.scopes {
		sent.loans[addressOf(sm)] = l
	}
	sent.points += points
	sent.any.Store(true)
	l.lent()
	return true
}

// Recall reports that metrics were not sent after all. They must not be used again: the consumer that refused them may
// have kept them.
func (l *Loan) Recall() {
	sent.mu.Lock()
	defer sent.mu.Unlock()
	l.claim()
}

// claim takes a loan's resources out of those in flight. The lock is held.
func (l *Loan) claim() {
	for _, sm := range l.scopes {
		if at := addressOf(sm); sent.loans[at] == l {
			delete(sent.loans, at)
		}
	}
	sent.points -= l.away
	l.away = 0
	sent.any.Store(len(sent.loans) > 0)
}

// Arrive returns what was sent and has arrived with metrics, in order. Resources that are not there as they were sent
// do not come back.
func Arrive(md pmetric.Metrics) (all []Arrival) {
	if !sent.any.Load() || md.IsReadOnly() {
		return nil
	}
	rms := md.ResourceMetrics()
	sent.mu.Lock()
	defer sent.mu.Unlock()
	for i := 0; i < rms.Len(); {
		n := 1
		if l := loanAt(rms.At(i)); l != nil {
			if l.isAt(rms, i) {
				n = len(l.scopes)
				all = append(all, Arrival{l, i, i + n, md})
			}
			l.claim()
		}
		i += n
	}
	return all
}

// loanAt returns the loan that a resource was sent with, nil if there is none. The lock is held.
func loanAt(rm pmetric.ResourceMetrics) *Loan {
	if rm.ScopeMetrics().Len() == 0 {
		return nil
	}
	return sent.loans[addressOf(rm.ScopeMetrics().At(0))]
}

// isAt reports whether the resources sent with the loan are a batch's resources from a given one on.
func (l *Loan) isAt(rms pmetric.ResourceMetricsSlice, from int) bool {
	if rms.Len()-from < len(l.scopes) {
		return false
	}
	for i, sm := range l.scopes {
		if is := rms.At(from + i).ScopeMetrics(); is.Len() == 0 || addressOf(is.At(0)) != addressOf(sm) {
			return false
		}
	}
	return true
}

// Return gives back what has arrived. It is taken out of the batch, whose resources are empty then.
func Return(all []Arrival) {
	for _, a := range all {
		into := a.metrics.ResourceMetrics()
		if into.Len() > 0 { // they were never moved
			continue
		}
		for i := a.First; i < a.End; i++ {
			a.batch.ResourceMetrics().At(i).MoveTo(into.AppendEmpty())
		}
		back := a.back
		a.back = nil
		back()
	}
}

// Abandon reports that metrics were refused: none of them come back.
func Abandon(md pmetric.Metrics) { Arrive(md) }

// addressOf returns the address of a scope, whichever resource it is in.
func addressOf(sm pmetric.ScopeMetrics) uintptr { return reflect.ValueOf(sm).Field(0).Pointer() }

// knowsScopes reports whether scopes are represented in pdata as addressOf requires.
var knowsScopes = func() bool {
	t := reflect.TypeFor[pmetric.ScopeMetrics]()
	return t.NumField() > 0 && t.Field(0).Name == "orig" && t.Field(0).Type.Kind() == reflect.Pointer
}()
