// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// TestLabelsBeforeTheNumberAreEachOnes: of targets with a label of their own that only some share with the first, messages of the next metric have
// tails that were there, and what is before the number is not the first one's.
func TestLabelsBeforeTheNumberAreEachOnes(t *testing.T) {
	const targets, metrics = 30, 4
	e, _ := newEncoder(t, nil)
	want := map[string]int{}
	for target := range targets {
		md := pmetric.NewMetrics()
		rm := md.ResourceMetrics().AppendEmpty()
		rm.Resource().Attributes().PutStr("service.name", "job")
		rm.Resource().Attributes().PutStr("service.instance.id", fmt.Sprint("target-", target))
		sm := rm.ScopeMetrics().AppendEmpty()
		for metric := range metrics {
			m := sm.Metrics().AppendEmpty()
			m.SetName(fmt.Sprint("metric_", metric))
			zone, pod := fmt.Sprint("zone-", target/10), fmt.Sprint("pod-", target)
			addPoint(m.SetEmptyGauge().DataPoints(), float64(100*metric+target), epoch.Add(time.Duration(target)*time.Millisecond), "a_zone", zone, "b_pod", pod)
			want[fmt.Sprint(m.Name(), zone, pod, " target-", target)] = 100*metric + target
		}
		require.NoError(t, e.Add(md, ""))
	}
	series, _ := decode(t, flushAll(e, v2Zstd))
	got := map[string]int{}
	for _, s := range series {
		label := map[string]string{}
		for _, l := range s.Labels {
			label[l.Name] = l.Value
		}
		got[fmt.Sprint(label["__name__"], label["a_zone"], label["b_pod"], " ", label["instance"])] = int(s.Samples[0].Value)
	}
	assert.Equal(t, want, got)
}
