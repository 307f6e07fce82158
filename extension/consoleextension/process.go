// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"math"
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"
)

// processStarted is earlier than the extension where the configuration was loaded again.
var processStarted = time.Now()

// process is one look at this process, a few microseconds of work.
type process struct {
	cpuSeconds float64 // negative if it is not known
	rss        int64   // negative if it is not known
	heapLive   int64
	goroutines int64
	gcSeconds  float64 // both as of the last collection
	goSeconds  float64
	gcCycles   int64
	gogc       int64 // -1 is off
	limit      int64 // 0 is none
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
		cpuSeconds: cpuSeconds(), rss: residentBytes(),
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

// residentBytes is what the process has of the memory, as Linux says it.
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

// usage is what the process used between two readings.
type usage struct {
	cores, gcRatio, gcCycles, rss *float64
}

func newUsage(before, now *reading) usage {
	var u usage
	if now.process.rss >= 0 {
		u.rss = number(float64(now.process.rss))
	}
	if before == nil {
		return u
	}
	a, b, seconds := before.process, now.process, now.at.Sub(before.at).Seconds()
	if seconds <= 0 {
		return u
	}
	if a.cpuSeconds >= 0 {
		u.cores = number(max(0, b.cpuSeconds-a.cpuSeconds) / seconds)
	}
	u.gcCycles = number(float64(b.gcCycles-a.gcCycles) / seconds)
	u.gcRatio = number(0)
	if spent := b.goSeconds - a.goSeconds; spent > 0 {
		u.gcRatio = number(max(0, b.gcSeconds-a.gcSeconds) / spent)
	}
	return u
}

type processJSON struct {
	CPUCores    *float64     `json:"cpu_cores"`
	CPUs        int          `json:"cpus"`
	RSS         *float64     `json:"rss_bytes"`
	HeapLive    int64        `json:"heap_live_bytes"`
	Goroutines  int64        `json:"goroutines"`
	GCRatio     *float64     `json:"gc_cpu_ratio"`
	GCCycles    *float64     `json:"gc_cycles_per_second"`
	GOGC        int64        `json:"gogc"`
	MemoryLimit int64        `json:"memory_limit_bytes"`
	Runtime     *runtimeJSON `json:"runtime"`
}

func newProcessJSON(before, now *reading) processJSON {
	u, p := newUsage(before, now), now.process
	return processJSON{
		CPUCores: u.cores, CPUs: runtime.GOMAXPROCS(0), RSS: u.rss, HeapLive: p.heapLive, Goroutines: p.goroutines,
		GCRatio: u.gcRatio, GCCycles: u.gcCycles, GOGC: p.gogc, MemoryLimit: p.limit,
	}
}
