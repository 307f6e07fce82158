// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// trend is a series of readings of a quantity that must not keep growing.
type trend struct {
	what string
	// tolerance is the growth over all readings that is allowed, as a part of the level; floor is added to it, for
	// small levels.
	tolerance, floor float64

	at     []time.Time
	values []float64
}

// Beyond this number every second reading is dropped: pairs grow with the square.
const maxReadings = 1024

func (tr *trend) add(at time.Time, value float64) {
	if len(tr.at) == maxReadings {
		for i := range maxReadings / 2 {
			tr.at[i], tr.values[i] = tr.at[2*i], tr.values[2*i]
		}
		tr.at, tr.values = tr.at[:maxReadings/2], tr.values[:maxReadings/2]
	}
	tr.at, tr.values = append(tr.at, at), append(tr.values, value)
}

// growth returns the steady growth from the first reading to the last: the median slope of all pairs (Theil-Sen), on
// which a peak, a step back or the saw-tooth of garbage collection has no effect.
func (tr *trend) growth() float64 {
	var slopes []float64
	for i := range tr.at {
		for j := range i {
			if seconds := tr.at[i].Sub(tr.at[j]).Seconds(); seconds > 0 {
				slopes = append(slopes, (tr.values[i]-tr.values[j])/seconds)
			}
		}
	}
	if len(slopes) == 0 {
		return math.NaN()
	}
	return median(slopes) * tr.at[len(tr.at)-1].Sub(tr.at[0]).Seconds()
}

func (tr *trend) level() float64 { return median(slices.Clone(tr.values)) }

func (tr *trend) allowed() float64 { return tr.tolerance*tr.level() + tr.floor }

// steady reports whether the growth is allowed. It is false without readings.
func (tr *trend) steady() bool { return tr.growth() <= tr.allowed() }

func (tr *trend) String() string {
	return fmt.Sprintf("%s: %.1f, grew by %.1f of %.1f allowed in %d readings", tr.what, tr.level(), tr.growth(), tr.allowed(), len(tr.values))
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	return values[len(values)/2]
}

func TestTrendTellsGrowthFromNoise(t *testing.T) {
	noise := rand.New(rand.NewPCG(1, 2))
	f := func(want bool, readings int, value func(second float64) float64) {
		t.Helper()
		tr := &trend{what: "x", tolerance: 0.2, floor: 5}
		for i := range readings {
			tr.add(time.Unix(int64(i), 0), value(float64(i)))
		}
		assert.Equal(t, want, tr.steady(), "%v", tr)
	}
	f(true, 40, func(float64) float64 { return 100 })
	f(true, 40, func(float64) float64 { return 100 + 30*noise.Float64() })
	f(true, 40, func(s float64) float64 { return 100 + 40*math.Mod(s, 5)/5 })               // the saw-tooth of garbage collection
	f(true, 40, func(s float64) float64 { return 100 + 300*math.Max(0, 1-math.Abs(s-20)) }) // one peak
	f(true, 40, func(s float64) float64 { return 100 - s })
	f(true, 40, func(s float64) float64 { return 1 + s/10 }) // less than the floor
	f(false, 40, func(s float64) float64 { return 100 + s }) // 40 % in total
	f(false, 40, func(s float64) float64 { return 100 + s + 30*noise.Float64() })
	f(false, 40, func(s float64) float64 { return 100 + 10*math.Floor(s/10) + 40*math.Mod(s, 5)/5 })
	f(false, 5*maxReadings, func(s float64) float64 { return 100 + s/50 })
	f(false, 0, nil)
	f(false, 1, func(float64) float64 { return 1 })
}
