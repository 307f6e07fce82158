// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/history"
	"github.com/godwit-otel/godwit/e2e/repository"
)

const limitedGateway = `
receivers: {otlpstream: {protocols: {grpc: {endpoint: %q}}}}
processors:
  cardinality:
    rules:
      - {name: flocks, match: {metric: geese}, group_by: ["attribute:flock"], max_series: 100, on_exceed: [drop]}
      - {name: ages, match: {metric: ducks}, label_limits: {ring: 10}, on_exceed: [collapse]}
exporters: {nop: }
service: {pipelines: {metrics: {receivers: [otlpstream], processors: [cardinality], exporters: [nop]}}}
`

// readAlert returns a shipped alert.
func readAlert(t *testing.T, name string) *history.Alert {
	t.Helper()
	groups, errs := rulefmt.Parse([]byte(repository.Read(t, alertsFile)), false, model.UTF8Validation, history.Parser(), slog.New(slog.DiscardHandler))
	require.Empty(t, errs)
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			if rule.Alert == name {
				return &history.Alert{Expr: rule.Expr, For: time.Duration(rule.For)}
			}
		}
	}
	require.Fail(t, "there is no alert "+name)
	return nil
}

// One alert fires before a limit rejects anything, and another within a minute of any rejection: for limits of groups
// and of labels.
func TestAlertsComeBeforeTheLimit(t *testing.T) {
	t.Parallel()
	addr := freeport.Addr(t)
	g := startDistribution(t, "godwit-gateway", fmt.Sprintf(limitedGateway, addr))
	client := pmetricotlp.NewGRPCClient(dial(t, addr))
	send := func(metric, flock string, n int) {
		t.Helper()
		md := gaugesOf(0, n)
		m := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)
		m.SetName(metric)
		m.Gauge().DataPoints().RemoveIf(func(p pmetric.NumberDataPoint) bool {
			p.Attributes().PutStr("flock", flock)
			return false
		})
		_, err := client.Export(t.Context(), pmetricotlp.NewExportRequestFromMetrics(md))
		require.NoError(t, err)
	}
	near, rejects := readAlert(t, "GodwitLimitNear"), readAlert(t, "GodwitLimitRejects")
	past := history.New(t)
	// look lets time pass and returns the rules for which each alert fires.
	look := func(d time.Duration) (isNear, isRejecting []string) {
		t.Helper()
		for range d / dashboardStep {
			past.Pass(dashboardStep)
			past.Scraped("godwit", "a:8888", page(t, g.telemetry))
			isNear, isRejecting = []string{}, []string{}
			for _, s := range near.Evaluate(past) {
				isNear = append(isNear, s.Metric.Get("rule")+s.Metric.Get("label"))
			}
			for _, s := range rejects.Evaluate(past) {
				isRejecting = append(isRejecting, s.Metric.Get("rule"))
			}
		}
		return isNear, isRejecting
	}
	requireFires := func(d time.Duration, wantNear, wantRejecting []string) {
		t.Helper()
		isNear, isRejecting := look(d)
		require.ElementsMatch(t, wantNear, isNear)
		require.ElementsMatch(t, wantRejecting, isRejecting)
	}
	none := []string{}
	for i := range 5 { // in total more than the limit of one
		send("geese", fmt.Sprint("flock", i), 79)
	}
	requireFires(10*time.Minute, none, none)
	send("geese", "flock3", 80)
	requireFires(time.Minute, none, none)
	requireFires(2*time.Minute, []string{"flocks"}, none)
	send("ducks", "pond", 9)
	requireFires(3*time.Minute, []string{"flocks", "agesring"}, none)
	send("geese", "flock3", 101)
	requireFires(time.Minute, []string{"flocks", "agesring"}, []string{"flocks"})
	requireFires(time.Hour, []string{"flocks", "agesring"}, none)
	send("geese", "flock3", 101) // the counter exists already
	requireFires(time.Minute, []string{"flocks", "agesring"}, []string{"flocks"})
	send("ducks", "pond", 11)
	requireFires(time.Minute, []string{"flocks", "agesring"}, []string{"flocks", "ages"})
	assert.Positive(t, g.metric(t, "otelcol_processor_cardinality_rejected_points"))
}
