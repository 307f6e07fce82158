// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter/exporterhelper"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/account"
	"github.com/godwit-otel/godwit/internal/inspect"
)

// inspection returns what the exporter shows on request.
func (e *streamExporter) inspection() inspect.Source {
	return inspect.Source{
		Kind: component.KindExporter, ID: e.set.ID, Signal: e.signal.String(),
		Flow: e.flow, Delivery: e.delivery, Tap: &e.tap,
	}
}

// flow is the sum of all destinations, except for what came in, which each of them has.
func (e *streamExporter) flow() inspect.Flow {
	f := inspect.Flow{Refused: e.refused.Load(), Dropped: map[string]int64{}}
	for _, d := range e.dests {
		b := d.account.Balance()
		f.In = max(f.In, b.Received)
		f.Out += b.Acked
		f.WireBytes += d.tally.Wire.Load()
		f.RawBytes += d.tally.Raw.Load()
		f.QueuedItems += b.Queued
		for reason, n := range b.Dropped {
			if n > 0 {
				f.Dropped[account.Reason(reason).String()] += n
			}
		}
	}
	return f
}

func (e *streamExporter) delivery() inspect.Delivery {
	var out inspect.Delivery
	for _, d := range e.dests {
		out.Destinations = append(out.Destinations, d.inspect(time.Now()))
	}
	return out
}

func (d *destination) inspect(now time.Time) inspect.Destination {
	s := d.snapshot()
	to := inspect.Destination{
		Name: s.Endpoint, Protocol: "otlp unary", Transport: d.cfg.Transport, Compression: string(d.client.Compression),
		InFlight: inspect.InFlight{
			Requests: s.InFlightRequests, Bytes: s.InFlightBytes, MaxRequests: int64(d.cfg.InFlight.Requests), MaxBytes: d.cfg.InFlight.Bytes,
		},
		Queue: inspect.Queue{Items: s.Items.Queued},
		Taken: s.Items.Received, Waiting: s.Items.Queued + s.Items.Pending,
		Sent: s.Items.Acked, Dropped: s.Items.Dropped, Retries: s.Retryable, Resent: s.Resent,
		RawBytes: d.tally.Raw.Load(), WireBytes: d.tally.Wire.Load(), AckP50: s.AckLatency.P50, AckP99: s.AckLatency.P99,
	}
	if s.Streaming {
		to.Protocol = "otlp stream"
	}
	if s.Name != s.Endpoint {
		to.Name = s.Name + " (" + s.Endpoint + ")"
	}
	if since, why := d.server.Trouble(); why != nil {
		to.LastError = why.Error()
		if to.Waiting > 0 { // for as long as nothing was taken, about: nobody tells how old the oldest of a queue is
			to.Queue.Age = now.Sub(since)
		}
	}
	if s.HeldFor > 0 {
		to.ThrottledUntil = now.Add(s.HeldFor)
	}
	if queue := d.cfg.queue(); queue != nil {
		to.Queue.OnDisk = queue.Storage != nil
		if queue.Sizer == exporterhelper.RequestSizerTypeItems { // else it counts something other than items
			to.Queue.Capacity, to.Queue.Unit = queue.QueueSize, "items"
		}
	}
	for range s.Open {
		to.Streams = append(to.Streams, inspect.Stream{State: "open"})
	}
	for range s.Draining {
		to.Streams = append(to.Streams, inspect.Stream{State: "draining"})
	}
	return to
}
