// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// FuzzAnswers responds to three requests: each piece of the input is a message over gRPC, and a frame over WebSocket.
// With any response, everything is accounted for, once, and the exporter ends.
func FuzzAnswers(f *testing.F) {
	piece := func(responses ...otlpstream.Response) (input []byte) {
		for _, r := range responses {
			frame := r.Append([]byte{0})
			input = append(append(input, byte(len(frame))), frame...)
		}
		return input
	}
	f.Add(false, piece(otlpstream.Response{ID: 1}, otlpstream.Response{ID: 2, IDs: []uint64{3, 3, 1, 0}}))
	f.Add(true, piece(otlpstream.Response{ID: 2, Code: otlpstream.FailedNoneRetryable, Message: "no"}, otlpstream.Response{Drain: true}))
	f.Add(true, piece(otlpstream.Response{ID: 3, Code: otlpstream.FailedRetryable, Delay: time.Hour}))
	f.Add(true, piece(otlpstream.Response{Code: otlpstream.FailedRetryable, Delay: time.Millisecond}))
	f.Add(false, []byte{3, 0, 0xff, 0xff, 0})
	f.Add(true, []byte{2, 7, 1})
	f.Fuzz(func(t *testing.T, overGRPC bool, input []byte) {
		const requests = 3
		kind, skip := transport.WebSocket, 0
		if overGRPC {
			kind, skip = transport.GRPC, 1 // messages have no byte before them
		}
		said := make(chan struct{})
		s := run(t, &testServer{stream: func(p *peer) error {
			if p.number > 0 {
				return mute(p)
			}
			defer close(said)
			for range requests {
				if _, err := p.recv(); err != nil {
					return eof(err)
				}
			}
			for rest := input; len(rest) > 0; {
				n := min(int(rest[0]), len(rest)-1)
				if p.raw(rest[1+min(skip, n):1+n]) != nil {
					return nil
				}
				rest = rest[1+n:]
			}
			return nil
		}}, kind)
		e := newTestExporter(t, kind, s.addr, impatient)
		for i := range requests {
			require.NoError(t, e.ConsumeTraces(context.Background(), spans(batch(i), i+1)))
		}
		<-said
		begun := time.Now()
		require.NoError(t, e.Shutdown(context.Background()))
		require.Less(t, time.Since(begun), patience/2)
		b := e.balanced()
		require.Equal(t, int64(1+2+3), b.Received)
		require.Zero(t, b.Queued+b.Pending)
		require.Zero(t, e.dest.lanes.common.slots[0].current)
	})
}
