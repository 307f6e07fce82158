// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

// A record contains the samples that arrived at a destination, by series.
type record map[string][]said

// relaysUntil is an upper limit of the times of samples that are sent to relays. The times of scrapes are later.
const relaysUntil = pcommon.Timestamp(1_000_000 * 1_000_000)

// pagesUntil is in milliseconds: earlier start times come from a page, not from a clock.
const pagesUntil = 1_600_000_000_000

// add records a sample of a series. It leaves out what depends on the current time.
func (w *witness) add(end, series string, at int64, what string) {
	if strings.Contains(series, "scrape_duration_seconds") {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ends[end] == nil {
		w.ends[end] = record{}
	}
	w.ends[end][series] = append(w.ends[end][series], said{at, what})
}

// samples returns how many have arrived at all destinations.
func (w *witness) samples() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, all := range w.ends {
		for _, list := range all {
			n += len(list)
		}
	}
	return n
}

// depends reports whether the samples of a series depend on when they were taken: sums of several series are sent from
// time to time.
func depends(series, varies string) bool {
	return varies != "" && strings.Contains(series, varies) || strings.Contains(series, "__collapsed__") || strings.Contains(series, "otel.metric.overflow") ||
		strings.Contains(series, "otel_metric_overflow") || strings.Contains(series, "target_info")
}

// told returns everything that arrived at a destination, in the order of time, without repetitions of the last page and
// without what depends on the current time.
func (w *witness) told(end, varies string) map[string][]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := map[string][]string{}
	for series, list := range w.ends[end] {
		if depends(series, varies) {
			continue
		}
		list = slices.Clone(list)
		slices.SortStableFunc(list, func(a, b said) int {
			if c := cmp.Compare(a.at, b.at); c != 0 || a.at > int64(relaysUntil/1_000_000) {
				return c
			}
			return cmp.Compare(a.what, b.what)
		})
		for _, s := range list {
			what := s.what
			if s.at < int64(relaysUntil/1_000_000) {
				what = fmt.Sprint(s.at, " ", what)
			}
			if said := all[series]; len(said) == 0 || said[len(said)-1] != what || s.at < int64(relaysUntil/1_000_000) {
				all[series] = append(said, what)
			}
		}
	}
	return all
}

// differences returns the first few series that differ between two destinations.
func differences(a, b map[string][]string) (found []string) {
	for of, said := range a {
		if !slices.Equal(said, b[of]) {
			found = append(found, fmt.Sprintf("%s:\n  %v\n  %v", of, said, b[of]))
		}
	}
	for of, said := range b {
		if a[of] == nil {
			found = append(found, fmt.Sprintf("%s:\n  nothing\n  %v", of, said))
		}
	}
	slices.Sort(found)
	return found[:min(len(found), 5)]
}

// ServeHTTP accepts remote write for the destination that the path names.
func (w *witness) ServeHTTP(answer http.ResponseWriter, r *http.Request) {
	end := strings.TrimPrefix(r.URL.Path, "/")
	var written promwrite.Written
	err := eachSeries(r, func(s *promwrite.Series) {
		of := labelsText(s.Labels)
		bare := of // exemplars may be sent alone, without a type
		if w.loose[end] {
			s.Type, s.Help, s.Unit = 0, "", ""
		}
		if s.Type != 0 || s.Help != "" || s.Unit != "" {
			of += fmt.Sprint(" ", s.Type, s.Help, s.Unit)
		}
		written.Samples += len(s.Samples)
		for _, v := range s.Samples {
			w.add(end, of, v.Timestamp, numberText(v.Value)+began(v.StartTimestamp))
		}
		for _, h := range s.Histograms {
			at, start := h.Timestamp, h.StartTimestamp
			h.Timestamp, h.StartTimestamp = 0, 0
			w.add(end, "histogram "+of, at, fmt.Sprintf("%+v%s", h, began(start)))
			written.Histograms++
		}
		for _, e := range s.Exemplars {
			w.add(end, "exemplars "+bare, e.Timestamp, fmt.Sprint(e.Labels, e.Value))
			written.Exemplars++
		}
	})
	if err != nil {
		w.fail(err.Error())
	}
	written.SetHeaders(answer.Header())
	answer.WriteHeader(http.StatusNoContent)
}

func labelsText(labels []promwrite.Label) string {
	var b strings.Builder
	for _, l := range labels {
		b.WriteString("{" + l.Name + " " + l.Value + "}")
	}
	return b.String()
}

// numberText distinguishes different NaNs.
func numberText(v float64) string {
	if math.IsNaN(v) {
		return strconv.FormatUint(math.Float64bits(v), 16)
	}
	return strconv.FormatFloat(v, 'g', -1, 64) + " "
}

func began(start int64) string {
	if start <= 0 || start > pagesUntil {
		return ""
	}
	return fmt.Sprint(" since ", start)
}

// record records what arrived by OTLP at the destination that the processor's name says.
func (w *witness) record(of component.ID, md pmetric.Metrics) (pmetric.Metrics, error) {
	end := of.Name()
	metricsOf(md, func(rm pmetric.ResourceMetrics, sm pmetric.ScopeMetrics, m pmetric.Metric) {
		metadata := textOf(m.Metadata())
		if w.loose[end] {
			metadata = ""
		}
		head := fmt.Sprint(textOf(rm.Resource().Attributes()), sm.Scope().Name(), textOf(sm.Scope().Attributes()), " ", m.Name(), "|", m.Unit(), m.Description(), m.Type(), metadata)
		note := func(of pcommon.Map, at, start pcommon.Timestamp, flags pmetric.DataPointFlags, es pmetric.ExemplarSlice, what ...any) {
			series := head + textOf(of)
			w.add(end, series, int64(at/1_000_000), fmt.Sprint(flags.NoRecordedValue(), what, began(int64(start/1_000_000))))
			for _, e := range es.All() {
				w.add(end, "exemplars "+series, int64(e.Timestamp()/1_000_000), fmt.Sprint(textOf(e.FilteredAttributes()), e.TraceID(), e.DoubleValue(), e.IntValue()))
			}
		}
		numbers := func(dps pmetric.NumberDataPointSlice, kind string) {
			for _, p := range dps.All() {
				note(p.Attributes(), p.Timestamp(), p.StartTimestamp(), p.Flags(), p.Exemplars(), kind, p.ValueType(), p.DoubleValue(), p.IntValue())
			}
		}
		switch m.Type() {
		case pmetric.MetricTypeGauge:
			numbers(m.Gauge().DataPoints(), "gauge")
		case pmetric.MetricTypeSum:
			numbers(m.Sum().DataPoints(), fmt.Sprint("sum", m.Sum().IsMonotonic(), m.Sum().AggregationTemporality()))
		case pmetric.MetricTypeHistogram:
			for _, p := range m.Histogram().DataPoints().All() {
				note(p.Attributes(), p.Timestamp(), p.StartTimestamp(), p.Flags(), p.Exemplars(), m.Histogram().AggregationTemporality(),
					p.Count(), p.Sum(), p.BucketCounts().AsRaw(), p.ExplicitBounds().AsRaw(), p.HasMin(), p.HasMax())
			}
		case pmetric.MetricTypeSummary:
			for _, p := range m.Summary().DataPoints().All() {
				var quantiles []float64
				for _, q := range p.QuantileValues().All() {
					quantiles = append(quantiles, q.Quantile(), q.Value())
				}
				note(p.Attributes(), p.Timestamp(), p.StartTimestamp(), p.Flags(), pmetric.NewExemplarSlice(), p.Count(), p.Sum(), quantiles)
			}
		case pmetric.MetricTypeExponentialHistogram:
			for _, p := range m.ExponentialHistogram().DataPoints().All() {
				note(p.Attributes(), p.Timestamp(), p.StartTimestamp(), p.Flags(), p.Exemplars(), m.ExponentialHistogram().AggregationTemporality(),
					p.Scale(), p.Count(), p.Sum(), p.ZeroCount(), p.ZeroThreshold(), p.Positive().Offset(), p.Positive().BucketCounts().AsRaw(),
					p.Negative().Offset(), p.Negative().BucketCounts().AsRaw())
			}
		default:
		}
	})
	return md, nil
}
