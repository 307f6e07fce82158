// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"math"
	"testing"
)

func TestTargetIsTheInverseOfAddress(t *testing.T) {
	for i := range MaxTargets {
		if got := Target([]byte(Address(i, 9100))); got != i {
			t.Fatalf("target %d is read as %d", i, got)
		}
	}
}

func TestTargetOfAStrangerIsNone(t *testing.T) {
	for _, instance := range []string{"", "127.1.", "127.0.0.1:80", "127.1.2:80", "127.1.256.0:80", "127.1.0.1", "127.1.-1.0:80", "127.1.0000.1:80"} {
		if got := Target([]byte(instance)); got != -1 {
			t.Errorf("%q is read as target %d", instance, got)
		}
	}
}

func TestTallyIsFreeOfOrderAndSeesEachChange(t *testing.T) {
	sum := func(values ...float64) (t Tally) {
		for _, v := range values {
			t.Add(v)
		}
		return t
	}
	want := sum(1, 2, 3.25)
	if got := sum(3.25, 1, 2); got != want {
		t.Errorf("another order: %+v, want %+v", got, want)
	}
	for _, other := range []Tally{sum(1, 2), sum(1, 2, 3.25, 3.25), sum(1, 2, 3.5), sum(2, 2, 3.25), sum(1, 2, -3.25)} {
		if other == want {
			t.Errorf("a difference goes unseen: %+v", other)
		}
	}
	parts := sum(1)
	parts.Merge(sum(2, 3.25))
	if parts != want {
		t.Errorf("merged: %+v, want %+v", parts, want)
	}
}

func TestMarkForgivesOneUnitInTheLastPlace(t *testing.T) {
	for _, v := range []float64{0.1, 17322.53, 1.7322e-05, -3.3} {
		if Mark(v) != Mark(math.Nextafter(v, math.Inf(1))) {
			t.Errorf("%v and its neighbour differ", v)
		}
	}
}
