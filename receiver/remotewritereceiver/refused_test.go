// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/handback"
)

// gate is a memory limiter in front of an exporter that has values written before it reads them.
type gate struct {
	refuses error
	values  []float64                     // last read by the exporter
	parts   []weak.Pointer[handback.Part] // last received
}

func (g *gate) consume(ctx context.Context, md pmetric.Metrics) error {
	loan := handback.LoanOf(ctx, md)
	g.parts = g.parts[:0]
	for _, p := range loan.Parts() {
		g.parts = append(g.parts, weak.Make(p))
	}
	if g.refuses != nil {
		return g.refuses
	}
	if _, defers := loan.Defers(); defers {
		loan.Settle()
	}
	g.values = g.values[:0]
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				for _, p := range m.Gauge().DataPoints().All() {
					g.values = append(g.values, p.DoubleValue())
				}
			}
		}
	}
	return nil
}

// Requests that a memory limiter refuses take no memory: theirs is reused, or freed if a consumer may have kept what it
// refused permanently. Later requests have the right values.
func TestRequestsThatAreRefusedTakeNoMemory(t *testing.T) {
	needRuns(t)
	for name, c := range map[string]struct {
		refuses error
		code    int
		again   bool
	}{
		"for now":  {errors.New("data refused due to high memory usage"), http.StatusServiceUnavailable, true},
		"for good": {consumererror.NewPermanent(errors.New("refused")), http.StatusBadRequest, false},
	} {
		t.Run(name, func(t *testing.T) {
			var far gate
			next, err := consumer.NewMetrics(far.consume)
			require.NoError(t, err)
			client := newRunClient(t, next)
			r := client.receiver
			send := func(code int) []float64 {
				w, want := client.send(t)
				require.Equal(t, code, w.Code, w.Body)
				if code == http.StatusServiceUnavailable {
					require.Equal(t, retryAfter, w.Header().Get("Retry-After"))
				}
				require.Zero(t, r.memory.Usage())
				require.Zero(t, r.known.Load().runs.out, "no request has parts any more")
				return want
			}
			for range 20 {
				require.Equal(t, send(http.StatusNoContent), far.values)
			}
			require.NotEmpty(t, far.parts, "the request comes by runs")

			far.refuses = c.refuses
			var refused []weak.Pointer[handback.Part]
			for i := range 20 {
				send(c.code)
				if i > 0 && c.again {
					require.Equal(t, refused, far.parts, "in the same memory each time")
				}
				refused = append(refused[:0], far.parts...)
				require.NotEmpty(t, refused)
			}
			if !c.again {
				require.Eventually(t, func() bool {
					runtime.GC()
					for _, p := range refused {
						if p.Value() != nil {
							return false
						}
					}
					return true
				}, 10*time.Second, time.Millisecond, "nobody has what was refused")
			}
			far.refuses = nil
			for range 20 {
				require.Equal(t, send(http.StatusNoContent), far.values)
			}
		})
	}
}
