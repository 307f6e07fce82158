// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import (
	"runtime/metrics"
	"time"
)

// sample is one reading of the runtime, which takes a few microseconds.
type sample struct {
	at    time.Time
	knobs knobs

	live     int64 // heap in use at the end of the last cycle
	roots    int64 // stacks and globals, which GOGC adds to the live heap
	objects  int64 // heap in use, including garbage since the last cycle
	free     int64 // resident heap memory without objects
	overhead int64 // what GOMEMLIMIT counts besides objects and free heap
	files    int64 // resident pages of the executable's file, which GOMEMLIMIT does not count; only read for auto

	goroutines int64

	cycles     int64
	gcSeconds  float64
	cpuSeconds float64 // of the whole process; like gcSeconds, as of the last cycle

	allocated int64   // bytes since the process began
	used      float64 // CPU seconds now; as of the last cycle if the system does not report them
}

func readSample() sample {
	s := []metrics.Sample{
		{Name: "/gc/gogc:percent"},
		{Name: "/gc/gomemlimit:bytes"},
		{Name: "/gc/heap/live:bytes"},
		{Name: "/gc/scan/stack:bytes"},
		{Name: "/gc/scan/globals:bytes"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/cpu/classes/gc/total:cpu-seconds"},
		{Name: "/cpu/classes/total:cpu-seconds"},
		{Name: "/cpu/classes/idle:cpu-seconds"},
		{Name: "/sched/goroutines:goroutines"},
		{Name: "/gc/heap/allocs:bytes"},
	}
	metrics.Read(s)
	n := func(i int) int64 { return int64(s[i].Value.Uint64()) }
	cpuSeconds := s[11].Value.Float64() - s[12].Value.Float64()
	used, ok := usedSeconds()
	if !ok {
		used = cpuSeconds
	}
	return sample{
		at:         time.Now(),
		knobs:      knobs{gogc: int(n(0)), limit: n(1)},
		live:       n(2),
		roots:      n(3) + n(4),
		objects:    n(8),
		free:       n(7),
		overhead:   n(5) - n(6) - n(7) - n(8),
		goroutines: n(13),
		cycles:     n(9),
		gcSeconds:  s[10].Value.Float64(),
		cpuSeconds: cpuSeconds,
		allocated:  n(14),
		used:       used,
	}
}

// need returns the least memory that the runtime can work with: below it, cycles would follow each other without end.
func (s sample) need() int64 { return s.overhead + s.live + percentOf(s.live, headroom) }

func readKnobs() knobs { return readSample().knobs }

// gcRatioSince returns the share of CPU used by garbage collection since an earlier sample, 0 if no cycle ended in
// between.
func (s sample) gcRatioSince(earlier sample) float64 {
	if spent := s.cpuSeconds - earlier.cpuSeconds; spent > 0 {
		return max(0, s.gcSeconds-earlier.gcSeconds) / spent
	}
	return 0
}
