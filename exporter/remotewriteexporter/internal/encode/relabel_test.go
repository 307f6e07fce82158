// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	prommodel "github.com/prometheus/common/model"
	"github.com/prometheus/otlptranslator"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/internal/racetest"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/loss"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/rules"
)

type labelName = prommodel.LabelName

// rule returns a rule like one in a file: missing fields have their defaults.
func rule(action relabel.Action, change func(*relabel.Config)) relabel.Config {
	c := relabel.DefaultRelabelConfig
	c.Action = action
	if change != nil {
		change(&c)
	}
	return c
}

// rules chooses rules about the labels of generated metrics.
func (t *tape) rules(r *rules.Rules) (list []relabel.Config) {
	name := func() string {
		return t.pick("__name__", "job", "instance", "cluster", "point", "http_method", "le", "quantile", "region", "host_name",
			"otel_scope_name", "k_k", "a__b", "new", "process_pid", "job", "instance", "flag")
	}
	regex := func() relabel.Regexp {
		return relabel.MustNewRegexp(t.pick("(.*)", ".*", "", "(.+)_(.+)", "job|instance", "[a-m].*", ".*[02468]", "(h)(.*)", "__name__|job|instance|le",
			"x.*|http.*", "(.*)_(sum|count|bucket)", "api|job", "target_info", "instance-(.*)|(.)", "GET|PUT", "__name__"))
	}
	for len(list) < 4 {
		c := rule([]relabel.Action{
			relabel.Replace, relabel.Replace, relabel.Keep, relabel.Drop, relabel.KeepEqual, relabel.DropEqual, relabel.HashMod,
			relabel.LabelMap, relabel.LabelDrop, relabel.LabelDrop, relabel.LabelKeep, relabel.Lowercase, relabel.Uppercase,
		}[t.choose(13)], nil)
		if c.Action != relabel.LabelDrop && c.Action != relabel.LabelKeep {
			for range t.choose(3) {
				c.SourceLabels = append(c.SourceLabels, labelName(name()))
			}
		}
		switch c.Action {
		case relabel.Replace:
			c.Regex, c.TargetLabel = regex(), t.pick(name(), name(), "$1", "new_$1", "${2}")
			c.Replacement = t.pick("$1", "fixed", "", "$2-$1", "$0", "ünï")
			c.Separator = t.pick(";", "", "_")
		case relabel.LabelMap:
			c.Regex, c.Replacement = regex(), t.pick("$1", "new_$1", "cluster", "${2}", "instance")
		case relabel.HashMod:
			c.TargetLabel, c.Modulus = name(), 1+uint64(t.choose(4))
		case relabel.KeepEqual, relabel.DropEqual, relabel.Lowercase, relabel.Uppercase:
			c.TargetLabel = name()
		default:
			c.Regex = regex()
		}
		check := c
		if check.Validate(r.Scheme) == nil {
			c.NameValidationScheme = r.Scheme
			list = append(list, c)
		}
		if t.choose(3) == 2 || len(*t) == 0 {
			break
		}
	}
	return list
}

// ruledSeries is the result of rules for series that were encoded without any: for each instant the values given for
// it, and for each label set the metadata and the exemplars.
type ruledSeries struct {
	values    map[instant][]string
	meta      map[string][]string
	exemplars map[string][]string
	samples   int // in the encoded result
}

func ruledOf(list []promwrite.Series, r *rules.Rules) ruledSeries {
	out := ruledSeries{map[instant][]string{}, map[string][]string{}, map[string][]string{}, 0}
	for i := range list {
		s := &list[i]
		out.samples += len(s.Samples) + len(s.Histograms)
		var all []labels.Label
		for _, l := range s.Labels {
			all = append(all, labels.Label{Name: l.Name, Value: l.Value})
		}
		ls := labels.New(all...)
		if r != nil {
			b := labels.NewBuilder(ls)
			keep := relabel.ProcessBuilder(b, r.Configs...)
			if after := b.Labels(); !keep || !labels.Equal(ls, after) && !r.Valid(after) {
				continue
			}
			ls = b.Labels()
		}
		key := ls.String()
		out.meta[key] = append(out.meta[key], fmt.Sprintf("%d %q %q", s.Type, s.Help, s.Unit))
		for _, p := range s.Samples {
			at := instant{key, p.Timestamp}
			out.values[at] = append(out.values[at], fmt.Sprintf("%x from %d", math.Float64bits(p.Value), p.StartTimestamp))
		}
		for j := range s.Histograms {
			at := instant{key, s.Histograms[j].Timestamp}
			out.values[at] = append(out.values[at], canonicalHistogram(s.Histograms[j]))
		}
		for _, x := range s.Exemplars {
			out.exemplars[key] = append(out.exemplars[key], fmt.Sprintf("%v %v @%d", x.Labels, x.Value, x.Timestamp))
		}
	}
	return out
}

// checkRules encodes metrics with rules, and compares with an encoder without any, whose series Prometheus' code
// relabels one by one. Series that become one are sent once per time, with one of their values; the others are counted.
func checkRules(t *testing.T, data []byte) {
	in := tape(data)
	f := formats[in.choose(4)]
	options, samples := in.choose(256), 1+in.choose(60)
	configure := func(c *Config) {
		c.MaxSamples, c.Shards = samples, 1+options&1
		c.Names.ExternalLabels = map[string]string{"cluster": "here", "region": "north"}
		c.Cache.TargetInfo, c.TargetInfoInterval = options&2 > 0, 0
		c.Cache.ScopeLabels = cache.ScopeLabels(options >> 2 & 1)
		c.Cache.CustomBuckets, c.Cache.KeepClassic = options&8 > 0 && f.Version == promwrite.V2, options&16 > 0
		c.Names.TypeAndUnitLabels = options&32 > 0
		if options&64 > 0 {
			c.Cache.PromoteResourceAttributes = []string{"host*", "process*"}
		}
		if options&128 > 0 && f.Version == promwrite.V2 {
			c.Names.Strategy = otlptranslator.NoTranslation
		}
	}
	plain, without := newEncoder(t, configure)
	r, err := rules.New([]relabel.Config{rule(relabel.Keep, nil)}, plain.cfg.Names.Strategy.ShouldEscape())
	require.NoError(t, err)
	list := in.rules(r)
	ruled, with := newEncoder(t, func(c *Config) {
		configure(c)
		c.Rules = list
	})
	r, err = rules.New(list, plain.cfg.Names.Strategy.ShouldEscape())
	require.NoError(t, err)

	g := generator{r: rand.New(rand.NewPCG(uint64(in.choose(256)), 3)), version: f.Version, custom: plain.cfg.Cache.CustomBuckets}
	work := g.workload()
	collisions := in.collisions()
	if in.choose(8) == 7 {
		ruled.cache.HashMask = 0
	}
	metas := map[string][]string{}
	for round := range 4 {
		md := work.metrics(&g, round)
		if options&64 == 0 { // promoted attributes would distinguish them for only one encoder
			shifted := pmetric.NewMetrics()
			collisions.CopyTo(shifted)
			shifted.ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics())
		}
		require.NoError(t, plain.Add(md, ""))
		require.NoError(t, ruled.Add(md, ""))
		all, _ := decode(t, flushAll(plain, f))
		blocks := flushAll(ruled, f)
		sent, _ := decode(t, blocks)
		require.Equal(t, canonical(sent), canonical(decodePrometheus(t, blocks)))
		for i := range sent {
			if plain.cfg.Names.Strategy.ShouldEscape() {
				checkSeries(t, sent[i], f.Version)
			}
		}
		want, got := ruledOf(all, r), ruledOf(sent, nil)
		for at, values := range got.values {
			require.Len(t, values, 1, "%v twice", at)
			require.Contains(t, want.values[at], values[0], "%v", at)
		}
		require.Len(t, got.values, len(want.values))
		for key, list := range got.meta {
			if options&64 == 0 {
				break // for metrics that collide before any rule, the first one's metadata is used
			}
			metas[key] = append(metas[key], want.meta[key]...) // a series keeps its first metadata
			require.Subset(t, metas[key], list, key)
		}
		for key, list := range want.exemplars {
			require.ElementsMatch(t, list, got.exemplars[key], key)
		}
		require.Equal(t, want.samples+without.total(), got.samples+with.total(), "%v %v", without.counts, with.counts)
		*with, *without = drops{}, drops{}
		switch round {
		case 1:
			for range 8 {
				plain.Expire()
				ruled.Expire()
			}
			require.Equal(t, plain.Stats().Symbols, ruled.Stats().Symbols, "nothing stays")
		case 2:
			work = g.mutate(work)
			ruled.Expire()
		}
	}
}

// TestSameAsPrometheusRelabels runs checkRules for a hundred sets of rules; FuzzRules looks for more.
func TestSameAsPrometheusRelabels(t *testing.T) {
	racetest.Sequential(t)
	for seed := range uint64(100) {
		data := randomTape(rand.New(rand.NewPCG(seed, 11)))
		t.Run(fmt.Sprint(seed), func(t *testing.T) { checkRules(t, data) })
	}
}

func FuzzRules(f *testing.F) {
	racetest.Sequential(f)
	r := rand.New(rand.NewPCG(2, 2))
	for range 16 {
		f.Add(randomTape(r))
	}
	f.Fuzz(checkRules)
}

// targets returns metrics of two targets, which differ in their instance.
func targets() pmetric.Metrics {
	md := pmetric.NewMetrics()
	for i := range 2 {
		rm := md.ResourceMetrics().AppendEmpty()
		rm.Resource().Attributes().PutStr("service.name", "api")
		rm.Resource().Attributes().PutStr("service.instance.id", fmt.Sprintf("host-%d:80", i))
		rm.Resource().Attributes().PutStr("host.name", fmt.Sprintf("host-%d", i))
		m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		m.SetName("requests")
		m.SetDescription("Served.")
		m.SetEmptySum().SetIsMonotonic(true)
		m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		for _, path := range []string{"/a", "/b"} {
			dp := m.Sum().DataPoints().AppendEmpty()
			dp.SetTimestamp(pcommon.NewTimestampFromTime(epoch))
			dp.SetDoubleValue(float64(10*i) + float64(path[1]-'a'))
			dp.Attributes().PutStr("path", path)
		}
	}
	return md
}

func TestRules(t *testing.T) {
	f := func(name string, rules []relabel.Config, want []string, dropped map[loss.Reason]int) {
		t.Helper()
		for _, format := range formats {
			series, d := sent(t, format, func(c *Config) {
				c.Rules, c.Cache.TargetInfo = rules, true
			}, targets())
			var got []string
			for _, s := range series {
				got = append(got, fmt.Sprintf("%s%v", labelsOf(s), s.Samples[0].Value))
			}
			assert.ElementsMatch(t, want, got, name)
			if dropped == nil {
				dropped = map[loss.Reason]int{}
			}
			for reason, n := range d.counts {
				assert.Equal(t, dropped[reason], n, "%s: %s", name, reason)
			}
			for reason, n := range dropped {
				assert.Equal(t, n, d.counts[reason], "%s: %s", name, reason)
			}
		}
	}
	info := func(i int) string {
		return fmt.Sprintf(`__name__="target_info",host_name="host-%d",instance="host-%d:80",job="api",1`, i, i)
	}
	line := func(format string, value int, args ...any) string {
		return fmt.Sprintf(format, args...) + fmt.Sprint(value)
	}
	source := func(names ...string) func(*relabel.Config) {
		return func(c *relabel.Config) {
			for _, name := range names {
				c.SourceLabels = append(c.SourceLabels, labelName(name))
			}
		}
	}
	match := func(regex string, names ...string) func(*relabel.Config) {
		return func(c *relabel.Config) {
			source(names...)(c)
			c.Regex = relabel.MustNewRegexp(regex)
		}
	}
	onlyInfo := rule(relabel.Drop, match("target_info", "__name__"))

	f("everything is dropped", []relabel.Config{rule(relabel.Drop, nil)}, nil, map[loss.Reason]int{loss.Relabelled: 6})
	f("the name is dropped", []relabel.Config{rule(relabel.LabelDrop, match("__name__"))}, nil, map[loss.Reason]int{loss.Rules: 6})
	f("what has no name left is dropped", []relabel.Config{rule(relabel.LabelKeep, match("job|path"))}, nil, map[loss.Reason]int{loss.Rules: 6})
	f("by name", []relabel.Config{rule(relabel.Keep, match("target_.*", "__name__"))}, []string{info(0), info(1)},
		map[loss.Reason]int{loss.Relabelled: 4})
	f("by a label of the point", []relabel.Config{onlyInfo, rule(relabel.Drop, match("/a", "path"))}, []string{
		line(`__name__="requests_total",instance="host-0:80",job="api",path="/b",`, 1),
		line(`__name__="requests_total",instance="host-1:80",job="api",path="/b",`, 11),
	}, map[loss.Reason]int{loss.Relabelled: 4})
	f("by a label of the resource", []relabel.Config{rule(relabel.Keep, match("host-1.*", "instance"))}, []string{
		line(`__name__="requests_total",instance="host-1:80",job="api",path="/a",`, 10),
		line(`__name__="requests_total",instance="host-1:80",job="api",path="/b",`, 11), info(1),
	}, map[loss.Reason]int{loss.Relabelled: 3})
	f("an instance is changed", []relabel.Config{onlyInfo, rule(relabel.Replace, func(c *relabel.Config) {
		match("(.*):.*;/(.)", "instance", "path")(c)
		c.TargetLabel, c.Replacement = "instance", "$1-$2"
	})}, []string{
		line(`__name__="requests_total",instance="host-0-a",job="api",path="/a",`, 0),
		line(`__name__="requests_total",instance="host-0-b",job="api",path="/b",`, 1),
		line(`__name__="requests_total",instance="host-1-a",job="api",path="/a",`, 10),
		line(`__name__="requests_total",instance="host-1-b",job="api",path="/b",`, 11),
	}, map[loss.Reason]int{loss.Relabelled: 2})
	// Of two series that become one, the first value of a time is sent: never both, because receivers refuse such
	// requests.
	f("a label that told series apart", []relabel.Config{onlyInfo, rule(relabel.LabelDrop, match("path"))}, []string{
		line(`__name__="requests_total",instance="host-0:80",job="api",`, 0),
		line(`__name__="requests_total",instance="host-1:80",job="api",`, 10),
	}, map[loss.Reason]int{loss.Relabelled: 2, loss.Duplicate: 2})
	f("a label that told targets apart", []relabel.Config{onlyInfo, rule(relabel.LabelDrop, match("instance"))}, []string{
		line(`__name__="requests_total",job="api",path="/a",`, 0),
		line(`__name__="requests_total",job="api",path="/b",`, 1),
	}, map[loss.Reason]int{loss.Relabelled: 2, loss.Duplicate: 2})
	f("a value emptied goes", []relabel.Config{onlyInfo, rule(relabel.Replace, func(c *relabel.Config) {
		c.TargetLabel, c.Replacement = "path", ""
	})}, []string{
		line(`__name__="requests_total",instance="host-0:80",job="api",`, 0),
		line(`__name__="requests_total",instance="host-1:80",job="api",`, 10),
	}, map[loss.Reason]int{loss.Relabelled: 2, loss.Duplicate: 2})
	f("a part of the targets", []relabel.Config{onlyInfo, rule(relabel.HashMod, func(c *relabel.Config) {
		source("instance")(c)
		c.TargetLabel, c.Modulus = "__tmp", 1
	}), rule(relabel.Keep, match("0", "__tmp")), rule(relabel.LabelDrop, match("__tmp|path"))}, []string{
		line(`__name__="requests_total",instance="host-0:80",job="api",`, 0),
		line(`__name__="requests_total",instance="host-1:80",job="api",`, 10),
	}, map[loss.Reason]int{loss.Relabelled: 2, loss.Duplicate: 2})
	f("labels onto others that are there", []relabel.Config{rule(relabel.Keep, match("host-0", "host_name")), rule(relabel.LabelMap, func(c *relabel.Config) {
		match("host_(.*)")(c)
		c.Replacement = "job"
	})}, []string{`__name__="target_info",host_name="host-0",instance="host-0:80",job="host-0",1`}, map[loss.Reason]int{loss.Relabelled: 5})
	f("the metric is named anew", []relabel.Config{onlyInfo, rule(relabel.Replace, func(c *relabel.Config) {
		match("(.*)_total", "__name__")(c)
		c.TargetLabel, c.Replacement = "__name__", "all:$1"
	}), rule(relabel.Keep, match("/b", "path"))}, []string{
		line(`__name__="all:requests",instance="host-0:80",job="api",path="/b",`, 1),
		line(`__name__="all:requests",instance="host-1:80",job="api",path="/b",`, 11),
	}, map[loss.Reason]int{loss.Relabelled: 4})
	f("a name that is none", []relabel.Config{onlyInfo, rule(relabel.Replace, func(c *relabel.Config) {
		c.SourceLabels, c.TargetLabel = []labelName{"path"}, "__name__"
	})}, nil, map[loss.Reason]int{loss.Relabelled: 2, loss.Rules: 4})
}

// TestRulesForPromotedAttributes: rules apply to labels from resources, too.
func TestRulesForPromotedAttributes(t *testing.T) {
	series, d := sent(t, v2Zstd, func(c *Config) {
		c.Cache.PromoteResourceAttributes = []string{"host.name"}
		c.Rules = []relabel.Config{rule(relabel.Keep, func(c *relabel.Config) {
			c.SourceLabels, c.Regex = []labelName{"host_name"}, relabel.MustNewRegexp("host-1")
		})}
	}, targets())
	require.Len(t, series, 2)
	assert.Equal(t, "host-1", series[0].Labels[1].Value)
	assert.Equal(t, 2, d.counts[loss.Relabelled])
}

// TestPartsOfAHistogramAreRuledOneByOne: buckets are series of their own, and so are the other parts of a family.
func TestPartsOfAHistogramAreRuledOneByOne(t *testing.T) {
	md := pmetric.NewMetrics()
	m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("latency")
	m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	for i := range 2 {
		dp := m.Histogram().DataPoints().AppendEmpty()
		dp.SetTimestamp(pcommon.NewTimestampFromTime(epoch))
		dp.ExplicitBounds().FromRaw([]float64{1, 2})
		dp.BucketCounts().FromRaw([]uint64{1, 2, 3})
		dp.SetCount(6)
		dp.SetSum(float64(9 + i))
		dp.Attributes().PutInt("i", int64(i))
		x := dp.Exemplars().AppendEmpty()
		x.SetDoubleValue(1.5)
		x.SetTimestamp(dp.Timestamp())
		x.SetTraceID(pcommon.TraceID{1})
	}
	drop := func(regex string) relabel.Config {
		return rule(relabel.Drop, func(c *relabel.Config) {
			c.SourceLabels, c.Regex = []labelName{"__name__", "le"}, relabel.MustNewRegexp(regex)
		})
	}
	for _, f := range formats {
		e, d := newEncoder(t, func(c *Config) {
			c.Cache.Delta, c.Rules = cache.DeltaCumulative, []relabel.Config{drop("latency_count;|latency_bucket;2")}
		})
		for round := range 3 {
			md := md
			require.NoError(t, e.Add(md, ""))
			series, _ := decode(t, flushAll(e, f))
			require.Len(t, series, 6)
			for _, s := range series {
				require.NotContains(t, labelsOf(s), `le="2"`)
				require.Empty(t, s.Exemplars, "its bucket is not sent")
				if name := s.Labels[0].Value; name == "latency_sum" { // each has its own sum, although the counts are not sent
					i := float64(s.Labels[1].Value[0] - '0')
					require.InDelta(t, float64(round+1)*(9+i), s.Samples[0].Value, 0)
				}
			}
			require.Equal(t, 4*(round+1), d.counts[loss.Relabelled])
			for i := range 2 {
				dp := m.Histogram().DataPoints().At(i)
				dp.SetTimestamp(dp.Timestamp() + pcommon.Timestamp(time.Second))
			}
		}
		for i := range 2 {
			m.Histogram().DataPoints().At(i).SetTimestamp(pcommon.NewTimestampFromTime(epoch))
		}
	}
	// Nothing is left to sum up.
	series, d := sent(t, v2Zstd, func(c *Config) {
		c.Cache.Delta, c.Rules = cache.DeltaCumulative, []relabel.Config{drop("latency_.*")}
	}, md)
	assert.Empty(t, series)
	assert.Equal(t, 10, d.counts[loss.Relabelled])
	assert.Equal(t, 10, d.total())
}

// TestRulesWithoutValuesOfResourcesShareSeries: a thousand targets of one shape need the entries of one.
func TestRulesWithoutValuesOfResourcesShareSeries(t *testing.T) {
	known := func(rules ...relabel.Config) int {
		e, _ := newEncoder(t, func(c *Config) { c.Rules = rules })
		for target := range 20 {
			require.NoError(t, e.Add(page(target, 40, epoch), ""))
		}
		return e.Stats().Series
	}
	labelRule := func(action relabel.Action, regex string, names ...labelName) relabel.Config {
		return rule(action, func(c *relabel.Config) { c.SourceLabels, c.Regex = names, relabel.MustNewRegexp(regex) })
	}
	assert.Equal(t, 40, known())
	assert.Equal(t, 40, known(labelRule(relabel.Drop, "node_metric_00.*", "__name__")))
	assert.Equal(t, 40, known(labelRule(relabel.Drop, "eth1", "device"), labelRule(relabel.LabelDrop, "mode|instance")))
	assert.Equal(t, 40, known(labelRule(relabel.Drop, "node;eth1", "job", "device")), "all are of one job")
	assert.Equal(t, 20*40, known(labelRule(relabel.Drop, "127.0.0.1.*", "instance")))
}

// TestRulesForManyLabels: of very many labels none is looked at, because the table is locked meanwhile.
func TestRulesForManyLabels(t *testing.T) {
	const maxRuledLabels = 2000 // beyond which rules do not apply
	attributes := make([]string, 0, 4*maxRuledLabels)
	for i := range 2 * maxRuledLabels {
		attributes = append(attributes, fmt.Sprintf("a%d", i), "v")
	}
	for n, want := range map[int]int{100: 0, maxRuledLabels - 1: 0, maxRuledLabels: 1, 2 * maxRuledLabels: 1} { // plus the name
		series, d := sent(t, v2Zstd, func(c *Config) {
			c.Rules = []relabel.Config{rule(relabel.LabelMap, func(c *relabel.Config) {
				c.Regex, c.Replacement = relabel.MustNewRegexp("a(.*)"), "b$1"
			})}
		}, gauge("g", 1, epoch, attributes[:2*n]...))
		require.Len(t, series, 1-want)
		require.Equal(t, want, d.counts[loss.Rules])
	}
}
