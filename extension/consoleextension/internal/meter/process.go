// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"math"
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/known"
	"github.com/godwit-otel/godwit/internal/inspect"
)

// Started is the start time of the process, which may be before that of the extension if the configuration was
// reloaded.
var Started = time.Now()

// process is one reading of this process, which takes a few microseconds.
type process struct {
	cpuSeconds float64 // negative if unknown
	rss        int64   // negative if unknown
	heapLive   int64
	goroutines int64
	gcSeconds  float64 // both as of the last collection
	goSeconds  float64
	gcCycles   int64
	gogc       int64 // -1 means off
	limit      int64 // 0 means none
}

func readProcess() process {
	s := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"},
		{Name: "/sched/goroutines:goroutines"},
		{Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/gc/gogc:percent"},
		{Name: "/gc/gomemlimit:bytes"},
		{Name: "/cpu/classes/gc/total:cpu-seconds"},
		{Name: "/cpu/classes/total:cpu-seconds"},
		{Name: "/cpu/classes/idle:cpu-seconds"},
	}
	metrics.Read(s)
	n := func(i int) int64 { return int64(s[i].Value.Uint64()) }
	p := process{
		cpuSeconds: CPUSeconds(), rss: residentBytes(),
		heapLive: n(0), goroutines: n(1), gcCycles: n(2), gogc: n(3), limit: n(4),
		gcSeconds: s[5].Value.Float64(),
		goSeconds: s[6].Value.Float64() - s[7].Value.Float64(),
	}
	if p.limit == math.MaxInt64 {
		p.limit = 0
	}
	if p.gogc > math.MaxInt32 || p.gogc < 0 {
		p.gogc = -1
	}
	return p
}

// residentBytes returns the resident memory of the process, -1 if it is not known. It reads Linux' /proc.
func residentBytes() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return -1
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return -1
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return -1
	}
	return pages * int64(os.Getpagesize())
}

// Process is the state of this process, and what it used between two readings.
type Process struct {
	CPUCores    *float64         `json:"cpu_cores"`
	CPUs        int              `json:"cpus"`
	RSS         *float64         `json:"rss_bytes"`
	HeapLive    int64            `json:"heap_live_bytes"`
	Goroutines  int64            `json:"goroutines"`
	GCRatio     *float64         `json:"gc_cpu_ratio"`
	GCCycles    *float64         `json:"gc_cycles_per_second"`
	GOGC        int64            `json:"gogc"`
	MemoryLimit int64            `json:"memory_limit_bytes"`
	Runtime     *inspect.Runtime `json:"runtime"` // set if an extension sets the runtime
}

// Process returns the state of this process at the end of the span, and what it used during it.
func (s Span) Process() Process {
	b := s.Now.process
	out := Process{
		CPUs: runtime.GOMAXPROCS(0), HeapLive: b.heapLive, Goroutines: b.goroutines, GOGC: b.gogc, MemoryLimit: b.limit,
	}
	if b.rss >= 0 {
		out.RSS = known.Number(float64(b.rss))
	}
	seconds := s.Seconds()
	if seconds <= 0 {
		return out
	}
	a := s.Before.process
	if a.cpuSeconds >= 0 {
		out.CPUCores = known.Number(max(0, b.cpuSeconds-a.cpuSeconds) / seconds)
	}
	out.GCCycles = known.Number(float64(b.gcCycles-a.gcCycles) / seconds)
	out.GCRatio = known.Number(0)
	if spent := b.goSeconds - a.goSeconds; spent > 0 {
		out.GCRatio = known.Number(max(0, b.gcSeconds-a.gcSeconds) / spent)
	}
	return out
}
