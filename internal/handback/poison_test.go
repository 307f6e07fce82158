// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package handback_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/handback/handbacktest"
)

func TestPoisonIsASwitch(t *testing.T) {
	begun := handback.Poisons()
	undo := handback.Poison(!begun)
	require.Equal(t, !begun, handback.Poisons())
	undo()
	require.Equal(t, begun, handback.Poisons())
}

// A copy by a component is unchanged; metrics that it kept contain nothing that anyone sent.
func TestOverwrite(t *testing.T) {
	copied := pmetric.NewMetrics()
	var kept pmetric.Metrics
	handbacktest.Consume(t, func(md pmetric.Metrics) error {
		md.CopyTo(copied)
		kept = md
		return nil
	}, handbacktest.Metrics(3))
	marshal := func(md pmetric.Metrics) string {
		b, err := (&pmetric.JSONMarshaler{}).MarshalMetrics(md)
		require.NoError(t, err)
		return string(b)
	}
	require.Equal(t, marshal(handbacktest.Metrics(3)), marshal(copied))
	require.Equal(t, copied.DataPointCount(), kept.DataPointCount(), "the structure stays")
	text := marshal(kept)
	for _, said := range []string{"service-", "instance-", "tenant-", `"name":"gauge"`, "bird-", "about", "17000000"} {
		require.Contains(t, marshal(copied), said)
		require.NotContains(t, text, said)
	}
	dp := kept.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0)
	require.True(t, handback.IsPoison(dp.DoubleValue()))
	require.False(t, handback.IsPoison(3))
}

func TestConsumeFindsWhoChangesMetrics(t *testing.T) {
	fails := func(consume func(pmetric.Metrics) error) bool {
		fake := &testing.T{}
		done := make(chan struct{})
		go func() {
			defer close(done)
			handbacktest.Consume(fake, consume, handbacktest.Metrics(1))
		}()
		<-done
		return fake.Failed()
	}
	require.False(t, fails(func(pmetric.Metrics) error { return nil }))
	require.True(t, fails(func(pmetric.Metrics) error { return errors.New("no") }))
	require.True(t, fails(func(md pmetric.Metrics) error {
		md.MoveTo(pmetric.NewMetrics())
		return nil
	}))
}
