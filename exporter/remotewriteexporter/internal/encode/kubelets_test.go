// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/racetest"
)

// kubelets returns scrapes of targets that each describe pods of their own, metric by metric, like a kubelet.
func kubelets(targets, pods, metrics int) (md pmetric.Metrics, samples int) {
	md = pmetric.NewMetrics()
	r := rand.New(rand.NewPCG(1, 1))
	for target := range targets {
		rm := md.ResourceMetrics().AppendEmpty()
		rm.Resource().Attributes().PutStr("service.name", "kubelet")
		rm.Resource().Attributes().PutStr("service.instance.id", fmt.Sprint("node-", target))
		at := pcommon.NewTimestampFromTime(epoch.Add(time.Duration(target*7) * time.Millisecond))
		ms := rm.ScopeMetrics().AppendEmpty().Metrics()
		for metric := range metrics {
			m := ms.AppendEmpty()
			m.SetName(fmt.Sprint("container_metric_", metric))
			m.SetDescription("What cAdvisor says.")
			points := m.SetEmptyGauge().DataPoints()
			for pod := range pods {
				p := points.AppendEmpty()
				p.SetTimestamp(at)
				p.SetDoubleValue(float64(r.IntN(1 << 16)))
				a := p.Attributes()
				a.PutStr("container", "main")
				a.PutStr("id", fmt.Sprintf("/kubepods/pod%x", target*100+pod))
				a.PutStr("image", fmt.Sprintf("image@%x", target*100+pod))
				a.PutStr("name", fmt.Sprintf("%x", target*100+pod))
				a.PutStr("namespace", fmt.Sprint("team-", pod%7))
				a.PutStr("pod", fmt.Sprintf("app-%x", target*100+pod))
				if metric%4 == 3 {
					a.PutStr("device", "/dev/nvme0n1")
				}
				samples++
			}
		}
	}
	return md, samples
}

// TestWhatPodsAreCalledIsSaidOnce: the names of a target's own pods follow the number, in the same order in each
// metric, so that a sample takes its number and little else.
func TestWhatPodsAreCalledIsSaidOnce(t *testing.T) {
	racetest.Sequential(t)
	size := func(metrics int) (bytes, samples int) {
		e, _ := newEncoder(t, nil)
		md, samples := kubelets(60, 12, metrics)
		require.NoError(t, e.Add(md, ""))
		blocks := flushAll(e, v2Zstd)
		require.Len(t, blocks, 1)
		require.Equal(t, samples, blocks[0].Samples)
		return len(blocks[0].Body()), samples
	}
	few, samplesOfFew := size(4)
	many, samples := size(24)
	each := float64(many-few) / float64(samples-samplesOfFew)
	t.Logf("%.2f B for a sample of one metric more", each)
	require.Less(t, each, 4.05, "with half of the labels before the number it was 12, and 7.3 where the first runs of a request were alike to none")
}

// TestPodsThatComeAndGoAreAlike: the same holds for targets with different numbers of pods, whose series are divided
// into many runs.
func TestPodsThatComeAndGoAreAlike(t *testing.T) {
	racetest.Sequential(t)
	size := func(metrics int) (bytes, samples int) {
		e, _ := newEncoder(t, nil)
		r := rand.New(rand.NewPCG(1, 2))
		for target := range 60 {
			md, n := kubelets(1, 8+r.IntN(8), metrics)
			samples += n
			md.ResourceMetrics().At(0).Resource().Attributes().PutStr("service.instance.id", fmt.Sprint("node-", target))
			for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
				for i, p := range m.Gauge().DataPoints().All() {
					p.SetDoubleValue(float64(r.IntN(1 << 16)))
					for _, name := range []string{"id", "image", "name", "pod"} {
						p.Attributes().PutStr(name, fmt.Sprintf("%s-%x", name, target*100+i))
					}
					p.Attributes().PutStr("namespace", fmt.Sprint("team-", (i*target)%13))
				}
			}
			require.NoError(t, e.Add(md, ""))
		}
		blocks := flushAll(e, v2Zstd)
		require.Len(t, blocks, 1)
		return len(blocks[0].Body()), samples
	}
	few, samplesOfFew := size(4)
	many, samples := size(24)
	each := float64(many-few) / float64(samples-samplesOfFew)
	t.Logf("%.2f B for a sample of one metric more", each)
	require.Less(t, each, 4.05, "with references of one byte and two it was 5.4, with the last 64 runs alone 9.9")
}

// TestSeriesWithoutAPlaceStayInOrder: a series without room in the cache is a new one each time, and its samples must
// stay in order.
func TestSeriesWithoutAPlaceStayInOrder(t *testing.T) {
	for _, most := range []int{1, 50, 1000} {
		e, d := newEncoder(t, func(c *Config) { c.Cache.MaxSeries = most })
		r := rand.New(rand.NewPCG(1, uint64(most)))
		const scrapes = 4
		want := 0
		for scrape := range scrapes {
			md := pmetric.NewMetrics()
			for target := range 2 * leastRun {
				rm := md.ResourceMetrics().AppendEmpty()
				rm.Resource().Attributes().PutStr("service.instance.id", fmt.Sprint(target))
				m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
				m.SetName("m")
				points := m.SetEmptyGauge().DataPoints()
				for _, i := range r.Perm(10) {
					p := points.AppendEmpty()
					p.SetTimestamp(pcommon.NewTimestampFromTime(epoch.Add(time.Duration(scrape) * time.Second)))
					p.SetDoubleValue(1)
					p.Attributes().PutStr("pod", fmt.Sprint(target))
					p.Attributes().PutInt("i", int64(i))
					want++
				}
			}
			require.NoError(t, e.Add(md, ""))
		}
		series, _ := decode(t, flushAll(e, v2Zstd))
		last, got := map[string]int64{}, 0
		for _, s := range series {
			for _, p := range s.Samples {
				require.Greater(t, p.Timestamp, last[labelsOf(s)], labelsOf(s))
				last[labelsOf(s)] = p.Timestamp
				got++
			}
		}
		require.Equal(t, want, got)
		require.Zero(t, d.total())
	}
}
