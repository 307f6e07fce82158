// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package pulseextension

import (
	"strings"

	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/internal/selftelemetry"
)

// watch turns readings into log lines.
type watch struct {
	logger *zap.Logger
	last   *reading
	lost   bool // the last attempt failed
}

// see logs what flowed since the last reading, and reports whether it did. It logs once when the page cannot be read,
// and once when it can be read again: the next line covers all the time since the last one.
//
// If patient is set, see does not log a flow in which nothing moved and discards the reading, so that a later line
// covers its time, too: otherwise a first scrape just before a reading would appear with many times its rate.
func (w *watch) see(page *selftelemetry.Snapshot, err error, patient bool) (logged bool) {
	if err != nil {
		if !w.lost {
			w.logger.Warn("cannot tell what is flowing until own metrics can be read", zap.Error(err))
		}
		w.lost = true
		return false
	}
	if w.lost {
		w.logger.Info("own metrics can be read again")
		w.lost = false
	}
	now := newReading(page)
	if w.last == nil {
		w.last = now
		return false
	}
	f := between(w.last, now)
	if patient && f.still() {
		return false
	}
	w.logger.Info(f.sentence(), f.fields()...)
	w.last = now
	return true
}

// fields returns the facts of the sentence for machines.
func (f flow) fields() []zap.Field {
	fields := []zap.Field{zap.Float64("seconds", rounded(f.seconds))}
	for _, side := range []struct {
		name   string
		counts map[stream]float64
	}{{"in_per_second", f.accepted}, {"out_per_second", f.sent}} {
		rates := make(map[string]map[string]float64)
		for s, n := range side.counts {
			if rates[s.id] == nil {
				rates[s.id] = make(map[string]float64)
			}
			rates[s.id][strings.ReplaceAll(signals[s.signal].noun, " ", "_")] = rounded(n / f.seconds)
		}
		if len(rates) > 0 {
			fields = append(fields, zap.Any(side.name, rates))
		}
	}
	for _, trouble := range []struct {
		name   string
		counts map[string]float64
	}{{"refused", f.refused}, {"send_failed", f.sendFailed}, {"enqueue_failed", f.enqueueFailed}} {
		if len(trouble.counts) > 0 {
			fields = append(fields, zap.Any(trouble.name, trouble.counts))
		}
	}
	if len(f.queues) > 0 {
		full := make(map[string]float64, len(f.queues))
		for id, share := range f.queues {
			full[id] = rounded(share * 100)
		}
		fields = append(fields, zap.Any("queue_percent", full))
	}
	if f.rssBytes > 0 {
		fields = append(fields, zap.Float64("cpu_percent", rounded(f.cpu()*100)), zap.Float64("rss_bytes", f.rssBytes))
	}
	return fields
}
