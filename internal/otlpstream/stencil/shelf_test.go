// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !purego

package stencil

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// ownPage returns a page with names that no other target has.
func ownPage(f fleet, target int) pmetric.Metrics {
	md := f.page(target)
	quiet(md)
	for _, sm := range md.ResourceMetrics().At(0).ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			m.SetName(fmt.Sprintf("%s_of_%d", m.Name(), target))
		}
	}
	return md
}

// TestAFullShelfKeepsWhatItHas: alternating pages that do not all fit do not displace each other, and pages that are no
// longer sent make room.
func TestAFullShelfKeepsWhatItHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fleet{rand.New(rand.NewPCG(1, 2))}
		const limit = 60_000
		e := NewEncoder(limit)
		var pages []pmetric.Metrics
		for target := range 20 {
			pages = append(pages, ownPage(f, target))
		}
		known := func(pages []pmetric.Metrics) (n int) {
			for _, md := range pages {
				if same(t, e, md) {
					n++
				}
			}
			require.LessOrEqual(t, e.Used(), int64(limit))
			time.Sleep(10 * time.Second)
			return n
		}
		known(pages)
		fit := known(pages)
		require.Greater(t, fit, 3)
		require.Less(t, fit, 15)
		for range 100 { // a quarter of an hour
			require.Equal(t, fit, known(pages))
		}
		for range 60 { // the first ones are no longer sent
			known(pages[10:])
		}
		require.GreaterOrEqual(t, known(pages[10:]), fit-1)
	})
}

// TestTheRoomIsCounted when it is allocated and freed.
func TestTheRoomIsCounted(t *testing.T) {
	f := fleet{rand.New(rand.NewPCG(1, 2))}
	e := NewEncoder(1 << 20)
	for i := range 200 {
		md := f.page(i % 7)
		quiet(md)
		for range f.random.IntN(3) {
			f.disturb(md)
		}
		same(t, e, md)
		want, roots := int64(0), 0
		for _, s := range e.shelf.byText {
			want += s.cost()
			roots += s.roots
			require.Positive(t, s.roots, "what nobody has is gone")
		}
		want += int64(len(e.shelf.roots)) * costOfRoot
		require.Equal(t, want, e.Used())
		pointing := 0
		for _, r := range e.shelf.roots {
			if r.stencil.Load() != nil {
				pointing++
			}
		}
		require.Equal(t, pointing, roots)
	}
}

// TestWhatIsAnotherEachTimeIsHardlyLookedAt, and is known again when it stays the same.
func TestWhatIsAnotherEachTimeIsHardlyLookedAt(t *testing.T) {
	f := fleet{rand.New(rand.NewPCG(1, 2))}
	e := NewEncoder(1 << 20)
	md := f.page(1)
	quiet(md)
	name := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)
	for i := range 10 * once {
		name.SetName(fmt.Sprint(i))
		require.False(t, same(t, e, md))
		require.LessOrEqual(t, len(e.shelf.byText), 1)
	}
	for range once {
		same(t, e, md)
	}
	require.True(t, same(t, e, md))
	name.SetName("another")
	require.False(t, same(t, e, md))
	require.True(t, same(t, e, md), "at once")
}
