// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

var errLimited = errors.New(memoryLimited)

func TestMemoryLimiterSlowsClientsDown(t *testing.T) {
	bothTransports(t, func(t *testing.T, dial dialer) {
		var short atomic.Bool
		short.Store(true)
		p := &pipeline{do: func(context.Context, string) error {
			if short.Load() {
				return fmt.Errorf("a processor: %w", errLimited)
			}
			return nil
		}}
		r := start(t, p)
		c := dial(t, r, otlpstream.AllCaps)
		began := time.Now()
		const n = 200
		for id := uint64(1); id <= n; id++ {
			c.export(id, "x")
			answer := c.answer()
			require.Equal(t, otlpstream.FailedRetryable, answer.Code)
			require.Positive(t, answer.Delay, "%d is told how long to wait", id)
			require.LessOrEqual(t, answer.Delay, mostPressure*3/2)
		}
		// In so much time the gate may have opened a few times, and each time one was decoded.
		require.LessOrEqual(t, len(p.seen()), 1+int(time.Since(began)/leastPressure), "they are refused before they are decoded")

		_, err := ptraceotlp.NewGRPCClient(grpcClient(t, r)).Export(testContext(t), ptraceotlp.NewExportRequestFromTraces(spanNamed("x")))
		_, asked := otlpstream.RetryDelay(status.Convert(err))
		require.True(t, asked)
		require.Equal(t, codes.Unavailable, status.Code(err))
		body, err := ptraceotlp.NewExportRequestFromTraces(spanNamed("x")).MarshalJSON()
		require.NoError(t, err)
		code, header, _ := post(t, r, "/v1/traces", "application/json", body)
		require.Equal(t, 503, code)
		require.NotEmpty(t, header.Get("Retry-After"))
		code, _, _ = post(t, r, "/v1/logs", "application/json", []byte(`{}`))
		require.Equal(t, 200, code, "pipelines of other signals have said nothing")

		short.Store(false)
		eventually(t, func() bool {
			c.export(1000, "y")
			return c.answer().Code == otlpstream.Success
		}, "it passes")
		c.export(1001, "z")
		require.Equal(t, otlpstream.Success, c.answer().Code, "and the next is let in at once")
	})
}

func TestPressureGrowsAndPasses(t *testing.T) {
	var p pressure
	now := time.Now()
	require.Zero(t, p.left(now))
	for want := leastPressure; want < 20*mostPressure; want *= 2 {
		delay := min(want, mostPressure)
		told := p.refused(now)
		require.GreaterOrEqual(t, told, delay)
		require.LessOrEqual(t, told, delay*3/2)
		require.GreaterOrEqual(t, p.refused(now.Add(delay/2)), delay/2, "another one that was let in before")
		require.LessOrEqual(t, p.left(now.Add(delay/2)), delay, "does not make it longer")
		now = now.Add(delay)
		require.Zero(t, p.left(now))
	}
	p.taken()
	require.LessOrEqual(t, p.refused(now), leastPressure*3/2)
	p.taken()
	require.Zero(t, p.left(now))
}

func TestOnlyMemoryLimitersMakePressure(t *testing.T) {
	for err, want := range map[error]bool{
		errLimited:                                  true,
		fmt.Errorf("wrapped: %w", errLimited):       true,
		errors.Join(errors.New("full"), errLimited): true,
		errors.New("rpc error: " + memoryLimited):   false,
		errors.New("sending queue is full"):         false,
	} {
		require.Equal(t, want, limited(err), strings.ReplaceAll(err.Error(), "\n", " "))
	}
	require.False(t, limited(nil))
}
