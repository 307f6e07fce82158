// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package loss

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// heard records the calls of telemetry.
type heard struct {
	dropped  map[Reason]int
	firsts   []string
	panicked int
}

func (h *heard) Dropped(reason Reason, n int) { h.dropped[reason] += n }
func (h *heard) First(reason Reason, metric string) {
	h.firsts = append(h.firsts, string(reason)+" "+metric)
}

func (h *heard) Panicked(_ any, stack []byte, n int) {
	if len(stack) > 0 {
		h.panicked += n
	}
}

func TestFirstOfEachReasonIsNamed(t *testing.T) {
	h := heard{dropped: map[Reason]int{}}
	c := New(&h)
	c.Add(Time, "none", 0)
	c.Add(Time, "a", 2)
	c.Add(Time, "b", 3)
	c.Add(Name, "c", 1)
	c.Add(Relabelled, "d", 4) // as configured: not reported
	assert.Equal(t, heard{
		dropped: map[Reason]int{Time: 5, Name: 1, Relabelled: 4},
		firsts:  []string{"time a", "name c"},
	}, h)
}

func TestPanicEndsWhereItIsSurvived(t *testing.T) {
	h := heard{dropped: map[Reason]int{}}
	c := New(&h)
	func() {
		defer c.Survive(func(cause any) int {
			assert.Equal(t, "why", cause)
			return 7
		})
		panic("why")
	}()
	func() {
		defer c.Survive(func(any) int { return 1000 })
	}()
	assert.Equal(t, heard{dropped: map[Reason]int{Panic: 7}, panicked: 7}, h)
}
