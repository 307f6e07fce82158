// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/tree"
)

// A large page is sent in parts. If one is refused, the following are counted as refused without being sent.
func TestLargePagesAreHandedOnInParts(t *testing.T) {
	const series, report, part = 40_000, 5, tree.PartPoints
	var text strings.Builder
	for i := range series {
		fmt.Fprintf(&text, "m{id=\"%d\"} 1\n", i)
	}
	for refused, want := range map[int]struct{ parts, accepted int }{0: {(series + report + part - 1) / part, series + report}, 2: {2, part}} {
		t.Run(fmt.Sprint("refused=", refused), func(t *testing.T) {
			parts := 0
			next, err := consumer.NewMetrics(func(context.Context, pmetric.Metrics) error {
				if parts++; parts == refused {
					return errors.New("full")
				}
				return nil
			})
			require.NoError(t, err)
			r := prepare(t, configure(t, fmt.Sprintf(static, "localhost:1")), withConsumer(next))
			t.Cleanup(func() { require.NoError(t, r.Shutdown(context.Background())) })
			r.backlog, r.out.refusals.gate = &backlog{most: 1 << 30}, newGate(paths{})
			r.backlog = &backlog{most: 1 << 30}
			r.slots = newSlots(1, r.backlog)
			read, err := r.cfg.read()
			require.NoError(t, err)
			job, err := page.NewJob(r.pageConfig(read.jobs[0]))
			require.NoError(t, err)
			target := job.NewTarget(labels.EmptyLabels(), labels.FromStrings("job", "test", "instance", "host:80"))
			s, err := target.Begin(time.Now(), "text/plain")
			require.NoError(t, err)
			require.NoError(t, s.Feed([]byte(text.String())))

			r.out.hand(r.stranger(), s.End(page.Report{}), r.slots.take(quick))
			require.Equal(t, want.parts, parts)
			r.slots.take(quick).release() // the slot is free again
			count := func(name string) float64 {
				m, err := r.telemetry.GetMetric(name)
				require.NoError(t, err)
				return total(t, m)
			}
			require.InDelta(t, want.accepted, count("otelcol_receiver_accepted_metric_points"), 0)
			require.InDelta(t, series+report-want.accepted, count("otelcol_receiver_refused_metric_points"), 0)
			require.Equal(t, int64(min(refused, 1)), r.out.refusals.scrapes.Load())
		})
	}
}

// A shutdown that runs out of time stops the parts of a page, even if the pipeline ignores its context. The remaining
// parts are counted as refused.
func TestTheShutdownEndsTheParts(t *testing.T) {
	const series, report, part = 40_000, 5, tree.PartPoints
	var text strings.Builder
	for i := range series {
		fmt.Fprintf(&text, "m{id=\"%d\"} 1\n", i)
	}
	parts := 0
	var r *rig
	next, err := consumer.NewMetrics(func(context.Context, pmetric.Metrics) error {
		if parts++; parts == 2 {
			r.out.abort()
		}
		return nil
	})
	require.NoError(t, err)
	r = prepare(t, configure(t, fmt.Sprintf(static, "localhost:1")), withConsumer(next))
	t.Cleanup(func() { require.NoError(t, r.Shutdown(context.Background())) })
	r.backlog = &backlog{most: 1 << 30}
	r.slots = newSlots(1, r.backlog)
	read, err := r.cfg.read()
	require.NoError(t, err)
	job, err := page.NewJob(r.pageConfig(read.jobs[0]))
	require.NoError(t, err)
	s, err := job.NewTarget(labels.EmptyLabels(), labels.FromStrings("job", "test", "instance", "host:80")).Begin(time.Now(), "text/plain")
	require.NoError(t, err)
	require.NoError(t, s.Feed([]byte(text.String())))
	r.out.hand(r.stranger(), s.End(page.Report{}), r.slots.take(quick))
	require.Equal(t, 2, parts)
	m, err := r.telemetry.GetMetric("otelcol_receiver_refused_metric_points")
	require.NoError(t, err)
	require.InDelta(t, series+report-2*part, total(t, m), 0)
}
