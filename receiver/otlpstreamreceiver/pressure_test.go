// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/internal/otlpstream"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver/internal/admission"
)

var errLimited = errors.New(admission.MemoryLimited)

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
			require.LessOrEqual(t, answer.Delay, admission.MostPressure*3/2)
		}
		// During that time the gate may have opened a few times, and each time one was decoded.
		require.LessOrEqual(t, len(p.seen()), 1+int(time.Since(began)/admission.LeastPressure), "they are refused before they are decoded")

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
