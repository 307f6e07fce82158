// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	dto "github.com/prometheus/prometheus/prompb/io/prometheus/client"
)

// A neutralPage is a page that can be expressed in every format.
type neutralPage struct {
	families []neutralFamily
}

type neutralFamily struct {
	name, help string
	typ        dto.MetricType
	metrics    []dto.Metric
}

func newNeutralPage(r *rand.Rand) (p neutralPage) {
	for i := range 2 + r.IntN(6) {
		f := neutralFamily{typ: one(r, dto.MetricType_COUNTER, dto.MetricType_GAUGE, dto.MetricType_SUMMARY, dto.MetricType_HISTOGRAM, dto.MetricType_UNTYPED)}
		if f.name = fmt.Sprint("m", i); r.IntN(4) == 0 {
			f.name = fmt.Sprintf("é.m%d", i)
		}
		f.help = one(r, "Help.", "With \\ and \n.", "é")
		for j := range 1 + r.IntN(5) {
			m := dto.Metric{Label: []dto.LabelPair{{Name: "id", Value: fmt.Sprint(j)}}}
			for _, n := range []string{"zone", "é.l", "job", "otel_scope_name"} {
				if r.IntN(4) == 0 {
					m.Label = append(m.Label, dto.LabelPair{Name: n, Value: one(r, "v\"\\\n", "é", "v")})
				}
			}
			if r.IntN(6) == 0 {
				m.TimestampMs = 1_600_000_000_500
			}
			f.metrics = append(f.metrics, m)
		}
		p.families = append(p.families, f)
	}
	return p
}

// next returns the next page: other values, and a few metrics more or less.
func (p neutralPage) next(r *rand.Rand) neutralPage {
	out := neutralPage{families: slices.Clone(p.families)}
	for i := range out.families {
		f := &out.families[i]
		f.metrics = slices.Clone(f.metrics)
		if n := len(f.metrics); n > 1 && r.IntN(4) == 0 {
			f.metrics = f.metrics[:n-1]
		}
		for j := range f.metrics {
			f.fill(r, &f.metrics[j])
		}
	}
	if n := len(out.families); n > 1 && r.IntN(4) == 0 {
		out.families = out.families[:n-1]
	}
	return out
}

func (f *neutralFamily) fill(r *rand.Rand, m *dto.Metric) {
	number := func() float64 {
		return one(r, float64(r.IntN(100)), r.Float64()*1e9, math.Inf(1), math.NaN(), -r.Float64(), 1e300, 5e-324)
	}
	switch f.typ {
	case dto.MetricType_COUNTER:
		m.Counter = &dto.Counter{Value: number()}
	case dto.MetricType_GAUGE:
		m.Gauge = &dto.Gauge{Value: number()}
	case dto.MetricType_SUMMARY:
		m.Summary = &dto.Summary{SampleCount: r.Uint64N(9), SampleSum: number(), Quantile: []dto.Quantile{{Quantile: 0.5, Value: number()}, {Quantile: 1, Value: number()}}}
	case dto.MetricType_HISTOGRAM:
		m.Histogram = &dto.Histogram{SampleCount: 9, SampleSum: number(), Bucket: []dto.Bucket{
			{UpperBound: 0.25, CumulativeCount: r.Uint64N(3)}, {UpperBound: 1e6, CumulativeCount: 3 + r.Uint64N(9)}, {UpperBound: math.Inf(1), CumulativeCount: 9},
		}}
	default:
		m.Untyped = &dto.Untyped{Value: number()}
	}
}

func (p neutralPage) in(media string) string {
	var b strings.Builder
	for i := range p.families {
		p.families[i].write(&b, media)
	}
	if media == typeOM {
		b.WriteString("# EOF\n")
	}
	return b.String()
}

func (f *neutralFamily) write(b *strings.Builder, media string) {
	name, typ := f.name, strings.ToLower(f.typ.String())
	if f.typ == dto.MetricType_COUNTER {
		name += "_total"
	}
	if media == typeProto {
		b.WriteString(framed(&dto.MetricFamily{Name: name, Help: f.help, Type: f.typ, Metric: f.metrics}))
		return
	}
	family := name
	help := strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(f.help)
	if media == typeOM {
		family = f.name
		typ = strings.Replace(typ, "untyped", "unknown", 1)
	}
	if strings.HasPrefix(name, "é") {
		family = `"` + family + `"`
	}
	fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s %s\n", family, help, family, typ)
	for i := range f.metrics {
		m := &f.metrics[i]
		row := func(suffix, more string, v float64) {
			var ls []string
			for _, l := range m.Label {
				n := l.Name
				if strings.HasPrefix(n, "é") {
					n = `"` + n + `"`
				}
				ls = append(ls, fmt.Sprintf(`%s="%s"`, n, strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`).Replace(l.Value)))
			}
			if more != "" {
				ls = append(ls, more)
			}
			text := name + suffix + "{" + strings.Join(ls, ",") + "}"
			if strings.HasPrefix(name, "é") {
				text = "{" + strings.Join(append([]string{`"` + name + suffix + `"`}, ls...), ",") + "}"
			}
			fmt.Fprint(b, text, " ", v)
			if m.TimestampMs != 0 && media == typeOM {
				fmt.Fprintf(b, " %d.%03d", m.TimestampMs/1000, m.TimestampMs%1000)
			} else if m.TimestampMs != 0 {
				fmt.Fprint(b, " ", m.TimestampMs)
			}
			b.WriteByte('\n')
		}
		switch f.typ {
		case dto.MetricType_COUNTER:
			row("", "", m.Counter.Value)
		case dto.MetricType_GAUGE:
			row("", "", m.Gauge.Value)
		case dto.MetricType_SUMMARY:
			for _, q := range m.Summary.Quantile {
				row("", fmt.Sprintf(`quantile="%v"`, q.Quantile), q.Value)
			}
			row("_sum", "", m.Summary.SampleSum)
			row("_count", "", float64(m.Summary.SampleCount))
		case dto.MetricType_HISTOGRAM:
			for _, h := range m.Histogram.Bucket {
				row("_bucket", fmt.Sprintf(`le="%v"`, h.UpperBound), float64(h.CumulativeCount))
			}
			row("_sum", "", m.Histogram.SampleSum)
			row("_count", "", float64(m.Histogram.SampleCount))
		default:
			row("", "", m.Untyped.Value)
		}
	}
}

// reordered changes the order of families, of the metrics in each, and of labels.
func (p neutralPage) reordered(r *rand.Rand) neutralPage {
	out := neutralPage{families: slices.Clone(p.families)}
	r.Shuffle(len(out.families), func(i, j int) { out.families[i], out.families[j] = out.families[j], out.families[i] })
	for i := range out.families {
		f := &out.families[i]
		f.metrics = slices.Clone(f.metrics)
		r.Shuffle(len(f.metrics), func(i, j int) { f.metrics[i], f.metrics[j] = f.metrics[j], f.metrics[i] })
	}
	return out
}
