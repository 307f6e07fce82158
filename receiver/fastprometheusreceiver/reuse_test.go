// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/featuregate"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/handback"
)

// What depends on a host is tested in interop, with a host that shows its graph.
func TestReuse(t *testing.T) {
	const used, unused = "The memory of metrics is used again once the pipeline has taken them", "The memory of metrics is not used again"
	changing, err := consumer.NewMetrics(func(context.Context, pmetric.Metrics) error { return nil },
		consumer.WithCapabilities(consumer.Capabilities{MutatesData: true}))
	require.NoError(t, err)
	target := newEndpoint(t, text)
	for name, c := range map[string]struct {
		reuse   string
		pooling bool
		options []option
		because any // nil if memory is reused
	}{
		"auto, of a host that shows nothing": {reuse: reuseAuto, because: "the host"},
		"always":                             {reuse: reuseAlways},
		"always, but metrics are changed":    {reuse: reuseAlways, options: []option{withConsumer(changing)}, because: "the host"},
		"always, but metrics are freed":      {reuse: reuseAlways, pooling: true, because: "gate pdata.useProtoPooling"},
		"never":                              {reuse: reuseNever, because: reuseKey},
	} {
		t.Run(name, func(t *testing.T) {
			if c.pooling {
				setGate(t, "pdata.useProtoPooling")
			}
			r := prepare(t, configure(t, "reuse: "+c.reuse+fmt.Sprintf(static, target.address())), c.options...)
			require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
			metric, err := r.telemetry.GetMetric("otelcol_receiver_fastprometheus_reuse")
			require.NoError(t, err)
			require.Equal(t, c.because == nil, total(t, metric) == 1)
			require.Equal(t, c.because == nil, r.reuse.allowed)
			require.NoError(t, r.Shutdown(t.Context()))
			said := r.log.FilterMessage(used).All()
			if c.because != nil {
				said = r.log.FilterMessage(unused).All()
				require.Equal(t, c.because, said[0].ContextMap()["because_of"])
			}
			require.Len(t, said, 1)
		})
	}
}

func setGate(t *testing.T, id string) {
	t.Helper()
	require.NoError(t, featuregate.GlobalRegistry().Set(id, true))
	t.Cleanup(func() { require.NoError(t, featuregate.GlobalRegistry().Set(id, false)) })
}

// A pipeline that refuses metrics may keep them and retry: they are not filled again. A pipeline that accepts them may
// not.
func TestWhatWasRefusedIsNotFilledAgain(t *testing.T) {
	t.Cleanup(handback.Poison(true))
	for _, refuses := range []bool{true, false} {
		var mu sync.Mutex
		var kept []pmetric.Metrics
		next, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
			mu.Lock()
			defer mu.Unlock()
			if kept = append(kept, md); refuses {
				return errors.New("not now")
			}
			return nil
		})
		require.NoError(t, err)
		r := run(t, "reuse: always"+fmt.Sprintf(static, newEndpoint(t, text).address()), withConsumer(next))
		require.Eventually(t, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(kept) > 1
		}, patience, glance)
		require.NoError(t, r.Shutdown(t.Context()))
		for _, p := range points(kept) {
			require.Equal(t, !refuses, handback.IsPoison(p.value), "%+v", p)
		}
	}
}
