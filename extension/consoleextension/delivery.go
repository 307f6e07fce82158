// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/godwit-otel/godwit/internal/inspect"
)

type (
	deliveryJSON struct {
		Now       time.Time      `json:"now"`
		Over      *float64       `json:"over_seconds"`
		Exporters []exporterJSON `json:"exporters"`
		Receivers []intakeJSON   `json:"receivers"`
	}

	exporterJSON struct {
		Exporter     string            `json:"exporter"`
		Signal       string            `json:"signal"`
		Shards       int               `json:"shards"`
		Split        bool              `json:"split"`
		Cache        cacheJSON         `json:"cache"`
		Destinations []destinationJSON `json:"destinations"`
	}

	cacheJSON struct {
		Series int    `json:"series"`
		Hits   uint64 `json:"hits"`
		Misses uint64 `json:"misses"`
	}

	destinationJSON struct {
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

	intakeJSON struct {
		Receiver      string        `json:"receiver"`
		Addresses     []string      `json:"addresses"`
		Streams       int           `json:"streams"`
		MaxStreams    int           `json:"max_streams"`
		InFlightBytes int64         `json:"in_flight_bytes"`
		MaxInFlight   int64         `json:"max_in_flight_bytes"`
		TakenRate     *float64      `json:"taken_per_second"`
		RefusedRate   *float64      `json:"refused_per_second"`
		Dropped       []dropJSON    `json:"dropped"`
		Requests      []outcomeJSON `json:"requests"`
		LastError     string        `json:"last_error"`
		LastErrorAt   *time.Time    `json:"last_error_at"`
		Next          string        `json:"next"`
	}

	outcomeJSON struct {
		Outcome string `json:"outcome"`
		Count   int64  `json:"count"`
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

func (c *console) delivery(r *http.Request) (any, error) {
	format, err := oneOf(r, "format", formatJSON, formatCSV)
	if err != nil {
		return nil, err
	}
	out := deliveryJSON{Exporters: []exporterJSON{}, Receivers: []intakeJSON{}}
	before, now := c.lookNow()
	out.Now = now.at
	if before != nil {
		out.Over = number(now.at.Sub(before.at).Seconds())
	}
	for _, s := range c.all() {
		if s.Intake != nil {
			out.Receivers = append(out.Receivers, newIntake(s, before, now))
		}
		if d, ok := now.deliveries[s]; ok {
			out.Exporters = append(out.Exporters, exporterJSON{
				Exporter: s.name(), Signal: s.Signal, Shards: d.Shards, Split: d.Split, Cache: cacheJSON{d.CacheSeries, d.CacheHits, d.CacheMisses},
				Destinations: some(destinationsOf(before, now, s)),
			})
		}
	}
	if format == formatCSV {
		return deliveryTable(out.Exporters)
	}
	return out, nil
}

// destinationsOf is what an exporter does for its destinations, with the rates between two readings.
func destinationsOf(before, now *reading, s *source) (out []destinationJSON) {
	_, seconds := stretch(before, now, s)
	all := now.deliveries[s].Destinations
	for i := range all {
		was := destinationBefore(before, s, i, all[i].Name)
		out = append(out, newDestination(&all[i], &was, now.at, time.Duration(seconds*float64(time.Second))))
	}
	return out
}

// newDestination is d, with the rates since it was as before; age is 0 if that is not known.
func newDestination(d, before *inspect.Destination, at time.Time, age time.Duration) destinationJSON {
	per := func(a, b int64) *float64 {
		if age <= 0 || a < 0 || b < a {
			return nil
		}
		return number(float64(b-a) / age.Seconds())
	}
	out := destinationJSON{
		Name: redactor.Text(d.Name), Protocol: d.Protocol, Transport: d.Transport, Compression: d.Compression, Fallback: d.Fallback,
		LastError: redactor.Text(cut(d.LastError, 10_000)),
		Queue:     queueJSON{d.Queue.Items, d.Queue.Bytes, d.Queue.Capacity, cmp.Or(d.Queue.Unit, "requests"), nil, d.Queue.Age.Seconds(), d.Queue.OnDisk},
		InFlight:  inFlightJSON(d.InFlight),
		Taken:     d.Taken, TakenRate: per(before.Taken, d.Taken), Waiting: d.Waiting,
		Sent: d.Sent, SentRate: per(before.Sent, d.Sent), LostRate: per(total(before.Dropped), total(d.Dropped)),
		Requests: d.Requests, Retries: d.Retries, RetryRate: per(before.Retries, d.Retries), Resent: d.Resent,
		RawRate: per(before.RawBytes, d.RawBytes), WireRate: per(before.WireBytes, d.WireBytes),
		BreakerOpen: d.BreakerOpen, ThrottledLeft: max(0, d.ThrottledUntil.Sub(at).Seconds()),
		Dropped: []dropJSON{}, Responses: []responseJSON{}, Streams: []streamJSON{},
	}
	if age > 0 { // it shrinks as well
		out.WaitingRate = number(float64(d.Waiting-before.Waiting) / age.Seconds())
	}
	if d.Queue.Capacity > 0 {
		out.Queue.Used = number(share(d.Queue))
	}
	if d.WireBytes >= 0 {
		out.WireBytes = &d.WireBytes
	}
	out.PerItem = perItem(d, before, age > 0)
	if n := d.Acks - before.Acks; age > 0 && n > 0 {
		out.AckSeconds = number((d.AckSeconds - before.AckSeconds) / float64(n))
	} else if d.Acks > 0 {
		out.AckSeconds = number(d.AckSeconds / float64(d.Acks))
	}
	if d.AckP50 > 0 {
		out.AckP50, out.AckP99 = number(d.AckP50.Seconds()), number(d.AckP99.Seconds())
	}
	losing := false
	for _, reason := range slices.Sorted(maps.Keys(d.Dropped)) {
		drop := dropJSON{reason, d.Dropped[reason], per(before.Dropped[reason], d.Dropped[reason]), nextForDrop(reason)}
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
	out.Next = nextForState(out.State, d.LastError)
	return out
}

// perItem is what an item takes on the wire. While requests are repeated or refused it is not known: their bytes are counted, and
// their items are not, or not yet.
func perItem(d, before *inspect.Destination, lately bool) *float64 {
	for _, since := range []*inspect.Destination{before, {}} {
		sent, wire := d.Sent-since.Sent, d.WireBytes-since.WireBytes
		again, lost := d.Retries-since.Retries, total(d.Dropped)-total(since.Dropped)
		switch {
		case d.WireBytes < 0 || again != 0 || lost != 0:
			return nil
		case sent > 0 && (lately || since != before):
			return number(float64(wire) / float64(sent))
		}
	}
	return nil
}

// refused tells whether the last answer was a refusal for good: there is an error, and nothing left to try again.
func refused(d *inspect.Destination) bool {
	return d.LastError != "" && total(d.Dropped) > 0 && d.Queue.Items == 0 && d.Queue.Bytes == 0 && d.InFlight.Requests == 0
}

// newIntake is what a receiver takes, with the rates between two readings.
func newIntake(s *source, before, now *reading) intakeJSON {
	in := s.Intake()
	out := intakeJSON{
		Receiver: s.name(), Addresses: some(in.Addresses), Streams: in.Streams, MaxStreams: in.MaxStreams,
		InFlightBytes: in.InFlightBytes, MaxInFlight: in.MaxInFlight, Dropped: []dropJSON{}, Requests: []outcomeJSON{},
		LastError: redactor.Text(cut(in.Last.Text, 10_000)), LastErrorAt: moment(in.Last.At),
		Next: nextForClient(in.Last.Text),
	}
	for _, outcome := range slices.Sorted(maps.Keys(in.Requests)) {
		out.Requests = append(out.Requests, outcomeJSON{outcome, in.Requests[outcome]})
	}
	flow, known := now.flows[s]
	if !known {
		return out
	}
	f := flowBetween(before, now, s)
	out.TakenRate, out.RefusedRate = f.Out, f.Refused
	earlier, seconds := stretch(before, now, s)
	for _, reason := range slices.Sorted(maps.Keys(flow.Dropped)) {
		drop := dropJSON{Reason: reason, Count: flow.Dropped[reason], Next: nextForDrop(reason)}
		if seconds > 0 {
			drop.Rate = number(float64(drop.Count-earlier.Dropped[reason]) / seconds)
		}
		out.Dropped = append(out.Dropped, drop)
	}
	return out
}

func deliveryTable(exporters []exporterJSON) (*file, error) {
	rows := [][]string{strings.Fields("exporter signal destination state protocol transport compression queue_items queue_bytes queue_capacity " +
		"queue_unit queue_age_seconds in_flight_requests in_flight_bytes taken waiting sent dropped requests retries resent " +
		"ack_seconds wire_bytes breaker_open throttled_seconds last_error")}
	whole := func(n int64) string { return strconv.FormatInt(n, 10) }
	for _, e := range exporters {
		for i := range e.Destinations {
			d := &e.Destinations[i]
			dropped, ack, wire := int64(0), "", ""
			for _, drop := range d.Dropped {
				dropped += drop.Count
			}
			if d.AckSeconds != nil {
				ack = decimal(*d.AckSeconds)
			}
			if d.WireBytes != nil {
				wire = whole(*d.WireBytes)
			}
			rows = append(rows, []string{
				e.Exporter, e.Signal, d.Name, d.State, d.Protocol, d.Transport, d.Compression, whole(d.Queue.Items), whole(d.Queue.Bytes),
				whole(d.Queue.Capacity), d.Queue.Unit, decimal(d.Queue.Age), whole(d.InFlight.Requests), whole(d.InFlight.Bytes), whole(d.Taken), whole(d.Waiting), whole(d.Sent),
				whole(dropped), whole(d.Requests), whole(d.Retries), whole(d.Resent), ack, wire, strconv.FormatBool(d.BreakerOpen),
				decimal(d.ThrottledLeft), d.LastError,
			})
		}
	}
	return table(viewDelivery, rows)
}
