// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/internal/reuse"
	"github.com/godwit-otel/godwit/internal/slab"
)

// deferring returns metrics with one gauge, whose two points have the values 4 and 5 that are not written yet.
func deferring(ctx context.Context) (context.Context, pmetric.Metrics) {
	var slabs slab.Slabs
	m := reuse.New()
	b := reuse.BuildPart(1, 2, &slabs)
	b.Metric(pmetric.MetricTypeGauge, 2, reuse.None).SetName("deferring")
	b.Point(reuse.None)
	b.Point(reuse.None)
	part := b.Part()
	copy(part.Defer(), []slab.Float{{Value: 4, At: 1_700_000_000_000}, {Value: 5, At: 1_700_000_000_000}})
	m.PlacePart(m.Scope(m.Resource().ScopeMetrics()).Metrics(), 0, part)
	return m.LendDeferred(ctx, 2), m.Metrics()
}

func valuesOf(md pmetric.Metrics) (values []float64) {
	for _, p := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().All() {
		values = append(values, p.DoubleValue())
	}
	return values
}

func nameOf(md pmetric.Metrics) string {
	return md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Name()
}

// Readers of points that are written on request find them written, but the encoder does not need that.
func TestDeferredValuesAreSettledForWhoReadsThem(t *testing.T) {
	if !slab.Places() || handback.Poisons() {
		t.Skip("nothing is shared in this build")
	}
	endpoint := func(c *Config) { c.Endpoint = "http://127.0.0.1:1" }
	e := create(t, endpoint)
	ctx, md := deferring(t.Context())
	e.show(ctx, md, 2)
	require.Equal(t, []float64{0, 0}, valuesOf(md))
	require.Empty(t, nameOf(md), "it stands for the one whose values are deferred")

	seen := make(chan inspect.Glance, 1)
	go func() {
		g, _, _ := e.tap.Look(t.Context())
		seen <- g
	}()
	eventually(t, e.tap.IsOpen, "somebody waits")
	e.show(ctx, md, 2)
	require.Equal(t, []float64{4, 5}, valuesOf(md))
	require.Equal(t, "deferring", nameOf(md))
	require.Equal(t, "4", (<-seen).Points[0].Value)

	ctx, md = deferring(t.Context())
	e.show(ctx, md, 3)
	require.Equal(t, []float64{4, 5}, valuesOf(md), "somebody was on the way")

	e = create(t, func(c *Config) {
		endpoint(c)
		c.Tenant.Header, c.Tenant.FromResourceAttribute, c.Tenant.Default = "X-Scope-OrgID", "service.name", "nobody"
	})
	ctx, md = deferring(t.Context())
	e.show(ctx, md, 2)
	require.Equal(t, []float64{4, 5}, valuesOf(md))
}

type counted int

func (c *counted) Settle() { *c++ }

// A wording is used only if there are as many points as were lent.
func TestAWordingIsOfAllPoints(t *testing.T) {
	e := create(t, func(c *Config) { c.Endpoint = "http://127.0.0.1:1" })
	md := pmetric.NewMetrics()
	points := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetEmptyGauge().DataPoints()
	points.AppendEmpty()
	points.AppendEmpty()
	var (
		loan    handback.Loan
		wording handback.Wording
		settled counted
	)
	loan.Reword(&wording, 2, &settled)
	ctx := handback.Lend(t.Context(), &loan, md)
	e.show(ctx, md, 2)
	require.Zero(t, settled)
	require.Same(t, &wording, loan.Wording())
	e.show(ctx, md, 1)
	require.EqualValues(t, 1, settled)
	require.Nil(t, loan.Wording(), "one was taken out, and nobody knows which")
}
