// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/receiver/remotewritereceiver/internal/admission"
)

// fleet has targets with series, sent like some senders do: all series of one target after those of another, divided
// into requests anywhere.
type fleet struct {
	r     *rand.Rand
	pages [][]fleetSeries
	of    []int // the page of each target
	odd   bool  // some series differ from the others, now and then
	now   int64
}

type fleetSeries struct {
	labels     []string // without those of the target
	help, unit string
	typ        writev2.Metadata_MetricType
}

func newFleet(r *rand.Rand, targets, pages, metrics int) *fleet {
	f := &fleet{r: r, now: 1_700_000_000_000}
	for range pages {
		f.pages = append(f.pages, f.page(metrics))
	}
	for range targets {
		f.of = append(f.of, r.IntN(pages))
	}
	return f
}

// page generates some metrics, of which pages share many.
func (f *fleet) page(metrics int) (page []fleetSeries) {
	for m := range metrics {
		if f.r.IntN(12) == 0 {
			continue
		}
		for i := range 1 + m%5 {
			page = append(page, fleetSeries{
				labels: []string{"__name__", fmt.Sprintf("metric_%d", m), "code", fmt.Sprint(i), "zone", strings.Repeat("z", m%3)},
				typ:    []writev2.Metadata_MetricType{writev2.Metadata_METRIC_TYPE_COUNTER, writev2.Metadata_METRIC_TYPE_GAUGE, 0}[m%3],
				help:   "Help of " + fmt.Sprint(m), unit: []string{"", "seconds"}[m%2],
			})
		}
	}
	return page
}

// change changes a page slightly.
func (f *fleet) change() {
	page := &f.pages[f.r.IntN(len(f.pages))]
	at := f.r.IntN(len(*page))
	switch f.r.IntN(6) {
	case 0:
		*page = slices.Delete(slices.Clone(*page), at, at+1)
	case 1:
		one := (*page)[at]
		one.labels = append(slices.Clone(one.labels), "extra", fmt.Sprint(f.r.IntN(3)))
		*page = slices.Insert(slices.Clone(*page), at, one)
	case 2:
		other := f.r.IntN(len(*page))
		*page = slices.Clone(*page)
		(*page)[at], (*page)[other] = (*page)[other], (*page)[at]
	case 3:
		*page = slices.Clone(*page)
		(*page)[at].help = "Other help."
	case 4:
		*page = slices.Clone(*page)
		(*page)[at].typ = writev2.Metadata_METRIC_TYPE_INFO
	case 5: // twice
		*page = slices.Insert(slices.Clone(*page), at, (*page)[at])
	}
}

// requests returns one scrape of all targets. It is divided between targets, and, unless the number is 0, before one in
// so many series.
func (f *fleet) requests(version promwrite.Version, cutOneIn int) (bodies [][]byte) {
	f.now += 15_000 + f.r.Int64N(100)
	req := newV2()
	cut := func() {
		if len(req.Timeseries) > 0 {
			bodies = append(bodies, bodyOf(version, &req.Request))
			req = newV2()
		}
	}
	odd := f.odd && f.r.IntN(3) == 0
	for target, page := range f.of {
		for i, s := range f.pages[page] {
			if cutOneIn > 0 && f.r.IntN(cutOneIn) == 0 {
				cut()
			}
			f.series(req, target, i, s, odd)
		}
		if f.r.IntN(3) == 0 {
			cut()
		}
	}
	cut()
	return bodies
}

func (f *fleet) series(req *v2, target, i int, s fleetSeries, odd bool) {
	ts := sample(float64(target)*1000+float64(i)+f.r.Float64(), f.now, f.now-1000*int64(i%2))
	if f.r.IntN(9) == 0 {
		ts.Samples[0].Value = 0 // which is omitted
	}
	labels := slices.Clone(s.labels)
	instance, job := fmt.Sprintf("host-%0*d:9100", 1+target%3, target), []string{"node", "ns/node"}[target%2]
	if target != 3 { // it has none
		labels = append(labels, "instance", instance)
	}
	if i%29 == 28 {
		labels = append(labels, "interface", "eth0") // between those of the target
	}
	labels = append(labels, "job", job)
	if odd && f.r.IntN(25) == 0 {
		switch f.r.IntN(8) {
		case 0:
			ts.Samples[0].Value = math.Float64frombits(promwrite.StaleNaN)
		case 1:
			ts.Samples[0].Timestamp = -1
		case 2:
			ts.Samples = append(ts.Samples, writev2.Sample{Value: 7, Timestamp: f.now + 1})
		case 3:
			ts.Samples = nil
		case 4:
			ts.Samples[0].Timestamp = 12345 // takes fewer bytes
		case 5:
			ts.Exemplars = []writev2.Exemplar{{LabelsRefs: req.refs("trace_id", "abc"), Value: 1, Timestamp: f.now}}
		case 6:
			ts.Histograms = append(ts.Histograms, writev2.Histogram{Timestamp: f.now, Sum: 1, Count: &writev2.Histogram_CountInt{CountInt: 0}})
		case 7:
			labels = append(labels, "job", "again")
		}
	}
	req.series(ts, s.typ, s.help, s.unit, sortedPairs(labels)...)
}

// sortedPairs sorts labels by name, like senders do.
func sortedPairs(labels []string) (sorted []string) {
	var pairs [][2]string
	for i := 0; i < len(labels); i += 2 {
		pairs = append(pairs, [2]string{labels[i], labels[i+1]})
	}
	slices.SortStableFunc(pairs, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	for _, p := range pairs {
		sorted = append(sorted, p[0], p[1])
	}
	return sorted
}

func bodyOf(version promwrite.Version, req *writev2.Request) []byte {
	var body []byte
	var err error
	if version == promwrite.V1 {
		body, err = older(req).Marshal()
	} else {
		body, err = req.Marshal()
	}
	if err != nil {
		panic(err)
	}
	return body
}

// bySeries returns the contents of metrics, in the order of each series.
func bySeries(md pmetric.Metrics) []string {
	lines := describe(md)
	var whole []string
	for _, l := range lines {
		if strings.HasPrefix(l, "  exemplar") {
			whole[len(whole)-1] += l
		} else {
			whole = append(whole, l)
		}
	}
	slices.SortStableFunc(whole, func(a, b string) int {
		a, _, _ = strings.Cut(a, " = ")
		b, _, _ = strings.Cut(b, " = ")
		return strings.Compare(a, b)
	})
	return whole
}

// twin runs a request also with a worker that knows nothing, and returns both results.
func twin(w *worker, cfg *Config, version promwrite.Version, body []byte, tree *tree) (want, got batch, err error) {
	oracle, err := newWorker(cfg, newKnown(0, false))
	if err != nil {
		return want, got, err
	}
	held := admission.New(64 << 20).Held()
	want, err = oracle.work(context.Background(), version, promwrite.Identity, slices.Clone(body), &held, nil, newTree(false))
	if err != nil {
		return want, got, err
	}
	held.Done()
	got, err = w.work(context.Background(), version, promwrite.Identity, body, &held, nil, tree)
	held.Done()
	tree.settle()
	overwrite(body)
	return want, got, err
}

// said returns the whole result of a request, except which metrics points are in.
func said(b batch) []string {
	return append(bySeries(b.metrics), fmt.Sprint(b.written, b.rejects.counts, b.rejects.err(), b.metrics.ResourceMetrics().Len()))
}
