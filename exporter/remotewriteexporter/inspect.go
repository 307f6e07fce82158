// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"fmt"
	"maps"
	"net/http"
	"strconv"

	"go.opentelemetry.io/collector/component"

	"github.com/godwit-otel/godwit/internal/inspect"
)

// signal is the only one that the exporter has.
const signal = "metrics"

// inspection returns what the exporter shows on request, while it runs.
func (e *remoteWrite) inspection() inspect.Source {
	return inspect.Source{
		Kind: component.KindExporter, ID: e.set.ID, Signal: signal,
		Flow: e.flow, Delivery: e.delivery, Tap: &e.tap,
	}
}

func (e *remoteWrite) flow() inspect.Flow {
	f := inspect.Flow{
		In: e.taken.Load(), Refused: e.turnedDown.Load(),
		Dropped: e.telemetry.leftOut(),
	}
	for i, t := range e.telemetry.destinations {
		o := t.snapshot()
		f.Out += o.Samples + o.Histograms
		f.WireBytes += o.WireBytes
		f.RawBytes += o.RawBytes
		for reason, n := range o.Dropped {
			f.Dropped[reason] += n
		}
		queued := e.queue.Stats(i)
		f.QueuedItems += int64(queued.Blocks)
		f.QueuedBytes += queued.Bytes
		f.QueueCapacity += queued.Capacity
	}
	return f
}

func (e *remoteWrite) delivery() inspect.Delivery {
	stats := e.intake.encoder.Stats()
	out := inspect.Delivery{
		Shards: e.intake.shards.count(), CacheSeries: stats.Series, CacheHits: stats.Hits, CacheMisses: stats.Misses,
		Split: e.cfg.ShardByURL.Enabled,
	}
	for i, d := range e.destinations {
		t, queued := e.telemetry.destinations[i], e.queue.Stats(i)
		o := t.snapshot()
		fallback, format := d.Fallback()
		to := inspect.Destination{
			Name:        t.name,
			Protocol:    "remote write " + format.Version.String(),
			Transport:   "http",
			Compression: format.Compression.String(),
			Fallback:    fallback,
			LastError:   t.fault(),
			Queue: inspect.Queue{
				Items: int64(queued.Blocks), Bytes: queued.Bytes, Capacity: queued.Capacity, Unit: "bytes",
				Age: age(queued), OnDisk: e.intake.durable,
			},
			InFlight: inspect.InFlight{Requests: int64(queued.Leased), MaxRequests: int64(e.cfg.Shards.Max)},
			Taken:    e.queue.Taken(i), Waiting: queued.Items,
			Sent:      o.Samples + o.Histograms,
			Dropped:   o.Dropped,
			Responses: map[string]int64{},
			Retries:   o.Retries, RawBytes: o.RawBytes, WireBytes: o.WireBytes,
			AckSeconds:  o.Busy.Seconds(),
			BreakerOpen: d.BreakerOpen(), ThrottledUntil: d.ThrottledUntil(),
		}
		for code, n := range o.Requests {
			to.Requests += n
			if code != 0 { // a request without an answer did not take the usual time
				to.Acks += n
			}
			to.Responses[statusName(code)] = n
		}
		out.Destinations = append(out.Destinations, to)
	}
	return out
}

func statusName(code int) string {
	if code == 0 {
		return "none"
	}
	return strconv.Itoa(code)
}

// fault is the error of the last request, empty if it succeeded.
func (d *destinationTelemetry) fault() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.status < http.StatusMultipleChoices {
		return d.said
	}
	said := fmt.Sprintf("answered %d %s", d.status, http.StatusText(d.status))
	if d.said != "" {
		said += ": " + d.said
	}
	return said
}

// leftOut returns what the encoder could not send, by reason.
func (t *telemetry) leftOut() map[string]int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.untranslated == nil {
		return map[string]int64{}
	}
	return maps.Clone(t.untranslated)
}
