// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/advice"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/known"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/meter"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/prose"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/sources"
	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/internal/redact"
)

type (
	// Destination is one destination of an exporter, with its rates.
	Destination struct {
		Name          string         `json:"name"`
		State         string         `json:"state"`
		Protocol      string         `json:"protocol"`
		Transport     string         `json:"transport"`
		Compression   string         `json:"compression"`
		Fallback      int            `json:"fallback"`
		LastError     string         `json:"last_error"`
		Next          string         `json:"next"`
		Queue         queueJSON      `json:"queue"`
		InFlight      inFlightJSON   `json:"in_flight"`
		Taken         int64          `json:"taken"`
		TakenRate     *float64       `json:"taken_per_second"`
		Sent          int64          `json:"sent"`
		SentRate      *float64       `json:"sent_per_second"`
		LostRate      *float64       `json:"lost_per_second"`
		Waiting       int64          `json:"waiting"`
		WaitingRate   *float64       `json:"waiting_per_second"`
		Dropped       []dropJSON     `json:"dropped"`
		Requests      int64          `json:"requests"`
		Responses     []responseJSON `json:"responses"`
		Retries       int64          `json:"retries"`
		RetryRate     *float64       `json:"retries_per_second"`
		Resent        int64          `json:"resent"`
		AckSeconds    *float64       `json:"ack_seconds"`
		AckP50        *float64       `json:"ack_p50_seconds"`
		AckP99        *float64       `json:"ack_p99_seconds"`
		RawRate       *float64       `json:"raw_bytes_per_second"`
		WireBytes     *int64         `json:"wire_bytes"`
		WireRate      *float64       `json:"wire_bytes_per_second"`
		PerItem       *float64       `json:"bytes_per_item"`
		BreakerOpen   bool           `json:"breaker_open"`
		ThrottledLeft float64        `json:"throttled_seconds"`
		Streams       []streamJSON   `json:"streams"`
	}

	queueJSON struct {
		Items    int64    `json:"items"`
		Bytes    int64    `json:"bytes"`
		Capacity int64    `json:"capacity"`
		Unit     string   `json:"unit"`
		Used     *float64 `json:"used"`
		Age      float64  `json:"age_seconds"`
		OnDisk   bool     `json:"on_disk"`
	}

	inFlightJSON struct {
		Requests    int64 `json:"requests"`
		Bytes       int64 `json:"bytes"`
		MaxRequests int64 `json:"max_requests"`
		MaxBytes    int64 `json:"max_bytes"`
	}

	dropJSON struct {
		Reason string   `json:"reason"`
		Count  int64    `json:"count"`
		Rate   *float64 `json:"per_second"`
		Next   string   `json:"next"`
	}

	responseJSON struct {
		Status string `json:"status"`
		Count  int64  `json:"count"`
	}

	streamJSON struct {
		State   string  `json:"state"`
		Age     float64 `json:"age_seconds"`
		Pending int     `json:"pending"`
		Acked   int64   `json:"acked"`
	}
)

// States of a destination.
const (
	stateBreakerOpen = "breaker_open"
	stateDelivering  = "ok"
	stateDropping    = "dropping"
	stateRetrying    = "retrying"
	stateThrottled   = "throttled"
)

// Of returns the destinations of an exporter, with their rates.
func Of(span meter.Span, s *sources.Source) (out []Destination) {
	_, seconds := span.Since(s)
	all := span.Now.Deliveries[s].Destinations
	for i := range all {
		was := span.DestinationBefore(s, i, all[i].Name)
		out = append(out, newDestination(&all[i], &was, span.Now.At, time.Duration(seconds*float64(time.Second))))
	}
	return out
}

// newDestination returns d with the rates since before. age is the time between the two, 0 if that is not known.
func newDestination(d, before *inspect.Destination, at time.Time, age time.Duration) Destination {
	per := func(a, b int64) *float64 {
		if age <= 0 || a < 0 || b < a {
			return nil
		}
		return known.Number(float64(b-a) / age.Seconds())
	}
	out := Destination{
		Name: redact.Text(d.Name), Protocol: d.Protocol, Transport: d.Transport, Compression: d.Compression, Fallback: d.Fallback,
		LastError: redact.Text(prose.Cut(d.LastError, 10_000)),
		Queue:     queueJSON{d.Queue.Items, d.Queue.Bytes, d.Queue.Capacity, cmp.Or(d.Queue.Unit, "requests"), nil, d.Queue.Age.Seconds(), d.Queue.OnDisk},
		InFlight:  inFlightJSON(d.InFlight),
		Taken:     d.Taken, TakenRate: per(before.Taken, d.Taken), Waiting: d.Waiting,
		Sent: d.Sent, SentRate: per(before.Sent, d.Sent), LostRate: per(meter.Total(before.Dropped), meter.Total(d.Dropped)),
		Requests: d.Requests, Retries: d.Retries, RetryRate: per(before.Retries, d.Retries), Resent: d.Resent,
		RawRate: per(before.RawBytes, d.RawBytes), WireRate: per(before.WireBytes, d.WireBytes),
		BreakerOpen: d.BreakerOpen, ThrottledLeft: max(0, d.ThrottledUntil.Sub(at).Seconds()),
		Dropped: []dropJSON{}, Responses: []responseJSON{}, Streams: []streamJSON{},
	}
	if age > 0 { // may be negative
		out.WaitingRate = known.Number(float64(d.Waiting-before.Waiting) / age.Seconds())
	}
	if d.Queue.Capacity > 0 {
		out.Queue.Used = known.Number(Used(d.Queue))
	}
	if d.WireBytes >= 0 {
		out.WireBytes = &d.WireBytes
	}
	out.PerItem = perItem(d, before, age > 0)
	if n := d.Acks - before.Acks; age > 0 && n > 0 {
		out.AckSeconds = known.Number((d.AckSeconds - before.AckSeconds) / float64(n))
	} else if d.Acks > 0 {
		out.AckSeconds = known.Number(d.AckSeconds / float64(d.Acks))
	}
	if d.AckP50 > 0 {
		out.AckP50, out.AckP99 = known.Number(d.AckP50.Seconds()), known.Number(d.AckP99.Seconds())
	}
	losing := false
	for _, reason := range slices.Sorted(maps.Keys(d.Dropped)) {
		drop := dropJSON{reason, d.Dropped[reason], per(before.Dropped[reason], d.Dropped[reason]), advice.ForLoss(reason)}
		losing = losing || drop.Rate != nil && *drop.Rate > 0
		out.Dropped = append(out.Dropped, drop)
	}
	for _, status := range slices.Sorted(maps.Keys(d.Responses)) {
		out.Responses = append(out.Responses, responseJSON{status, d.Responses[status]})
	}
	for _, s := range d.Streams {
		one := streamJSON{State: s.State, Pending: s.Pending, Acked: s.Acked}
		if !s.Since.IsZero() {
			one.Age = at.Sub(s.Since).Seconds()
		}
		out.Streams = append(out.Streams, one)
	}
	switch {
	case out.BreakerOpen:
		out.State = stateBreakerOpen
	case losing || refused(d):
		out.State = stateDropping
	case out.ThrottledLeft > 0:
		out.State = stateThrottled
	case out.RetryRate != nil && *out.RetryRate > 0 || d.LastError != "":
		out.State = stateRetrying
	default:
		out.State = stateDelivering
	}
	out.Next = nextFor(out.State, d.LastError)
	return out
}

// perItem returns the bytes of an item on the wire. It is unknown while requests are repeated or refused: their bytes
// are counted already, but not their items.
func perItem(d, before *inspect.Destination, lately bool) *float64 {
	for _, since := range []*inspect.Destination{before, {}} {
		sent, wire := d.Sent-since.Sent, d.WireBytes-since.WireBytes
		again, lost := d.Retries-since.Retries, meter.Total(d.Dropped)-meter.Total(since.Dropped)
		switch {
		case d.WireBytes < 0 || again != 0 || lost != 0:
			return nil
		case sent > 0 && (lately || since != before):
			return known.Number(float64(wire) / float64(sent))
		}
	}
	return nil
}

// refused reports whether the last answer was a permanent refusal: there is an error, and nothing left to retry.
func refused(d *inspect.Destination) bool {
	return d.LastError != "" && meter.Total(d.Dropped) > 0 && d.Queue.Items == 0 && d.Queue.Bytes == 0 && d.InFlight.Requests == 0
}

// nextFor returns advice for a destination. There is separate advice for each reason of a loss.
func nextFor(state, lastError string) string {
	switch state {
	case stateDelivering, stateDropping:
		return ""
	case stateThrottled:
		return advice.Throttled
	case stateBreakerOpen:
		return advice.ForAnswer(lastError) + " It is retried automatically."
	}
	return advice.ForAnswer(lastError)
}

// Used returns how full a queue is, from 0 to 1.
func Used(q inspect.Queue) float64 {
	if q.Capacity <= 0 {
		return 0
	}
	if q.Unit == "bytes" {
		return float64(q.Bytes) / float64(q.Capacity)
	}
	return float64(q.Items) / float64(q.Capacity)
}
