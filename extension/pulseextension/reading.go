// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package pulseextension

import (
	"time"

	"github.com/godwit-otel/godwit/internal/selftelemetry"
)

// signals are the suffixes of receiverhelper's and exporterhelper's metric names, the names of the items in lines, and
// the type of data with which a queue is labelled.
var signals = [...]struct{ metric, noun, dataType string }{
	{"metric_points", "points", "metrics"},
	{"spans", "spans", "traces"},
	{"log_records", "log records", "logs"},
	{"profile_samples", "profile samples", "profiles"},
}

// stream is one signal of a receiver or exporter.
type stream struct {
	id     string
	signal int // index in signals
}

// reading is what lines need of a metrics page: kilobytes that are kept until the next line.
type reading struct {
	at time.Time

	accepted, sent                     map[stream]float64
	refused, sendFailed, enqueueFailed map[string]float64 // by component, all signals together
	queues                             map[string]float64 // the fullest queue of each exporter; 0 is empty, 1 is full

	cpuSeconds, rssBytes float64
}

func newReading(page *selftelemetry.Snapshot) *reading {
	r := &reading{
		at:            page.Time,
		accepted:      make(map[stream]float64),
		sent:          make(map[stream]float64),
		refused:       make(map[string]float64),
		sendFailed:    make(map[string]float64),
		enqueueFailed: make(map[string]float64),
		queues:        make(map[string]float64),
		cpuSeconds:    page.Sum("otelcol_process_cpu_seconds"),
		rssBytes:      page.Sum("otelcol_process_memory_rss"),
	}
	for i, s := range signals {
		for id, n := range page.SumBy("otelcol_receiver_accepted_"+s.metric, "receiver") {
			r.accepted[stream{id, i}] = n
		}
		for id, n := range page.SumBy("otelcol_exporter_sent_"+s.metric, "exporter") {
			r.sent[stream{id, i}] = n
		}
		add(r.refused, page.SumBy("otelcol_receiver_refused_"+s.metric, "receiver"))
		add(r.refused, page.SumBy("otelcol_receiver_failed_"+s.metric, "receiver"))
		add(r.sendFailed, page.SumBy("otelcol_exporter_send_failed_"+s.metric, "exporter"))
		add(r.enqueueFailed, page.SumBy("otelcol_exporter_enqueue_failed_"+s.metric, "exporter"))
		ofType := selftelemetry.Is("data_type", s.dataType)
		size := page.SumBy("otelcol_exporter_queue_size", "exporter", ofType)
		for id, capacity := range page.SumBy("otelcol_exporter_queue_capacity", "exporter", ofType) {
			if capacity > 0 {
				r.queues[id] = max(r.queues[id], size[id]/capacity)
			}
		}
	}
	return r
}

func add(sums, more map[string]float64) {
	for id, n := range more {
		sums[id] += n
	}
}

// flow is the difference between two readings.
type flow struct {
	reading // counts are differences, and only those that are not 0; the rest is from the later reading

	seconds float64
	ever    bool // something has flowed since the counters began
}

func between(before, now *reading) flow {
	f := flow{reading: *now, seconds: now.at.Sub(before.at).Seconds()}
	f.ever = positive(now.accepted) || positive(now.sent)
	f.accepted = moved(before.accepted, now.accepted)
	f.sent = moved(before.sent, now.sent)
	f.refused = moved(before.refused, now.refused)
	f.sendFailed = moved(before.sendFailed, now.sendFailed)
	f.enqueueFailed = moved(before.enqueueFailed, now.enqueueFailed)
	f.cpuSeconds = grown(before.cpuSeconds, now.cpuSeconds)
	return f
}

// still reports whether no counter of data moved, including those of errors.
func (f flow) still() bool {
	return len(f.accepted)+len(f.sent)+len(f.refused)+len(f.sendFailed)+len(f.enqueueFailed) == 0
}

func positive(counts map[stream]float64) bool {
	for _, n := range counts {
		if n > 0 {
			return true
		}
	}
	return false
}

func moved[K comparable](before, now map[K]float64) map[K]float64 {
	diff := make(map[K]float64)
	for key, n := range now {
		if d := grown(before[key], n); d > 0 {
			diff[key] = d
		}
	}
	return diff
}

// grown returns the increase of a counter. A counter that decreased has started again.
func grown(before, now float64) float64 {
	if now < before {
		return now
	}
	return now - before
}
