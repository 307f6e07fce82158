// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"google.golang.org/grpc/codes"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// crowded runs a receiver with two places for streams.
func crowded(t *testing.T, p *pipeline, change func(*sharedReceiver)) *sharedReceiver {
	r := prepare(t, p, func(cfg *Config) { cfg.Streams.Max = 2 })
	r.places.wait, r.places.minIdle, r.places.minStay = patience, time.Millisecond, time.Hour
	if change != nil {
		change(r)
	}
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, r.Shutdown(context.Background())) })
	return r
}

// busyWith returns a pipeline that blocks on batches of that name until released.
func busyWith(name string) (p *pipeline, release func()) {
	gate := make(chan struct{})
	release = sync.OnceFunc(func() { close(gate) })
	return &pipeline{do: func(_ context.Context, got string) error {
		if got == name {
			<-gate
		}
		return nil
	}}, release
}

func TestIdleStreamsKeepNobodyOut(t *testing.T) {
	bothTransports(t, func(t *testing.T, dial dialer) {
		p, release := busyWith("busy")
		defer release()
		r := crowded(t, p, nil)
		busy, quiet := dial(t, r, otlpstream.AllCaps), dial(t, r, otlpstream.AllCaps)
		busy.export(1, "busy")
		quiet.export(1, "x")
		require.Equal(t, otlpstream.Response{ID: 1}, quiet.answer())
		eventually(t, func() bool { return len(p.seen()) == 2 }, "both are there")
		arrived := make(chan *testClient)
		go func() {
			third := dial(t, r, otlpstream.AllCaps)
			third.export(1, "y")
			arrived <- third
		}()
		require.True(t, quiet.answer().Drain, "the idle one is asked to end")
		require.NoError(t, quiet.finish())
		st, _ := quiet.end()
		require.Nil(t, st, "nothing is to be sent twice")
		require.Equal(t, otlpstream.Response{ID: 1}, (<-arrived).answer())
		release()
		require.Equal(t, otlpstream.Response{ID: 1}, busy.answer(), "the other goes on")
		busy.export(2, "z")
		require.Equal(t, otlpstream.Response{ID: 2}, busy.answer())
	})
}

func TestAnIdleStreamOfAClientThatCannotDrainIsEnded(t *testing.T) {
	bothTransports(t, func(t *testing.T, dial dialer) {
		p, release := busyWith("busy")
		defer release()
		r := crowded(t, p, nil)
		busy, quiet := dial(t, r, 0), dial(t, r, 0)
		busy.export(1, "busy")
		quiet.export(1, "x")
		require.Equal(t, otlpstream.Response{ID: 1}, quiet.answer())
		eventually(t, func() bool { return len(p.seen()) == 2 }, "both are there")
		third := make(chan *testClient)
		go func() { third <- dial(t, r, 0) }()
		st, _ := quiet.end()
		require.Equal(t, codes.Unavailable, st.Code())
		delay, ok := otlpstream.RetryDelay(st)
		require.True(t, ok)
		require.Zero(t, delay)
		c := <-third
		c.export(1, "y")
		require.Equal(t, otlpstream.Response{ID: 1}, c.answer())
	})
}

// If all streams are busy, those of the client with the most take turns, and none waits for long.
func TestStreamsThatAreAtWorkTakeTurns(t *testing.T) {
	bothTransports(t, func(t *testing.T, dial dialer) {
		gate := make(chan struct{})
		p := &pipeline{do: func(context.Context, string) error { <-gate; return nil }}
		r := crowded(t, p, func(r *sharedReceiver) { r.places.minStay = 0 })
		var busy []*testClient
		for i := range 2 {
			c := dial(t, r, otlpstream.AllCaps)
			c.export(1, "x")
			eventually(t, func() bool { return len(p.seen()) == i+1 }, "it is at work")
			busy = append(busy, c)
		}
		third := make(chan *testClient)
		go func() { third <- dial(t, r, otlpstream.AllCaps) }()
		require.True(t, busy[0].answer().Drain, "the one that has been open for longest is asked to end")
		close(gate)
		require.NoError(t, busy[0].finish())
		st, answers := busy[0].end()
		require.Nil(t, st)
		require.Len(t, answers, 1, "what it had sent is answered")
		c := <-third
		c.export(1, "y")
		require.Equal(t, otlpstream.Response{ID: 1}, c.answer())
	})
}

func TestWhoFindsNoPlaceIsToldWhenToComeAgain(t *testing.T) {
	gate := make(chan struct{})
	defer close(gate)
	p := &pipeline{do: func(context.Context, string) error { <-gate; return nil }}
	r := crowded(t, p, func(r *sharedReceiver) { r.places.wait = 10 * time.Millisecond })
	for i := range 2 {
		dialGRPC(t, r, otlpstream.AllCaps).export(1, "x")
		eventually(t, func() bool { return len(p.seen()) == i+1 }, "it is at work")
	}
	st, _ := dialGRPC(t, r, otlpstream.AllCaps).end()
	require.Equal(t, codes.Unavailable, st.Code())
	delay, ok := otlpstream.RetryDelay(st)
	require.True(t, ok)
	require.Equal(t, placeDelay, delay)

	ctx := testContext(t)
	_, response, err := websocket.Dial(ctx, "ws://"+r.httpAddr+otlpstream.Traces.WebSocketPath(), nil)
	require.Error(t, err)
	require.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
	require.Equal(t, "1", response.Header.Get("Retry-After"))
}
