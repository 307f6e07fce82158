// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gogo/protobuf/types"
	"github.com/prometheus/prometheus/model/labels"
	dto "github.com/prometheus/prometheus/prompb/io/prometheus/client"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/racetest"
)

// nastySeries returns a random series with any labels that are possible.
func nastySeries(r *rand.Rand, media string) string {
	name := one(r, "a", "b", "c", "g_total", "d_seconds", `é.x`, "target_info")
	if name == "target_info" && r.IntN(3) > 0 {
		name = "a"
	}
	var ls []string
	for _, n := range []string{
		"id", "zone", "exported_zone", "exported_exported_zone", "job", "instance", "exported_job", "otel_scope_name", "otel_scope_version", "otel_scope_x",
		"rack", "__scheme__", "__metrics_path__", "__tmp", "le", "quantile", "é.l", "Upper", "cluster",
	} {
		odds := 7
		if n == "id" || n == "zone" {
			odds = 2
		}
		if r.IntN(odds) > 0 {
			continue
		}
		v := one(r, "v1", "v2", "v3", "", `a\\b`, `q\"q`, `l\nl`, "é", "z1", "Mixed", "1", "0.5", "1e0", "+Inf", "long-value-of-a-label", `\x`, " sp ", "a:80")
		if !strings.ContainsAny(n, "é") {
			ls = append(ls, fmt.Sprintf(`%s="%s"`, n, v))
		} else {
			ls = append(ls, fmt.Sprintf(`"%s"="%s"`, n, v))
		}
	}
	r.Shuffle(len(ls), func(i, j int) { ls[i], ls[j] = ls[j], ls[i] })
	sep, end := ",", ""
	if media == typeText {
		sep, end = one(r, ",", ", ", " , "), one(r, "", "", ",")
	}
	if len(ls) == 0 {
		end = ""
	}
	if strings.HasPrefix(name, "é") {
		return "{" + strings.Join(append([]string{`"` + name + `"`}, ls...), sep) + end + "}"
	}
	if len(ls) == 0 {
		return name
	}
	return name + "{" + strings.Join(ls, sep) + end + "}"
}

func nastyMeta(r *rand.Rand, media string) string {
	f := one(r, "a", "b", "c", "g_total", "d_seconds", `"é.x"`)
	types := []string{"counter", "gauge", "untyped"}
	if media == typeOM {
		types = []string{"counter", "gauge", "unknown", "info", "stateset"}
	}
	switch r.IntN(4) {
	case 0:
		return "# HELP " + f + " " + one(r, "Help.", `With \n and \\ and \" in it`, "é", "", "  two  blanks ")
	case 1:
		if media == typeOM && f == "d_seconds" {
			return "# UNIT d_seconds seconds"
		}
		fallthrough
	default:
		return "# TYPE " + f + " " + one(r, types...)
	}
}

var nastyRules = []string{
	"", "", "",
	"{source_labels: [zone], regex: v1, action: drop}",
	"{source_labels: [zone, id], target_label: job}",
	"{source_labels: [id], regex: '(v.)', target_label: instance, replacement: 'i-$1'}",
	"{source_labels: [id], target_label: __name__, regex: 'v(.)', replacement: 'n_$1'}",
	"{regex: 'exported_(.*)', action: labelmap}",
	"{regex: 'exported_.*', action: labeldrop}",
	"{regex: '(z|i).*', action: labelmap, replacement: 'q_$0'}",
	"{source_labels: [zone], target_label: zone, action: uppercase}",
	"{source_labels: [zone, rack], target_label: h, modulus: 3, action: hashmod}",
	"{source_labels: [zone], target_label: rack, action: keepequal}",
	"{source_labels: [zone], target_label: id, action: dropequal}",
	"{target_label: rack, replacement: ''}",
	"{source_labels: [instance], regex: '(.*):.*', target_label: host}",
	"{source_labels: [job], target_label: service}",
	"{regex: 'job', action: labeldrop}",
	"{regex: 'instance|job', action: labeldrop}",
	"{regex: '__name__|job|instance|id', action: labelkeep}",
	"{source_labels: [__name__, id], target_label: otel_scope_name}",
	"{source_labels: [id], target_label: '${1}_x', regex: '(v.)', replacement: 'y'}",
	"{target_label: le, replacement: '5'}",
	"{source_labels: [__name__], regex: 'a', target_label: __name__, replacement: ''}",
	"{source_labels: [__name__], regex: 'a', target_label: __name__, replacement: 'target_info'}",
}

func nastyJob(r *rand.Rand) string {
	var b strings.Builder
	for _, o := range []string{
		"honor_labels: true", "honor_timestamps: false", "track_timestamps_staleness: true", "sample_limit: 9", "label_limit: 8",
		"label_name_length_limit: 17", "label_value_length_limit: 20", "extra_scrape_metrics: true", "scrape_native_histograms: true",
	} {
		odds := 5
		if strings.Contains(o, "limit") {
			odds = 12
		}
		if r.IntN(odds) == 0 {
			b.WriteString(o + "\n")
		}
	}
	var rules []string
	for range r.IntN(3) {
		if rule := one(r, nastyRules...); rule != "" {
			rules = append(rules, "- "+rule)
		}
	}
	if len(rules) > 0 {
		b.WriteString("metric_relabel_configs:\n" + strings.Join(rules, "\n") + "\n")
	}
	return b.String()
}

func nastySequence(seed uint64) sequence {
	r := rand.New(rand.NewPCG(seed, 77))
	media := one(r, typeText, typeOM)
	seq := sequence{name: fmt.Sprint("nasty", seed), media: media, job: nastyJob(r)}
	if r.IntN(2) == 0 {
		seq.labels = map[string]string{"zone": "z1", "rack": one(r, "r", "v1")}
		if r.IntN(3) == 0 {
			seq.labels["exported_zone"] = "ez"
			seq.labels["le"] = "7"
		}
	}
	timed := map[string]bool{}
	seen := map[string]bool{}
	var lines []string
	more := func() {
		if r.IntN(3) == 0 {
			if m := nastyMeta(r, media); !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, strings.Join(strings.SplitN(m, " ", 4)[:3], " ")+" ") }) {
				lines = append([]string{m}, lines...)
			}
			return
		}
		s := nastySeries(r, media)
		if !seen[s] {
			seen[s] = true
			timed[s] = r.IntN(6) == 0
			lines = append(lines, s)
		}
	}
	for range 3 + r.IntN(12) {
		more()
	}
	for n := range 8 {
		var b strings.Builder
		for i, l := range lines {
			if strings.HasPrefix(l, "#") {
				b.WriteString(l + "\n")
				continue
			}
			gap := " "
			if media == typeText {
				gap = one(r, " ", " ", " ", "  ", "\t")
			}
			b.WriteString(l + gap + one(r, strconv.Itoa(10*n+i), strconv.Itoa(10*n+i), strconv.FormatFloat(r.NormFloat64(), 'g', -1, 64), "NaN", "+Inf", "-Inf", "1e5", ".5", "5.", "-0", "nan", "Inf"))
			if timed[l] {
				if media == typeOM {
					fmt.Fprintf(&b, " %d.%03d", 1_600_000_000+n, r.IntN(1000))
				} else {
					fmt.Fprintf(&b, " %d", 1_600_000_000_000+1000*n+r.IntN(1000))
				}
			}
			if media == typeOM && r.IntN(6) == 0 {
				b.WriteString(one(r, ` # {} 1`, ` # {trace_id="0102030405060708090a0b0c0d0e0f10"} 2 1600000000.5`, ` # {TRACE_ID="0102030405060708090A0b0c0d0e0f10",span_id="0102030405060708",k=""} 3`,
					` # {trace_id="00000000000000000000000000000000",k="v"} 4`, ` # {span_id="xx",a="b\n"} 5`))
			}
			b.WriteByte('\n')
			if media == typeText && r.IntN(15) == 0 {
				b.WriteString(one(r, "\n", "# a comment\n", "#\n", "  \t\n", "# TYPEa b\n"))
			}
		}
		if media == typeOM {
			b.WriteString("# EOF\n")
		}
		switch r.IntN(25) {
		case 0:
			seq.pages = append(seq.pages, errorPage)
		case 1:
			seq.pages = append(seq.pages, b.String()+"broken{\n")
		case 2:
			seq.pages = append(seq.pages, "")
		default:
			seq.pages = append(seq.pages, b.String())
		}
		switch r.IntN(4) {
		case 0:
			more()
		case 1:
			if len(lines) > 1 {
				i := r.IntN(len(lines))
				lines = append(lines[:i:i], lines[i+1:]...)
			}
		case 2:
			if len(lines) > 1 {
				i, j := r.IntN(len(lines)), r.IntN(len(lines))
				lines[i], lines[j] = lines[j], lines[i]
			}
		default:
		}
	}
	return seq
}

// Random pages, with random rules, limits and options, have the same result as in the Collector's receiver. They avoid
// intended differences: a failed page ends the comparison, and so do staleness markers of custom buckets.
func TestRandomPagesAgainstStock(t *testing.T) {
	racetest.Sequential(t)
	var seqs []sequence
	for i := range uint64(24) {
		seqs = append(seqs, nastySequence(i), nativeSequence(i))
	}
	results := stockReceiver(t, receiverOptions{}, seqs)
	for i, seq := range seqs {
		t.Run(seq.name, func(t *testing.T) { checkNasty(t, i, seq, results[i]) })
	}
}

func checkNasty(t *testing.T, i int, seq sequence, got stock) {
	j := newTestJob(t, Config{Scrape: got.config, Reuse: i%4 < 2})
	discovered := labels.FromStrings("__address__", got.address, "__scheme__", "http", "__metrics_path__", fmt.Sprint("/", i), "job", got.config.JobName)
	b := labels.NewBuilder(labels.FromStrings("job", got.config.JobName, "instance", got.address))
	for k, v := range seq.labels {
		b.Set(k, v)
	}
	target := j.NewTarget(discovered, b.Labels())
	isCustomEnd := func(s string) bool { return strings.Contains(s, "istogram {") && strings.Contains(s, "flags 1") }
	for n, page := range seq.pages {
		at := reportTime(t, got.results[n])
		if got.slow[at.UnixMilli()] {
			return
		}
		res := show(target, at, seq.media, page, 1+(i*7+n*13)%60)
		require.Equal(t, isUp(got.results[n]), res.Err == nil, "%v: %q", res.Err, page)
		if res.Err != nil && page != errorPage {
			return
		}
		md, last := merge(t, res)
		want, have := canon(got.results[n]), canon(md)
		if got.config.ConvertClassicHistogramsToNHCBEnabled() {
			want, have = slices.DeleteFunc(want, isCustomEnd), slices.DeleteFunc(have, isCustomEnd)
		}
		requireSamePoints(t, want, have, fmt.Sprintf("page %d under %s: %q", n, seq.job, page))
		last.Release()
	}
}

// isUp reports whether the metrics of a scrape say that it succeeded.
func isUp(md pmetric.Metrics) bool {
	return slices.ContainsFunc(canon(md), func(s string) bool {
		return strings.Contains(s, ` | up "The scraping`) && strings.Contains(s, fmt.Sprintf("flags 0: Double %x", math.Float64bits(1)))
	})
}

func nativeSequence(seed uint64) sequence {
	r := rand.New(rand.NewPCG(seed, 78))
	seq := sequence{name: fmt.Sprint("native", seed), media: typeProto}
	var b strings.Builder
	b.WriteString("scrape_native_histograms: " + one(r, "true", "true", "true", "false") + "\n")
	for _, o := range []string{
		"honor_labels: true", "honor_timestamps: false", "track_timestamps_staleness: true", "native_histogram_bucket_limit: 4",
		"native_histogram_bucket_limit: 1", "native_histogram_min_bucket_factor: 1.3", "native_histogram_min_bucket_factor: 4", "always_scrape_classic_histograms: true", "convert_classic_histograms_to_nhcb: true",
		"metric_relabel_configs: [{source_labels: [id], regex: '(.).*', target_label: first}]", "metric_relabel_configs: [{source_labels: [id], regex: 'v1', action: drop}]",
	} {
		if key, _, _ := strings.Cut(o, ":"); r.IntN(6) == 0 && !strings.Contains(b.String(), key) {
			b.WriteString(o + "\n")
		}
	}
	seq.job = b.String()
	type fam struct {
		name   string
		typ    dto.MetricType
		kind   int
		schema int32
		labels [][]dto.LabelPair
		timed  bool
	}
	var fams []*fam
	for i := range 1 + r.IntN(4) {
		f := &fam{name: fmt.Sprint(one(r, "h", "n", "é.n"), i), typ: one(r, dto.MetricType_HISTOGRAM, dto.MetricType_HISTOGRAM, dto.MetricType_HISTOGRAM, dto.MetricType_GAUGE, dto.MetricType_COUNTER, dto.MetricType_SUMMARY), kind: r.IntN(4), schema: int32(r.IntN(13) - 4), timed: r.IntN(6) == 0}
		for j := range 1 + r.IntN(3) {
			f.labels = append(f.labels, []dto.LabelPair{{Name: "id", Value: fmt.Sprint("v", j)}})
		}
		fams = append(fams, f)
	}
	for n := range 8 {
		var page strings.Builder
		for _, f := range fams {
			out := &dto.MetricFamily{Name: f.name, Type: f.typ, Help: "H.", Unit: one(r, "", "s")}
			out.Unit = ""
			for _, ls := range f.labels {
				m := dto.Metric{Label: ls}
				if f.timed {
					m.TimestampMs = 1_600_000_000_000 + int64(n)*1000
				}
				ex := func() *dto.Exemplar {
					if r.IntN(3) > 0 {
						return nil
					}
					e := &dto.Exemplar{Value: float64(r.IntN(9)), Label: []dto.LabelPair{{Name: one(r, "trace_id", "k"), Value: one(r, "0102030405060708090a0b0c0d0e0f10", "x")}}}
					if r.IntN(3) > 0 {
						e.Timestamp = &types.Timestamp{Seconds: 1_600_000_000 + int64(r.IntN(50)), Nanos: int32(r.IntN(1000)) * 1000000}
					}
					return e
				}
				switch f.typ {
				case dto.MetricType_GAUGE:
					m.Gauge = &dto.Gauge{Value: r.NormFloat64()}
				case dto.MetricType_COUNTER:
					m.Counter = &dto.Counter{Value: float64(r.IntN(100)), Exemplar: ex()}
				case dto.MetricType_SUMMARY:
					m.Summary = &dto.Summary{SampleCount: uint64(r.IntN(100)), SampleSum: 1, Quantile: []dto.Quantile{{Quantile: 0.5, Value: 2}}}
				default:
					h := &dto.Histogram{SampleSum: r.NormFloat64()}
					m.Histogram = h
					count := uint64(0)
					if f.kind != 1 {
						for i := range 3 {
							count += uint64(r.IntN(5))
							h.Bucket = append(h.Bucket, dto.Bucket{UpperBound: float64(i), CumulativeCount: count, Exemplar: ex()})
						}
					}
					if f.kind == 1 || f.kind == 2 {
						h.Schema, h.ZeroThreshold, h.ZeroCount = f.schema, 0.001, uint64(r.IntN(3))
						all := h.ZeroCount
						last := int64(0)
						for i := range 1 + r.IntN(3) {
							s := dto.BucketSpan{Offset: int32(r.IntN(4)), Length: uint32(r.IntN(3))}
							if i == 0 {
								s.Offset = int32(r.IntN(20) - 10)
							}
							h.PositiveSpan = append(h.PositiveSpan, s)
							for range s.Length {
								v := int64(r.IntN(4))
								h.PositiveDelta = append(h.PositiveDelta, v-last)
								last = v
								all += uint64(v)
							}
						}
						if r.IntN(3) == 0 {
							h.NegativeSpan, h.NegativeDelta = []dto.BucketSpan{{Offset: 1, Length: 2}}, []int64{1, 1}
							all += 3
						}
						count = max(count, all)
						for range r.IntN(3) {
							if e := ex(); e != nil {
								h.Exemplars = append(h.Exemplars, e)
							}
						}
					}
					h.SampleCount = count
					if f.kind == 3 {
						*h = dto.Histogram{SampleSum: 4, SampleCountFloat: 4.5, Schema: f.schema, ZeroThreshold: 0.1, ZeroCountFloat: 1.5, PositiveSpan: []dto.BucketSpan{{Offset: 2, Length: 2}, {Offset: 3, Length: 1}}, PositiveCount: []float64{1, 1.5, 0}}
					}
				}
				out.Metric = append(out.Metric, m)
			}
			page.WriteString(framed(out))
		}
		if r.IntN(20) == 0 {
			seq.pages = append(seq.pages, errorPage)
		} else {
			seq.pages = append(seq.pages, page.String())
		}
		f := fams[r.IntN(len(fams))]
		switch r.IntN(5) {
		case 0:
			if len(f.labels) > 1 {
				f.labels = f.labels[1:]
			}
		case 1:
			f.labels = append(f.labels, []dto.LabelPair{{Name: "id", Value: fmt.Sprint("w", n)}})
		case 2:
			if len(fams) > 1 {
				fams = fams[1:]
			}
		default:
		}
	}
	return seq
}
