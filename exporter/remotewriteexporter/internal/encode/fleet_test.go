// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package encode

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/racetest"
)

// BenchmarkFleets encodes what a second brings of fleets whose targets differ, named like the workloads of benchmarks/:
// about one request of each.
func BenchmarkFleets(b *testing.B) {
	own, ownSamples := ownPages(b, 100)
	kubelets, kubeletSamples := cadvisors(100, 14)
	mixed, mixedSamples := applications(20)
	for _, f := range []struct {
		name    string
		pages   []pmetric.Metrics
		samples int
	}{{"own", own, ownSamples}, {"kubelet", kubelets, kubeletSamples}, {"mixed", mixed, mixedSamples}} {
		b.Run(f.name, func(b *testing.B) { benchmarkPages(b, f.pages, f.samples, v2Zstd, false, nil) })
	}
}

// TestFleetsTakeFewBytes: what improves the compression of one kind of page must not make others worse. The limits are
// a few percent above what was measured.
func TestFleetsTakeFewBytes(t *testing.T) {
	racetest.Sequential(t)
	own, ownSamples := ownPages(t, 100)
	kubelets, kubeletSamples := cadvisors(50, 14)
	mixed, mixedSamples := applications(20)
	for _, f := range []struct {
		name    string
		pages   []pmetric.Metrics
		samples int
		most    float64 // B/sample
	}{
		{"own", own, ownSamples, 2.65},
		{"kubelet", kubelets, kubeletSamples, 11.2},
		{"mixed", mixed, mixedSamples, 7.15},
		{"one page of a whole cluster", []pmetric.Metrics{clusterPage(1000, 62)}, 62_000, 4.85},
	} {
		for _, order := range []string{"as they came first", "in another order"} {
			t.Run(f.name+"/"+order, func(t *testing.T) {
				e, _ := newEncoder(t, nil)
				wire, samples := 0, 0
				for range 2 { // the second time everything is known
					wire, samples = 0, 0
					for _, md := range f.pages {
						require.NoError(t, e.Add(md, ""))
					}
					for _, bl := range e.Flush(0, "", v2Zstd, nil) {
						wire += len(bl.Body())
						samples += bl.Samples
					}
					if order == "in another order" { // each target has its own offset within the interval, whenever it was first scraped
						slices.SortFunc(f.pages, func(a, b pmetric.Metrics) int { return cmp.Compare(placeOf(a), placeOf(b)) })
					}
				}
				require.Equal(t, f.samples, samples)
				t.Logf("%.2f B/sample", float64(wire)/float64(samples))
				assert.LessOrEqual(t, float64(wire)/float64(samples), f.most)
			})
		}
	}
}

// placeOf returns the place of a page's target, which depends only on its labels.
func placeOf(md pmetric.Metrics) uint64 {
	instance, _ := md.ResourceMetrics().At(0).Resource().Attributes().Get("service.instance.id")
	h := fnv.New64a()
	fmt.Fprint(h, instance.AsString())
	return h.Sum64()
}

// chance returns a number that follows from the seeds.
func chance(seeds ...int) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, seeds)
	return h.Sum64()
}

func id(seeds ...int) string { return fmt.Sprintf("%08x", uint32(chance(seeds...)>>20)) }

// some returns a part of a value that looks like a measured one, with many digits.
func some(value float64, seeds ...int) float64 {
	return math.Round(1e6*value*(0.25+float64(chance(seeds...)>>11)/(1<<53))) / 1e6
}

// ownPages returns labPages with a label on each series whose value is the target's own.
func ownPages(t testing.TB, targets int) (pages []pmetric.Metrics, samples int) {
	pages, samples = labPages(t, targets)
	for target, md := range pages {
		for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
			for _, p := range m.Gauge().DataPoints().All() {
				p.Attributes().PutStr("pod", "app-"+id(target))
			}
		}
	}
	return pages, samples
}

// scrapedPage returns an empty scrape of a target, and its time.
func scrapedPage(job string, target int) (md pmetric.Metrics, metrics pmetric.MetricSlice, at pcommon.Timestamp) {
	md = pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", job)
	rm.Resource().Attributes().PutStr("service.instance.id", fmt.Sprintf("127.1.0.%d:9100", target))
	return md, rm.ScopeMetrics().AppendEmpty().Metrics(), pcommon.NewTimestampFromTime(epoch.Add(time.Duration(target) * 9700 * time.Microsecond))
}

// cadvisors returns scrapes of kubelets that each describe pods of their own, metric by metric: each pod's container,
// and the sandbox around it, with long identities that repeat each other, and numbers that are all different.
func cadvisors(targets, pods int) (pages []pmetric.Metrics, samples int) {
	type labels [][2]string
	for target := range targets {
		md, metrics, at := scrapedPage("kubelet", target)
		containers, sandboxes := make([]labels, pods), make([]labels, pods)
		for pod := range pods {
			a, b, c, d := id(target, pod, 0), id(target, pod, 1), id(target, pod, 2), id(target, pod, 3)
			app := fmt.Sprint("app", pod*5%11)
			group := fmt.Sprintf("/kubepods/burstable/pod%s-4a1e-%s", b, a)
			name := labels{{"namespace", fmt.Sprint("team-", pod%7)}, {"pod", app + "-" + a}}
			sandboxes[pod] = append(labels{{"id", group}}, name...)
			containers[pod] = append(labels{
				{"container", "main"}, {"id", group + "/" + c + d}, {"image", "registry.example.org/" + app + "@sha256:" + b + d}, {"name", c + d},
			}, name...)
		}
		metric := func(name string, value float64, of []labels, more ...labels) {
			m := metrics.AppendEmpty()
			m.SetName("container_" + name)
			m.SetDescription("What cAdvisor says of a container: " + name)
			points := m.SetEmptyGauge().DataPoints()
			if len(more) == 0 {
				more = []labels{nil}
			}
			for _, pod := range of {
				for _, extra := range more {
					p := points.AppendEmpty()
					p.SetTimestamp(at)
					p.SetDoubleValue(some(value, target, samples))
					for _, l := range append(pod[:len(pod):len(pod)], extra...) {
						p.Attributes().PutStr(l[0], l[1])
					}
					samples++
				}
			}
		}
		var both []labels
		for pod := range pods {
			both = append(both, containers[pod], sandboxes[pod])
		}
		for i := range 10 {
			metric(fmt.Sprint("metric_", i), math.Pow(30, 1+float64(i%6)), both)
		}
		metric("memory_failures_total", 771203, containers, labels{{"failure_type", "pgfault"}, {"scope", "container"}},
			labels{{"failure_type", "pgmajfault"}, {"scope", "container"}}, labels{{"failure_type", "pgfault"}, {"scope", "hierarchy"}},
			labels{{"failure_type", "pgmajfault"}, {"scope", "hierarchy"}})
		for i := range 6 {
			metric(fmt.Sprint("network_", i, "_total"), 88120331, sandboxes, labels{{"interface", "eth0"}})
		}
		for i := range 2 {
			metric(fmt.Sprint("fs_", i, "_bytes_total"), 91220992, containers, labels{{"device", "/dev/nvme0n1"}})
		}
		metric("oom_events_total", 0, containers)
		metric("last_seen", 1732444556, containers)
		pages = append(pages, md)
	}
	return pages, samples
}

// applications returns scrapes of programs that have nothing in common: counters with few labels, histograms with
// thirty buckets, summaries with long labels.
func applications(targets int) (pages []pmetric.Metrics, samples int) {
	for target := range targets {
		md, metrics, at := scrapedPage(fmt.Sprint("job-", target), target)
		metric := func(name string) pmetric.Metric {
			m := metrics.AppendEmpty()
			m.SetName(fmt.Sprintf("%s_%s", id(target), name))
			m.SetDescription("What it counts: " + name)
			return m
		}
		size := 20 << (target % 9) // of the target's page
		for i := 0; i < size; {
			n := i
			switch target % 3 {
			case 0:
				points := metric(fmt.Sprint("events_", i, "_total")).SetEmptySum()
				points.SetIsMonotonic(true)
				points.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
				for range 12 {
					p := points.DataPoints().AppendEmpty()
					p.SetTimestamp(at)
					p.SetDoubleValue(float64(chance(target, i) % 7_000_000))
					p.Attributes().PutStr("handler", fmt.Sprint("/", id(n+(i-n)/3)))
					p.Attributes().PutStr("code", fmt.Sprint(200+100*(i%3)))
					i++
				}
			case 1:
				h := metric(fmt.Sprint("latency_", i, "_seconds")).SetEmptyHistogram()
				h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
				for route := range 4 {
					p := h.DataPoints().AppendEmpty()
					p.SetTimestamp(at)
					p.Attributes().PutStr("route", fmt.Sprint("/api/", id(n, route/2)))
					p.Attributes().PutStr("method", []string{"GET", "PUT"}[route%2])
					each := chance(target, i) % 50_000
					for bound := range 29 {
						p.ExplicitBounds().Append(math.Round(5*math.Pow(1.5, float64(bound))) / 1e4)
						p.BucketCounts().Append(each * uint64(bound) / 435)
					}
					p.BucketCounts().Append(each)
					p.SetCount(2 * each)
					p.SetSum(some(0.137*float64(each), target, i))
					i += 32
				}
			default:
				s := metric(fmt.Sprint("spent_", i, "_seconds")).SetEmptySummary()
				for class := range 8 {
					p := s.DataPoints().AppendEmpty()
					p.SetTimestamp(at)
					p.Attributes().PutStr("class", fmt.Sprintf("org.example.%s.internal.%sServiceImpl$$Proxy%d", id(target), id(n), class))
					p.Attributes().PutStr("pool", fmt.Sprint("G1 Eden Space ", class%3))
					p.SetCount(chance(target, i) % 50_000)
					p.SetSum(some(0.137*float64(p.Count()), target, i))
					for _, q := range []float64{0.5, 0.95, 0.99} {
						v := p.QuantileValues().AppendEmpty()
						v.SetQuantile(q)
						v.SetValue(0.137 * float64(class+1))
					}
					i += 5
				}
			}
			samples += i - n
		}
		pages = append(pages, md)
	}
	return pages, samples
}
