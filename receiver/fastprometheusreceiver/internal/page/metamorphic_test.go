// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"

	dto "github.com/prometheus/prometheus/prompb/io/prometheus/client"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A hostileGenerator makes pages whose lines need not fit together: types that change or come late, families in two pieces,
// duplicates, parts of histograms that are missing or make no sense, timestamps, labels that many or that rules remove.
type hostileGenerator struct {
	*rand.Rand

	media string
	helps bool // a help text keeps a type that was said long ago
	lines []hostileLine
	round int // of values
}

type hostileLine struct {
	text string // without the value
	time string
	rest string // behind the value and the time: an exemplar
}

func newHostileGenerator(seed uint64, media string) *hostileGenerator {
	g := &hostileGenerator{Rand: rand.New(rand.NewPCG(seed, 11)), media: media, helps: seed/4%2 == 0}
	for range 3 + g.IntN(25) {
		g.insert()
	}
	return g
}

func one[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func (g *hostileGenerator) family() string {
	return one(g.Rand, "a", "b", "c", "c_total", "h", "h", "s", "s", "i", `"é.x"`)
}

// insert adds lines that belong together, or one that belongs nowhere.
func (g *hostileGenerator) insert() {
	var lines []hostileLine
	add := func(text string) { lines = append(lines, hostileLine{text: text}) }
	switch g.IntN(12) {
	case 0, 1, 2:
		add(g.metadata())
	case 3, 4:
		ls := g.labels()
		h := one(g.Rand, "h", "h", "c")
		bounds := [][]string{{"1", "2", "+Inf"}, {"0.5", "1.0"}, {"1", "+Inf", "1.0"}, {"2", "1", "x", "NaN"}}[g.IntN(4)]
		for _, bound := range bounds {
			add(series(h+"_bucket", append(slices.Clone(ls), `le="`+bound+`"`)))
		}
		for _, suffix := range []string{"_sum", "_count", "_created"} {
			if g.IntN(5) > 0 {
				add(series(h+suffix, ls))
			}
		}
	case 5, 6:
		ls := g.labels()
		for _, q := range []string{"0.5", "0.9"} {
			add(series("s", append(slices.Clone(ls), `quantile="`+q+`"`)))
		}
		for _, suffix := range []string{"_sum", "_count"} {
			if g.IntN(5) > 0 {
				add(series("s"+suffix, ls))
			}
		}
	default:
		add(series(g.family()+one(g.Rand, "", "", "", "_total", "_created", "_count", "_sum", "_info", "_bucket"), g.labels()))
		if g.IntN(25) == 0 {
			add(series("target_info", g.labels()))
		}
	}
	at := g.IntN(len(g.lines) + 1)
	for i := range lines {
		l := &lines[i]
		if strings.HasPrefix(l.text, "#") {
			continue
		}
		if g.IntN(12) == 0 {
			ms := one(g.Rand, 1_600_000_000_500, 1_600_000_001_500, 4_000_000_000_000)
			if l.time = fmt.Sprintf(" %d", ms); g.media == typeOM {
				l.time = fmt.Sprintf(" %d.%03d", ms/1000, ms%1000)
			}
		}
		if g.media == typeOM && g.IntN(8) == 0 {
			l.rest = fmt.Sprintf(` # {trace_id="%032x",k="v"} 1.5`, g.IntN(9))
		}
	}
	g.lines = slices.Insert(g.lines, at, lines...)
}

func (g *hostileGenerator) metadata() string {
	f := g.family()
	if g.helps && g.IntN(4) == 0 {
		return fmt.Sprintf("# HELP %s Help %d.", f, g.IntN(2))
	}
	types := []string{"counter", "gauge", "histogram", "summary", "untyped"}
	if g.media == typeOM {
		types = []string{"counter", "gauge", "histogram", "summary", "unknown", "info", "stateset", "gaugehistogram"}
	}
	switch f { // mostly what its name says
	case "h":
		types = append(types, "histogram", "histogram", "histogram", "histogram", "histogram", "histogram")
	case "s":
		types = append(types, "summary", "summary", "summary", "summary", "summary", "summary")
	default:
	}
	return fmt.Sprintf("# TYPE %s %s", f, one(g.Rand, types...))
}

func (g *hostileGenerator) labels() (ls []string) {
	for _, n := range []string{"id", "x", "zone", "otel_scope_name", "otel_scope_k", "job", "instance", "empty", "le", `"é.l"`} {
		switch {
		case n == "id" || n == "x" || n == "zone":
			if g.IntN(3) == 0 {
				ls = append(ls, fmt.Sprintf("%s=\"v%d\"", n, g.IntN(3)))
			}
		case g.IntN(16) > 0:
		case n == "empty":
			ls = append(ls, `empty=""`)
		case n == "le":
			ls = append(ls, `le="1"`)
		default:
			ls = append(ls, fmt.Sprintf(`%s="v%d\n"`, n, g.IntN(2)))
		}
	}
	switch g.IntN(60) {
	case 0: // more than are treated one by one
		for i := range 128 {
			ls = append(ls, fmt.Sprintf("l%d=\"v%d\"", i, i%7))
		}
	case 1:
		g.Shuffle(len(ls), func(i, j int) { ls[i], ls[j] = ls[j], ls[i] })
	default:
	}
	return ls
}

func series(name string, labels []string) string {
	if strings.HasPrefix(name, `"`) {
		base, suffix, _ := strings.Cut(name[1:], `"`)
		return "{" + strings.Join(append([]string{`"` + base + suffix + `"`}, labels...), ",") + "}"
	}
	if len(labels) == 0 {
		return name
	}
	return name + "{" + strings.Join(labels, ",") + "}"
}

// change makes the next page differ.
func (g *hostileGenerator) change() {
	for range 1 + g.IntN(3) {
		n := len(g.lines)
		if n == 0 {
			g.insert()
			continue
		}
		i, j := g.IntN(n), g.IntN(n)
		switch g.IntN(10) {
		case 0, 1:
			g.insert()
		case 2, 3:
			g.lines = slices.Delete(g.lines, i, min(n, i+1+g.IntN(4)))
		case 4:
			g.lines = slices.Insert(g.lines, i, g.lines[j])
		case 5:
			g.lines[i], g.lines[j] = g.lines[j], g.lines[i]
		case 6:
			if strings.HasPrefix(g.lines[i].text, "#") {
				g.lines[i].text = g.metadata()
			} else {
				g.lines[i].time = ""
			}
		case 7:
			k := i + g.IntN(n-i)
			moved := slices.Clone(g.lines[i:k])
			g.lines = slices.Insert(slices.Delete(g.lines, i, k), g.IntN(n-len(moved)+1), moved...)
		default:
		}
	}
}

// page renders the lines with values that are others each time.
func (g *hostileGenerator) page() string {
	g.round++
	var b strings.Builder
	for i, l := range g.lines {
		b.WriteString(l.text)
		if !strings.HasPrefix(l.text, "#") {
			fmt.Fprintf(&b, " %s%s%s", g.value(i, l.text), l.time, l.rest)
		}
		b.WriteByte('\n')
	}
	switch g.IntN(20) {
	case 0:
		b.WriteString("broken{\n")
	case 1:
		return errorPage
	case 2:
		return ""
	default:
	}
	if g.media == typeOM {
		b.WriteString("# EOF\n")
	}
	return b.String()
}

func (g *hostileGenerator) value(i int, text string) string {
	_, le, isBucket := strings.Cut(text, `le="`)
	switch {
	case g.IntN(25) == 0:
		return one(g.Rand, "NaN", "+Inf", "-1", "0")
	case isBucket:
		le, _, _ = strings.Cut(le, `"`)
		switch le {
		case "+Inf":
			return fmt.Sprint(100 + g.round)
		default:
			return fmt.Sprint(10 * len(le))
		}
	case strings.Contains(text, "_count"):
		return fmt.Sprint(100 + g.round)
	case strings.Contains(text, "_created"):
		return fmt.Sprint(1_500_000_000 + g.round)
	default:
		return fmt.Sprint(1000*g.round + i)
	}
}

// A protoGenerator makes pages in protobuf: native histograms and classic ones, NaNs of any payload, and families that come twice or
// change their type.
type protoGenerator struct {
	*rand.Rand

	families []*dto.MetricFamily
}

func newProtoGenerator(seed uint64) *protoGenerator {
	g := &protoGenerator{Rand: rand.New(rand.NewPCG(seed, 12))}
	for range 1 + g.IntN(6) {
		g.insert()
	}
	return g
}

func (g *protoGenerator) insert() {
	f := &dto.MetricFamily{Name: one(g.Rand, "a", "h", "h", "n", "c_total", "s")}
	f.Type = one(g.Rand, dto.MetricType_GAUGE, dto.MetricType_COUNTER, dto.MetricType_SUMMARY, dto.MetricType_HISTOGRAM, dto.MetricType_HISTOGRAM, dto.MetricType_UNTYPED)
	if g.IntN(3) == 0 {
		f.Help = "Help."
	}
	for range 1 + g.IntN(4) {
		var m dto.Metric
		for _, n := range []string{"id", "x", "zone"} {
			if g.IntN(2) == 0 {
				m.Label = append(m.Label, dto.LabelPair{Name: n, Value: fmt.Sprint("v", g.IntN(3))})
			}
		}
		if g.IntN(12) == 0 {
			m.TimestampMs = 1_600_000_000_500
		}
		f.Metric = append(f.Metric, m)
	}
	g.families = slices.Insert(g.families, g.IntN(len(g.families)+1), f)
}

func (g *protoGenerator) number() float64 {
	if g.IntN(8) == 0 {
		return math.Float64frombits(one(g.Rand, notANumber...))
	}
	return float64(g.IntN(1000))
}

func (g *protoGenerator) change() {
	n := len(g.families)
	i := g.IntN(n)
	f := g.families[i]
	switch g.IntN(7) {
	case 0, 1:
		g.insert()
	case 2:
		if n > 1 {
			g.families = slices.Delete(g.families, i, i+1)
		}
	case 3:
		g.families = slices.Insert(g.families, i, g.families[g.IntN(n)])
	case 4:
		if m := len(f.Metric); m > 1 {
			g.families[i] = &dto.MetricFamily{Name: f.Name, Type: f.Type, Help: f.Help, Metric: slices.Delete(slices.Clone(f.Metric), m-1, m)}
		}
	case 5:
		g.Shuffle(n, func(i, j int) { g.families[i], g.families[j] = g.families[j], g.families[i] })
	default:
	}
}

func (g *protoGenerator) page() string {
	switch g.IntN(20) {
	case 0:
		return errorPage
	case 1:
		return ""
	default:
	}
	var b strings.Builder
	for _, f := range g.families {
		out := *f
		out.Metric = slices.Clone(f.Metric)
		for i := range out.Metric {
			g.fill(f.Type, &out.Metric[i])
		}
		b.WriteString(framed(&out))
	}
	if g.IntN(20) == 0 {
		b.WriteString("\x7f\x0a\x01a")
	}
	return b.String()
}

func (g *protoGenerator) fill(typ dto.MetricType, m *dto.Metric) {
	switch typ {
	case dto.MetricType_COUNTER:
		m.Counter = &dto.Counter{Value: g.number()}
	case dto.MetricType_GAUGE:
		m.Gauge = &dto.Gauge{Value: g.number()}
	case dto.MetricType_SUMMARY:
		m.Summary = &dto.Summary{SampleCount: uint64(g.IntN(100)), SampleSum: g.number()}
		for i := range g.IntN(3) {
			m.Summary.Quantile = append(m.Summary.Quantile, dto.Quantile{Quantile: float64(i), Value: g.number()})
		}
	case dto.MetricType_HISTOGRAM:
		h := &dto.Histogram{SampleCount: uint64(g.IntN(100)), SampleSum: g.number()}
		for i := range g.IntN(3) {
			h.Bucket = append(h.Bucket, dto.Bucket{UpperBound: float64(i), CumulativeCount: uint64(i)})
		}
		switch g.IntN(4) {
		case 0, 1:
			h.Schema, h.ZeroThreshold, h.PositiveSpan, h.PositiveDelta = 1, 1, []dto.BucketSpan{{Offset: int32(g.IntN(3)), Length: 2}}, []int64{1, int64(g.IntN(3))}
		case 2:
			h.SampleCount, h.SampleCountFloat = 0, g.number()
			h.ZeroThreshold, h.PositiveSpan, h.PositiveCount = 1, []dto.BucketSpan{{Length: 1}}, []float64{g.number()}
		default:
		}
		m.Histogram = h
	default:
		m.Untyped = &dto.Untyped{Value: g.number()}
	}
}

var hostileJobs = []string{
	"", "  honor_labels: true\n", "  honor_timestamps: false\n", "  track_timestamps_staleness: true\n", "  sample_limit: 25\n",
	"  metric_relabel_configs:\n  - {source_labels: [zone], regex: v1, action: drop}\n  - {regex: x, action: labeldrop}\n",
	"  metric_relabel_configs:\n  - {source_labels: [rack], regex: r0, target_label: job, replacement: other}\n  - {regex: id, action: labeldrop}\n",
	"  metric_relabel_configs:\n  - {source_labels: [__name__], regex: 'a(.*)', target_label: __name__, replacement: 'b$1'}\n",
	"  metric_relabel_configs:\n  - {regex: 'x|l.*', replacement: 'z$0', action: labelmap}\n  - {regex: 'l.*', action: labeldrop}\n",
	"  always_scrape_classic_histograms: true\n", "  convert_classic_histograms_to_nhcb: true\n",
}

// A witness is a target that is shown everything that another is, but alone in its job, with no part of a page known beforehand.
type witness struct {
	target *Target
	last   []string // pages
}

// memory is how many pages back a page can matter: that far goes what was said of metrics, when not many fail.
const memory = plan.MetadataScrapes + 8

func (w *witness) show(at time.Time, media, page string) Result {
	w.last = append(w.last, page)
	w.last = w.last[max(0, len(w.last)-memory):]
	t := w.target
	t.Settled = false // so that all is decided anew
	if page == errorPage {
		return t.Fail(at, Report{Err: errStatus})
	}
	s, err := t.Begin(at, media)
	if err != nil {
		return t.Fail(at, Report{Err: err})
	}
	s.expected, s.search = nil, plan.Search{} // and each line is read
	_ = s.Feed([]byte(page))
	return s.End(Report{BodyBytes: int64(len(page))})
}

var errStatus = fmt.Errorf("server returned HTTP status %d", 404)

// requireSamePoints shows only what is different: pages have many points.
func requireSamePoints(t *testing.T, want, got []string, all string) {
	t.Helper()
	if slices.Equal(want, got) {
		return
	}
	without := func(of, these []string) string {
		return strings.Join(slices.DeleteFunc(slices.Clone(of), func(s string) bool { return slices.Contains(these, s) }), "\n")
	}
	require.Fail(t, "not the same", "wanted:\n%s\n\ngot:\n%s\n\n%d points, not %d, %s", without(want, got), without(got, want), len(got), len(want), all)
}

func requireSame(t *testing.T, want, got Result, all string) {
	t.Helper()
	require.Equal(t, want.Err == nil, got.Err == nil, "%v, %v, %s", want.Err, got.Err, all)
	requireSamePoints(t, canon(want.Metrics), canon(merged(t, got)), all)
	require.Equal(t, [...]int{want.Samples, want.PostRelabel, want.Added, want.Late}, [...]int{got.Samples, got.PostRelabel, got.Added, got.Late}, all)
}

// checkHostileSequence shows pages to targets of a job which share what they may, in metrics that are used again, in chunks and in parts,
// some pages to some. Each time the metrics are those of a witness, and of a target that has seen nothing but the last few pages.
func checkHostileSequence(t *testing.T, seed uint64, pages int) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 13))
	var g interface {
		page() string
		change()
	}
	media := []string{typeText, typeOM, typeText, typeProto}[seed%4]
	if media == typeProto {
		g = newProtoGenerator(seed)
	} else {
		g = newHostileGenerator(seed, media)
	}
	scrape := scrapeConfig(t, "  scrape_native_histograms: true\n"+hostileJobs[int(seed/4)%len(hostileJobs)])
	shared := newTestJob(t, Config{Scrape: scrape, Reuse: seed%3 > 0})
	if seed%5 < 2 {
		setParts(shared, 1+int(seed%7), 1+int(seed%17))
		shared.rules.MostWhole = int(seed % 13)
	}
	if seed%7 == 0 {
		shared.rules.MostShapes = int(seed % 3)
	}
	newTarget := func(j *Job, i int) *Target {
		return testTarget(j, i, "rack", fmt.Sprint("r", i%2), "zone", fmt.Sprint("z", i))
	}
	var targets []*Target
	var witnesses []*witness
	for i := range 3 {
		targets = append(targets, newTarget(shared, i))
		witnesses = append(witnesses, &witness{target: newTarget(newTestJob(t, Config{Scrape: scrape}), i)})
	}
	for n := range pages {
		page := g.page()
		at := start.Add(time.Duration(n) * time.Second)
		for i, target := range targets {
			if r.IntN(4) == 0 {
				continue // not seen by this one
			}
			about := fmt.Sprintf("seed %d page %d target %d\n%s", seed, n, i, strings.ToValidUTF8(page, "."))
			want := witnesses[i].show(at, media, page)
			got := show(target, at, media, page, 1+r.IntN(300))
			requireSame(t, want, got, about)
			if r.IntN(4) > 0 {
				got.Release()
			}
			if good := slices.ContainsFunc(witnesses[i].last[:len(witnesses[i].last)-1], isGoodPage); good && seed/4%2 > 0 && r.IntN(6) == 0 {
				fresh := newTarget(newTestJob(t, Config{Scrape: scrape}), i)
				var last Result
				for _, page := range witnesses[i].last {
					last = show(fresh, at, media, page, 1<<20)
				}
				if len(fresh.Failed) == 0 || len(witnesses[i].last) < memory { // what failed before the last few pages counts, too
					requireSame(t, want, last, "after the last few pages: "+about)
				}
			}
			if r.IntN(40) == 0 {
				target.Retire(at)
				targets[i] = newTarget(shared, i)
				witnesses[i].target = newTarget(newTestJob(t, Config{Scrape: scrape}), i)
				witnesses[i].last = nil
			}
		}
		if r.IntN(3) > 0 {
			g.change()
		}
	}
}

func isGoodPage(page string) bool {
	return page != errorPage && page != "" && !strings.Contains(page, "broken{") && !strings.HasSuffix(page, "\x7f\x0a\x01a")
}

func TestHostileSequencesMeanWhatTheySay(t *testing.T) {
	for seed := range uint64(60) {
		checkHostileSequence(t, seed, 25)
	}
}

func FuzzHostileSequences(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(1000+seed, uint8(30))
	}
	f.Fuzz(func(t *testing.T, seed uint64, pages uint8) { checkHostileSequence(t, seed, int(pages)) })
}

// A neutralPage is a page of which each format can say all.
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

// next is the page a scrape later: other values, and some metrics more or less.
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

// reordered has families, the metrics in each and labels in another order.
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

// withoutAdded leaves out how many series are new: a series that is written otherwise is a new one, for Prometheus too.
func withoutAdded(points []string) []string {
	return slices.DeleteFunc(points, func(s string) bool { return strings.Contains(s, "| scrape_series_added ") })
}

// A page means what it means in whichever format it comes, and in whatever order, on each scrape anew.
func TestFormatsAndOrderMeanNothing(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 14))
		p := newNeutralPage(r)
		scrape := scrapeConfig(t, []string{"", "  honor_labels: true\n", "  metric_relabel_configs: [{regex: zone, action: labeldrop}]\n"}[seed%3])
		newTarget := func() *Target { return testTarget(newTestJob(t, Config{Scrape: scrape, Reuse: true}), 1) }
		formats := []string{typeText, typeOM, typeProto}
		var own []*Target // each in its format
		for range formats {
			own = append(own, newTarget())
		}
		mixed, plain, shuffled := newTarget(), newTarget(), newTarget()
		for n := range 12 {
			page := p.next(r)
			at := start.Add(time.Duration(n) * time.Second)
			about := fmt.Sprintf("seed %d page %d\n%s", seed, n, page.in(typeText))
			res := show(plain, at, typeText, page.in(typeText), 1<<20)
			require.NoError(t, res.Err, about)
			want := canon(res.Metrics)
			res.Release()
			for i, media := range formats {
				r := show(own[i], at, media, page.in(media), 1<<20)
				requireSamePoints(t, want, canon(r.Metrics), media+" "+about)
				r.Release()
			}
			r1 := show(shuffled, at, typeText, page.reordered(r).in(typeText), 1<<20)
			requireSamePoints(t, want, canon(r1.Metrics), "in another order: "+about)
			r1.Release()
			media := one(r, formats...)
			r2 := show(mixed, at, media, page.in(media), 1<<20)
			requireSamePoints(t, withoutEnds(withoutAdded(want)), withoutEnds(withoutAdded(canon(r2.Metrics))), "now in "+media+": "+about)
			r2.Release()
			if r.IntN(3) > 0 {
				p = page
			}
		}
	}
}

// withoutEnds leaves out points without a value.
func withoutEnds(points []string) []string {
	return slices.DeleteFunc(slices.Clone(points), func(s string) bool { return strings.Contains(s, " flags 1:") })
}

func isSummary(s string) bool { return strings.Contains(s, " Summary {") }

func isEndedSummary(s string) bool { return isSummary(s) && strings.Contains(s, " flags 1:") }

// Scrapes that fail between two pages change nothing about the second but that what is gone has ended already.
func TestFailuresInBetweenChangeNothing(t *testing.T) {
	for seed := range uint64(150) {
		media := []string{typeText, typeOM}[seed%2]
		g := newHostileGenerator(seed, media)
		scrape := scrapeConfig(t, hostileJobs[int(seed/2)%len(hostileJobs)])
		page := func() string {
			for {
				if p := g.page(); isGoodPage(p) {
					return p
				}
			}
		}
		first := page()
		g.change()
		second := page()
		newTarget := func() *Target { return testTarget(newTestJob(t, Config{Scrape: scrape, Reuse: true}), 1) }
		plain := newTarget()
		show(plain, start, media, first, 1<<20).Release()
		want := show(plain, start, media, second, 1<<20)
		for name, failures := range map[string][]string{
			"no answer": {errorPage}, "nothing": {""}, "no answers": {errorPage, errorPage, errorPage}, "malformed": {"broken{\n"},
			"cut": {first[:g.IntN(len(first)+1)], errorPage}, "cut, then other": {second[:g.IntN(len(second)+1)] + "\n}\n"},
		} {
			target := newTarget()
			show(target, start, media, first, 1<<20).Release()
			for _, f := range failures {
				if name == "cut" {
					s, err := target.Begin(start, media)
					require.NoError(t, err)
					_ = s.Feed([]byte(f))
					s.End(Report{Err: errStatus}).Release()
					continue
				}
				show(target, start, media, f, 1<<20).Release()
			}
			got := show(target, start, media, second, 1<<20)
			require.Equal(t, want.Err == nil, got.Err == nil)
			wanted, has := canon(want.Metrics), canon(got.Metrics)
			if slices.ContainsFunc(wanted, isEndedSummary) { // for its sum is gone: it has ended once, and goes on without
				wanted, has = slices.DeleteFunc(wanted, isSummary), slices.DeleteFunc(has, isSummary)
			}
			requireSamePoints(t, withoutEnds(withoutAdded(wanted)), withoutEnds(withoutAdded(has)), fmt.Sprintf("seed %d, %s\n%s\n%s", seed, name, first, second))
			if name != "malformed" && !strings.HasPrefix(name, "cut, ") {
				require.Equal(t, want.Added, got.Added)
			}
			got.Release()
		}
	}
}

// Targets that scrape at the same time, and share what they may, are none the wiser.
func TestTargetsAtTheSameTime(t *testing.T) {
	for seed := range uint64(6) {
		media := []string{typeText, typeOM, typeProto}[seed%3]
		scrape := scrapeConfig(t, "  scrape_native_histograms: true\n"+hostileJobs[int(seed)%len(hostileJobs)])
		shared := newTestJob(t, Config{Scrape: scrape, Reuse: true})
		var running sync.WaitGroup
		for i := range 4 {
			witness := &witness{target: testTarget(newTestJob(t, Config{Scrape: scrape}), i)}
			target := testTarget(shared, i)
			running.Go(func() {
				var g interface {
					page() string
					change()
				} = newHostileGenerator(seed, media) // the same for all: so they meet
				if media == typeProto {
					g = newProtoGenerator(seed)
				}
				for n := range 25 {
					page := g.page()
					at := start.Add(time.Duration(n) * time.Second)
					want, got := witness.show(at, media, page), show(target, at, media, page, 100)
					assert.Equal(t, canon(want.Metrics), canon(got.Metrics), "seed %d page %d", seed, n)
					got.Release()
					g.change()
				}
				target.Retire(start)
			})
		}
		running.Wait()
		require.Equal(t, Stats{}, shared.Stats())
	}
}
