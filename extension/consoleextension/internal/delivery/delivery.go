// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package delivery shows what exporters do for their destinations, and what receivers accept from clients.
package delivery

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/answer"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/known"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/meter"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/sources"
)

type (
	deliveryJSON struct {
		Now       time.Time      `json:"now"`
		Over      *float64       `json:"over_seconds"`
		Exporters []exporterJSON `json:"exporters"`
		Receivers []intakeJSON   `json:"receivers"`
	}

	exporterJSON struct {
		Exporter     string        `json:"exporter"`
		Signal       string        `json:"signal"`
		Shards       int           `json:"shards"`
		Split        bool          `json:"split"`
		Cache        cacheJSON     `json:"cache"`
		Destinations []Destination `json:"destinations"`
	}

	cacheJSON struct {
		Series int    `json:"series"`
		Hits   uint64 `json:"hits"`
		Misses uint64 `json:"misses"`
	}
)

// View shows exporters and receivers.
type View struct {
	Sources *sources.Registry
	Meter   *meter.Meter
}

// Answer answers with what is sent and accepted now.
func (v *View) Answer(r *http.Request) (any, error) {
	format, err := answer.Format(r, answer.FormatJSON, answer.FormatCSV)
	if err != nil {
		return nil, err
	}
	out := deliveryJSON{Exporters: []exporterJSON{}, Receivers: []intakeJSON{}}
	span := v.Meter.Look()
	out.Now = span.Now.At
	if span.Before != nil {
		out.Over = known.Number(span.Seconds())
	}
	for _, s := range v.Sources.All() {
		if s.Intake != nil {
			out.Receivers = append(out.Receivers, newIntake(span, s))
		}
		if d, ok := span.Now.Deliveries[s]; ok {
			out.Exporters = append(out.Exporters, exporterJSON{
				Exporter: s.Name(), Signal: s.Signal, Shards: d.Shards, Split: d.Split, Cache: cacheJSON{d.CacheSeries, d.CacheHits, d.CacheMisses},
				Destinations: answer.List(Of(span, s)),
			})
		}
	}
	if format == answer.FormatCSV {
		return table(out.Exporters)
	}
	return out, nil
}

func table(exporters []exporterJSON) (*answer.File, error) {
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
				ack = answer.Decimal(*d.AckSeconds)
			}
			if d.WireBytes != nil {
				wire = whole(*d.WireBytes)
			}
			rows = append(rows, []string{
				e.Exporter, e.Signal, d.Name, d.State, d.Protocol, d.Transport, d.Compression, whole(d.Queue.Items), whole(d.Queue.Bytes),
				whole(d.Queue.Capacity), d.Queue.Unit, answer.Decimal(d.Queue.Age), whole(d.InFlight.Requests), whole(d.InFlight.Bytes), whole(d.Taken), whole(d.Waiting), whole(d.Sent),
				whole(dropped), whole(d.Requests), whole(d.Retries), whole(d.Resent), ack, wire, strconv.FormatBool(d.BreakerOpen),
				answer.Decimal(d.ThrottledLeft), d.LastError,
			})
		}
	}
	return answer.Table("delivery", rows)
}
