// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/internal/otlpstream"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver/internal/admission"
)

// stuck fills a receiver with one batch that stays until released.
func stuck(t *testing.T, change ...func(*Config)) (r *sharedReceiver, release func()) {
	gate := make(chan struct{})
	p := &pipeline{do: func(_ context.Context, name string) error {
		if name == "first" {
			<-gate
		}
		return nil
	}}
	r = start(t, p, append(change, func(cfg *Config) { cfg.InFlight.Bytes = 100 })...)
	c := dialGRPC(t, r, otlpstream.AllCaps)
	c.export(1, "first")
	eventually(t, func() bool { return len(p.seen()) == 1 }, "it arrives")
	once := sync.OnceFunc(func() { close(gate) })
	t.Cleanup(once)
	return r, once
}

func TestOverloadIsSignalled(t *testing.T) {
	r, release := stuck(t)
	big := string(make([]byte, 100))

	bothTransports(t, func(t *testing.T, dial dialer) {
		capable := dial(t, r, otlpstream.CapDelay)
		capable.export(1, big)
		response := capable.answer()
		require.Equal(t, otlpstream.FailedRetryable, response.Code)
		require.GreaterOrEqual(t, response.Delay, admission.LeastDelay)
		require.NoError(t, capable.send(&otlpstream.Request{ID: 2}))
		require.Equal(t, otlpstream.Response{ID: 2}, capable.answer(), "the stream goes on")

		plain := dial(t, r, 0)
		plain.export(1, big)
		require.Equal(t, otlpstream.FailedRetryable, plain.answer().Code)
		st, _ := plain.end()
		require.Equal(t, codes.Unavailable, st.Code())
		delay, ok := otlpstream.RetryDelay(st)
		require.True(t, ok)
		require.GreaterOrEqual(t, delay, admission.LeastDelay)
	})

	_, err := ptraceotlp.NewGRPCClient(grpcClient(t, r)).Export(testContext(t), ptraceotlp.NewExportRequestFromTraces(spanNamed(big)))
	require.Equal(t, codes.Unavailable, status.Code(err))
	_, ok := otlpstream.RetryDelay(status.Convert(err))
	require.True(t, ok)

	data, err := ptraceotlp.NewExportRequestFromTraces(spanNamed(big)).MarshalProto()
	require.NoError(t, err)
	code, header, _ := post(t, r, "/v1/traces", "application/x-protobuf", data)
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.NotEmpty(t, header.Get("Retry-After"))

	release()
	eventually(t, func() bool { return r.pipelines.admission.InFlight() == 0 }, "it drains")
	c := dialGRPC(t, r, 0)
	c.export(9, big)
	require.Equal(t, otlpstream.Response{ID: 9}, c.answer())
}

func TestAStreamStaysWithinItsWindow(t *testing.T) {
	bothTransports(t, func(t *testing.T, dial dialer) {
		gate := make(chan struct{})
		p := &pipeline{do: func(context.Context, string) error { <-gate; return nil }}
		c := dial(t, start(t, p, func(cfg *Config) { cfg.InFlight.RequestsPerStream = 3 }), 0)
		for id := uint64(1); id <= 10; id++ {
			c.export(id, "x")
		}
		eventually(t, func() bool { return len(p.seen()) == 3 }, "three are taken")
		require.Never(t, func() bool { return len(p.seen()) > 3 }, 50*time.Millisecond, time.Millisecond)
		close(gate)
		c.answers(10)
	})
}

func TestStreamsAreBounded(t *testing.T) {
	gate := make(chan struct{})
	r := prepare(t, &pipeline{do: func(context.Context, string) error { <-gate; return nil }}, func(cfg *Config) { cfg.Streams.Max = 1 })
	r.places.wait = 10 * time.Millisecond
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, r.Shutdown(context.Background())) })
	first := dialGRPC(t, r, 0)
	first.export(1, "x")
	eventually(t, func() bool { return r.pipelines.admission.InFlight() > 0 }, "it is at work")
	st, _ := dialGRPC(t, r, 0).end()
	require.Equal(t, codes.Unavailable, st.Code())
	code, _, _ := post(t, r, otlpstream.Traces.WebSocketPath(), "", nil)
	require.Equal(t, http.StatusServiceUnavailable, code)
	close(gate)
	require.NoError(t, first.finish())
	first.end()
	eventually(t, func() bool {
		c := dialGRPC(t, r, 0)
		return c.send(&otlpstream.Request{ID: 1}) == nil && c.recv(new(otlpstream.Response)) == nil
	}, "the place is free again")
}

func TestStreamsOfAConnectionAreBounded(t *testing.T) {
	r := start(t, &pipeline{}, func(cfg *Config) { grpcOf(cfg).MaxConcurrentStreams = 2 })
	cc := grpcClient(t, r)
	for range 2 {
		c := openGRPC(t, cc, 0, otlpstream.Traces.StreamMethod())
		c.export(1, "x")
		require.Equal(t, otlpstream.Response{ID: 1}, c.answer())
	}
	require.Equal(t, 2, r.Snapshot().Streams)
	third := make(chan error)
	go func() {
		_, err := cc.NewStream(testContext(t), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, otlpstream.Traces.StreamMethod())
		third <- err
	}()
	c := dialGRPC(t, r, 0)
	c.export(1, "x")
	require.Equal(t, otlpstream.Response{ID: 1}, c.answer(), "another connection has streams of its own")
	require.Equal(t, 3, r.Snapshot().Streams)
	select {
	case err := <-third:
		require.Fail(t, "it has to wait", err)
	default:
	}
	cc.Close()
	require.Error(t, <-third)
}

func TestTooLargeMessages(t *testing.T) {
	small := func(cfg *Config) {
		grpcOf(cfg).MaxRecvMsgSizeMiB = 1
		httpOf(cfg).MaxRequestBodySize = 1 << 20
	}
	r := start(t, &pipeline{}, small)
	bothTransports(t, func(t *testing.T, dial dialer) {
		c := dial(t, r, 0)
		require.Equal(t, "1048576", c.header(otlpstream.HeaderMaxMessage))
		_ = c.send(&otlpstream.Request{ID: 1, Data: payload(t, string(make([]byte, 1<<20+1)))})
		st, answers := c.end()
		// WebSocket messages are compressed, so the limit is detected when the ID is not known yet.
		require.NotNil(t, st)
		require.LessOrEqual(t, len(answers), 1)
	})
	code, _, _ := post(t, r, "/v1/traces", "application/x-protobuf", make([]byte, 1<<20+1))
	require.GreaterOrEqual(t, code, 400)
}

func TestHostileClients(t *testing.T) {
	p := &pipeline{}
	r := start(t, p)
	bothTransports(t, func(t *testing.T, dial dialer) {
		random := rand.New(rand.NewPCG(1, 2))
		for range 50 {
			c := dial(t, r, otlpstream.Caps(random.IntN(8)))
			for range random.IntN(5) {
				garbage := make([]byte, random.IntN(100))
				for i := range garbage {
					garbage[i] = byte(random.Uint32())
				}
				_ = c.raw(garbage)
			}
			if random.IntN(2) == 0 {
				_ = c.finish()
				c.end()
			}
		}
		c := dial(t, r, 0)
		c.export(1, "still there")
		require.Equal(t, otlpstream.Response{ID: 1}, c.answer())
	})
	eventually(t, func() bool { return r.pipelines.admission.InFlight() == 0 }, "nothing is left behind")
}
