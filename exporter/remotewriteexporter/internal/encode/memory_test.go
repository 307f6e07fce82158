// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/racetest"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
)

// clusterPage returns a page that describes a whole cluster: width metrics of each of many pods.
func clusterPage(pods, width int) pmetric.Metrics {
	md := page(0, 0, epoch)
	metrics := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
	for i := range width {
		m := metrics.AppendEmpty()
		m.SetName(fmt.Sprintf("kube_pod_container_metric_%d", i))
		m.SetDescription(fmt.Sprintf("What metric %d of a container is about.", i))
		points := m.SetEmptyGauge().DataPoints()
		points.EnsureCapacity(pods)
		for pod := range pods {
			dp := points.AppendEmpty()
			dp.SetTimestamp(pcommon.NewTimestampFromTime(epoch))
			dp.SetDoubleValue(float64(pod * i % 1000))
			a := dp.Attributes()
			a.EnsureCapacity(6)
			a.PutStr("namespace", fmt.Sprintf("namespace-%d", pod%50))
			a.PutStr("pod", fmt.Sprintf("deployment-%d-6d4cf56db6-%05d", pod%300, pod))
			a.PutStr("uid", fmt.Sprintf("5f2a1c3e-97b4-4e0d-8a6f-%012d", pod))
			a.PutStr("container", fmt.Sprintf("container-%d", pod%7))
			a.PutStr("node", fmt.Sprintf("ip-10-0-%d-%d.internal", pod%200/100, pod%100))
			a.PutStr("status", []string{"true", "false", "unknown"}[i%3])
		}
	}
	return md
}

// retime moves every point in time.
func retime(md pmetric.Metrics, by time.Duration) {
	metrics := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
	for i := range metrics.Len() {
		points := metrics.At(i).Gauge().DataPoints()
		for j := range points.Len() {
			points.At(j).SetTimestamp(points.At(j).Timestamp() + pcommon.Timestamp(by))
		}
	}
}

// live returns the size of the live heap.
func live() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestMemoryPerSeries limits the memory of a known series, including everything that stays allocated between two
// scrapes.
func TestMemoryPerSeries(t *testing.T) {
	racetest.Sequential(t)
	const pods, width = 5000, 62
	md := clusterPage(pods, width)
	before := live()
	e, d := newEncoder(t, nil)
	for range 3 {
		require.NoError(t, e.Add(md, ""))
		blocks := e.Flush(0, "", v2Zstd, []block.Block(nil))
		samples := 0
		for _, b := range blocks {
			samples += b.Samples
		}
		require.Equal(t, pods*width, samples)
		e.Expire()
		retime(md, time.Minute)
	}
	perSeries := float64(live()-before) / (pods * width)
	t.Logf("%.0f bytes a series", perSeries)
	assert.Less(t, perSeries, 140.0)
	require.Equal(t, pods*width, e.Stats().Series)
	assert.Zero(t, d.total())
	runtime.KeepAlive(md)
}
