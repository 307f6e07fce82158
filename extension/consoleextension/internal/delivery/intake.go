// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"maps"
	"slices"
	"time"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/advice"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/answer"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/known"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/meter"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/prose"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/sources"
	"github.com/godwit-otel/godwit/internal/redact"
)

type (
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

// newIntake is what a receiver takes, with its rates.
func newIntake(span meter.Span, s *sources.Source) intakeJSON {
	in := s.Intake()
	out := intakeJSON{
		Receiver: s.Name(), Addresses: answer.List(in.Addresses), Streams: in.Streams, MaxStreams: in.MaxStreams,
		InFlightBytes: in.InFlightBytes, MaxInFlight: in.MaxInFlight, Dropped: []dropJSON{}, Requests: []outcomeJSON{},
		LastError: redact.Text(prose.Cut(in.Last.Text, 10_000)), LastErrorAt: known.Time(in.Last.At),
		Next: advice.ForClient(in.Last.Text),
	}
	for _, outcome := range slices.Sorted(maps.Keys(in.Requests)) {
		out.Requests = append(out.Requests, outcomeJSON{outcome, in.Requests[outcome]})
	}
	flow, counts := span.Now.Flows[s]
	if !counts {
		return out
	}
	f := span.Rates(s)
	out.TakenRate, out.RefusedRate = f.Out, f.Refused
	earlier, seconds := span.Since(s)
	for _, reason := range slices.Sorted(maps.Keys(flow.Dropped)) {
		drop := dropJSON{Reason: reason, Count: flow.Dropped[reason], Next: advice.ForLoss(reason)}
		if seconds > 0 {
			drop.Rate = known.Number(float64(drop.Count-earlier.Dropped[reason]) / seconds)
		}
		out.Dropped = append(out.Dropped, drop)
	}
	return out
}
