// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"go.opentelemetry.io/collector/component"

	"github.com/godwit-otel/godwit/internal/inspect"
)

// inspection returns what the receiver shows on request.
func (r *otlpReceiver) inspection() inspect.Source {
	return inspect.Source{Kind: component.KindReceiver, ID: r.settings.ID, Flow: r.pipelines.traffic.flow, Intake: r.intake, Tap: &r.pipelines.tap}
}

func (r *otlpReceiver) intake() inspect.Intake {
	s := r.Snapshot()
	out := inspect.Intake{
		Streams: s.Streams, MaxStreams: s.MaxStreams,
		InFlightBytes: int64(s.InFlightBytes), MaxInFlight: int64(s.MaxInFlightBytes), Requests: map[string]int64{},
		Last: r.pipelines.traffic.fault(),
	}
	for _, address := range []string{s.GRPC, s.HTTP} {
		if address != "" {
			out.Addresses = append(out.Addresses, address)
		}
	}
	for _, n := range s.Requests {
		out.Requests[n.Transport+" "+n.Result] = n.Requests
	}
	return out
}
