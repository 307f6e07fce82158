// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package handback

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// named returns metrics of some resources, each with one metric of the given name.
func named(names ...string) pmetric.Metrics {
	md := pmetric.NewMetrics()
	for _, name := range names {
		m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		m.SetName(name)
		m.SetEmptyGauge().DataPoints().AppendEmpty()
	}
	return md
}

func namesOf(md pmetric.Metrics) (names []string) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				names = append(names, m.Name())
			}
		}
	}
	return names
}

// sends has loans that were sent, and how often each was returned.
type sends struct {
	loans []*Loan
	mds   []pmetric.Metrics
	back  []int
}

func (s *sends) send(t *testing.T, names ...string) {
	l, md, i := new(Loan), named(names...), len(s.loans)
	s.loans, s.mds, s.back = append(s.loans, l), append(s.mds, md), append(s.back, 0)
	require.True(t, l.Send(md, md.DataPointCount(), func() { s.back[i]++ }))
}

// batch merges metrics like the batch processor.
func batch(mds ...pmetric.Metrics) pmetric.Metrics {
	into := pmetric.NewMetrics()
	for _, md := range mds {
		md.ResourceMetrics().MoveAndAppendTo(into.ResourceMetrics())
	}
	return into
}

func nothingIsAway(t *testing.T) {
	t.Helper()
	require.Empty(t, sent.loans)
	require.Zero(t, sent.points)
	require.False(t, sent.any.Load())
}

func TestWhatComesOutOfABatchComesBack(t *testing.T) {
	var s sends
	s.send(t, "a", "b")
	s.send(t, "c")
	md := batch(named("x"), s.mds[0], named("y", "z"), s.mds[1])
	all := Arrive(md)
	require.Len(t, all, 2)
	require.Same(t, s.loans[0], all[0].Loan)
	require.Equal(t, []int{1, 3, 5, 6}, []int{all[0].First, all[0].End, all[1].First, all[1].End})
	require.Empty(t, Arrive(md), "it has arrived")
	nothingIsAway(t)
	Return(all)
	require.Equal(t, []int{1, 1}, s.back)
	require.Equal(t, []string{"a", "b"}, namesOf(s.mds[0]))
	require.Equal(t, []string{"c"}, namesOf(s.mds[1]))
	require.Equal(t, []string{"x", "y", "z"}, namesOf(md), "what was returned is not there any more")
	require.False(t, s.loans[0].Lasts())
	require.True(t, s.loans[0].Send(s.mds[0], 2, func() {}))
	require.True(t, s.loans[0].Lasts())
	s.loans[0].Recall()
	nothingIsAway(t)
}

// A batch with a maximum size moves the contents of resources into others.
func TestResourcesThatWereMovedComeBack(t *testing.T) {
	var s sends
	s.send(t, "a", "b")
	md, cut := batch(s.mds[0]), pmetric.NewMetrics()
	for _, rm := range md.ResourceMetrics().All() {
		rm.MoveTo(cut.ResourceMetrics().AppendEmpty())
	}
	Return(Arrive(cut))
	require.Equal(t, []int{1}, s.back)
	require.Equal(t, []string{"a", "b"}, namesOf(s.mds[0]))
}

func TestWhatIsNotWholeDoesNotComeBack(t *testing.T) {
	for name, change := range map[string]func(md pmetric.Metrics) pmetric.Metrics{
		"cut": func(md pmetric.Metrics) pmetric.Metrics {
			front := pmetric.NewMetrics()
			md.ResourceMetrics().At(0).MoveTo(front.ResourceMetrics().AppendEmpty())
			md.ResourceMetrics().RemoveIf(func(rm pmetric.ResourceMetrics) bool { return rm.ScopeMetrics().Len() == 0 })
			return md
		},
		"the front of it": func(md pmetric.Metrics) pmetric.Metrics {
			front := pmetric.NewMetrics()
			md.ResourceMetrics().At(0).MoveTo(front.ResourceMetrics().AppendEmpty())
			return front
		},
		"in another order": func(md pmetric.Metrics) pmetric.Metrics {
			turned := pmetric.NewMetrics()
			for i := md.ResourceMetrics().Len() - 1; i >= 0; i-- {
				md.ResourceMetrics().At(i).MoveTo(turned.ResourceMetrics().AppendEmpty())
			}
			return turned
		},
		"with another between": func(md pmetric.Metrics) pmetric.Metrics {
			between := named("x", "x", "x")
			md.ResourceMetrics().At(0).MoveTo(between.ResourceMetrics().At(0))
			md.ResourceMetrics().At(1).MoveTo(between.ResourceMetrics().At(2))
			return between
		},
		"shared": func(md pmetric.Metrics) pmetric.Metrics {
			md.MarkReadOnly()
			return md
		},
	} {
		t.Run(name, func(t *testing.T) {
			var s sends
			s.send(t, "a", "b")
			Return(Arrive(change(batch(s.mds[0]))))
			require.Equal(t, []int{0}, s.back)
			s.loans[0].Recall()
			nothingIsAway(t)
		})
	}
	var s sends
	s.send(t, "a")
	Return(Arrive(s.mds[0]))
	require.Equal(t, []int{0}, s.back, "it is where it was, so it was no batch that brought it")
	nothingIsAway(t)
}

func TestWhatIsRefusedDoesNotComeBack(t *testing.T) {
	var s sends
	s.send(t, "a")
	s.send(t, "b")
	s.loans[0].Recall()
	Abandon(batch(s.mds[1]))
	nothingIsAway(t)
	require.Equal(t, []int{0, 0}, s.back)
	md := named()
	require.False(t, new(Loan).Send(md, 0, nil), "there is nothing to know it by")
	md.ResourceMetrics().AppendEmpty()
	require.False(t, new(Loan).Send(md, 0, nil))
	nothingIsAway(t)
}

// A loan that never returns occupies a place for a while, and does no harm to others.
func TestWhatIsLostIsNotWaitedForForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost, other := new(Loan), new(Loan)
		md := named("lost")
		require.True(t, lost.Send(md, MaxSent, func() { t.Error("it has come") }))
		require.False(t, other.Send(named("a"), 1, nil))
		time.Sleep(longest + 1)
		require.True(t, other.Send(named("b"), 1, nil))
		require.Empty(t, Arrive(batch(md)))
		other.Recall()
		nothingIsAway(t)
	})
}

func TestManySendAtOnce(t *testing.T) {
	const senders, times = 8, 200
	done := make(chan int)
	for i := range senders {
		go func() {
			back, l := 0, new(Loan)
			md := named(fmt.Sprint("a", i), fmt.Sprint("b", i))
			for range times {
				if !l.Send(md, 2, func() { back++ }) {
					break
				}
				Return(Arrive(batch(named("x"), md)))
			}
			done <- back
		}()
	}
	for range senders {
		require.Equal(t, times, <-done)
	}
	nothingIsAway(t)
}
