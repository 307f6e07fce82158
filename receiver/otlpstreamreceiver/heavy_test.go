// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"bytes"
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/otlpstream"
	"github.com/godwit-otel/godwit/internal/slab"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver/internal/decode"
)

// in wraps a message into others, innermost first.
func in(body []byte, numbers ...protowire.Number) []byte {
	for _, number := range numbers {
		body = protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), body)
	}
	return body
}

// allocated returns how many bytes f allocates.
func allocated(f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// remembering makes a receiver reuse the memory of metrics, as it does in front of pipelines that release them.
func remembering(r *sharedReceiver) {
	if slab.Places() && !handback.Poisons() {
		r.pipelines.again.lists.Store(decode.NewLists(1 << 20))
	}
}

// A request that is refused because of the memory it would need has not allocated it, neither at once nor in pieces,
// however rarely the garbage collector runs.
func TestWhatIsRefusedAsTooHeavyTakesNoMemory(t *testing.T) {
	const n = 200_000
	empty := func(number protowire.Number, within ...protowire.Number) []byte {
		return in(bytes.Repeat(in(nil, number), n), within...)
	}
	type request struct {
		signal otlpstream.Signal
		format format
		body   []byte
	}
	requests := map[string]request{
		"resources":               {otlpstream.Metrics, formatProto, empty(1)},
		"scopes":                  {otlpstream.Metrics, formatProto, empty(2, 1)},
		"metrics":                 {otlpstream.Metrics, formatProto, empty(2, 2, 1)},
		"points of gauges":        {otlpstream.Metrics, formatProto, empty(1, 5, 2, 2, 1)},
		"points of sums":          {otlpstream.Metrics, formatProto, empty(1, 7, 2, 2, 1)},
		"histograms":              {otlpstream.Metrics, formatProto, empty(1, 9, 2, 2, 1)},
		"exponential histograms":  {otlpstream.Metrics, formatProto, empty(1, 10, 2, 2, 1)},
		"summaries":               {otlpstream.Metrics, formatProto, empty(1, 11, 2, 2, 1)},
		"attributes":              {otlpstream.Metrics, formatProto, empty(7, 1, 5, 2, 2, 1)},
		"attributes of resources": {otlpstream.Metrics, formatProto, empty(1, 1, 1)},
		"attributes of metrics":   {otlpstream.Metrics, formatProto, empty(12, 2, 2, 1)},
		"points after a gauge":    {otlpstream.Metrics, formatProto, append(in([]byte("name"), 1, 2, 2, 1), empty(1, 5, 2, 2, 1)...)},
		"spans":                   {otlpstream.Traces, formatProto, empty(2, 2, 1)},
		"events":                  {otlpstream.Traces, formatProto, empty(11, 2, 2, 1)},
		"records":                 {otlpstream.Logs, formatProto, empty(2, 2, 1)},
		"JSON":                    {otlpstream.Metrics, formatJSON, []byte(`{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"gauge":{"dataPoints":[{}` + strings.Repeat(",{}", n) + `]}}]}]}]}`)},
		"JSON of spans":           {otlpstream.Traces, formatJSON, []byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{}` + strings.Repeat(",{}", n) + `]}]}]}`)},
	}
	r := start(t, &pipeline{})
	remembering(r)
	for name, q := range requests {
		t.Run(name, func(t *testing.T) {
			took := allocated(func() {
				st, _, overload := r.takeUnary(context.Background(), q.signal, transportUnary, q.format, &otlpstream.Request{Data: q.body})
				require.Equal(t, codes.InvalidArgument, st.Code(), "%v", st)
				require.False(t, overload)
			})
			require.Less(t, took, 256<<10, "of a request of %d bytes", len(q.body))
			require.Zero(t, r.pipelines.admission.InFlight())
		})
	}
}

// The memory of a decoded request is counted: `in_flight.bytes` limits the sum of its encoded and its decoded size.
func TestHeavyRequestsTakeMoreRoom(t *testing.T) {
	const points = 1 << 18
	// Each point only has flags: four bytes.
	thin := append(in([]byte("thin"), 1), in(bytes.Repeat(in([]byte{8 << 3, 1}, 1), points), 5)...)
	body := in(thin, 2, 2, 1)
	weight := decode.Weight(otlpstream.Metrics, body)
	require.Less(t, weight, decode.Room(len(body)))
	room := decode.Charge(weight)
	require.Greater(t, room, 3*len(body))

	gate := make(chan struct{})
	open := sync.OnceFunc(func() { close(gate) })
	p := &pipeline{do: func(context.Context, string) error { <-gate; return nil }}
	r := start(t, p, func(cfg *Config) { cfg.InFlight.Bytes = 3*room - 1 })
	t.Cleanup(open)
	remembering(r)
	send := func() (codes.Code, bool) {
		st, _, overload := r.takeUnary(context.Background(), otlpstream.Metrics, transportUnary, formatProto, &otlpstream.Request{Data: body})
		return st.Code(), overload
	}
	var taken sync.WaitGroup
	for range 2 {
		taken.Go(func() {
			code, overload := send()
			if code != codes.OK || overload {
				t.Errorf("what there is room for is answered with %v", code)
			}
		})
	}
	eventually(t, func() bool { return len(p.seen()) == 2 }, "two are taken")
	require.Equal(t, 2*room, r.pipelines.admission.InFlight())
	took := allocated(func() {
		code, overload := send()
		require.Equal(t, codes.Unavailable, code)
		require.True(t, overload)
	})
	require.Less(t, took, len(body), "it is not decoded for that")
	require.Equal(t, 2*room, r.pipelines.admission.InFlight())

	c := dialGRPC(t, r, otlpstream.CapDelay)
	c.export(1, "a span")
	eventually(t, func() bool { return len(p.seen()) == 3 }, "there is room for others")
	open()
	taken.Wait()
	require.Equal(t, otlpstream.Response{ID: 1}, c.answer())
	eventually(t, func() bool { return r.pipelines.admission.InFlight() == 0 }, "all room is given back")
	code, overload := send()
	require.Equal(t, codes.OK, code)
	require.False(t, overload)
}
