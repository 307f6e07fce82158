// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	promconfig "github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
)

// randomRules returns rules with all actions, most of which read labels of targets.
func randomRules(r *rand.Rand, cfg *promconfig.ScrapeConfig) (rules []*relabel.Config) {
	read := []string{"instance", "zone", "pod", "job", "node", "a", "exported_zone", "__name__", "absent"}
	for range 1 + r.IntN(4) {
		c := relabel.DefaultRelabelConfig
		c.NameValidationScheme = cfg.MetricNameValidationScheme
		c.Action = one(r, relabel.Replace, relabel.Replace, relabel.Replace, relabel.Replace, relabel.Keep, relabel.Drop, relabel.Drop,
			relabel.KeepEqual, relabel.DropEqual, relabel.HashMod, relabel.Lowercase, relabel.Uppercase,
			relabel.LabelMap, relabel.LabelDrop, relabel.LabelKeep)
		for range 1 + r.IntN(2) {
			c.SourceLabels = append(c.SourceLabels, model.LabelName(one(r, read...)))
		}
		c.TargetLabel = one(r, "node", "zone", "a", "pod", "instance", "job", "__name__", "otel_scope_name", "b")
		c.Regex = relabel.MustNewRegexp(one(r, "([^:]+):.*", "(.*)", "(.*)", "(.*)-(.*)", "host[0-3].*", "z[12].*", ".*1.*", "m1.*", ""))
		switch c.Action {
		case relabel.Replace:
			c.Replacement = one(r, "$1", "$1", "x", "", "x-$1", "z1")
			if r.IntN(8) == 0 {
				c.TargetLabel = "l_${1}"
			}
			if c.TargetLabel == "__name__" {
				c.Replacement = one(r, "m_$1", "renamed")
			} else if isIdentity(c.TargetLabel) {
				c.Replacement = one(r, "x-$1", "x", "host1:80")
			}
		case relabel.LabelMap:
			c.SourceLabels, c.TargetLabel = nil, ""
			c.Regex, c.Replacement = relabel.MustNewRegexp("(zone|a|pod)"), one(r, "m_$1", "b", "node")
		case relabel.LabelDrop:
			c.SourceLabels, c.TargetLabel, c.Regex = nil, "", relabel.MustNewRegexp(one(r, "zone", "a|exported_.*"))
		case relabel.LabelKeep:
			c.SourceLabels, c.TargetLabel, c.Regex = nil, "", relabel.MustNewRegexp("__name__|job|instance|zone|a|node")
		case relabel.KeepEqual, relabel.DropEqual:
			c.Regex = relabel.DefaultRelabelConfig.Regex
		case relabel.HashMod:
			c.Modulus = 3
			c.TargetLabel = one(r, "node", "a")
		case relabel.Lowercase, relabel.Uppercase:
			c.TargetLabel = one(r, "node", "zone", "a")
		default:
		}
		rules = append(rules, &c)
	}
	return rules
}

func isIdentity(label string) bool { return label == model.JobLabel || label == model.InstanceLabel }

// prometheusLabels returns the final labels of a sample as computed by Prometheus' scrape loop, nil if it is dropped.
func prometheusLabels(cfg *promconfig.ScrapeConfig, target, exposed labels.Labels) (labels.Labels, bool) {
	b := labels.NewBuilder(exposed)
	if cfg.HonorLabels {
		target.Range(func(l labels.Label) {
			if !exposed.Has(l.Name) {
				b.Set(l.Name, l.Value)
			}
		})
	} else {
		var moved []labels.Label
		target.Range(func(l labels.Label) {
			if v := exposed.Get(l.Name); v != "" {
				moved = append(moved, labels.Label{Name: l.Name, Value: v})
			}
			b.Set(l.Name, l.Value)
		})
		slices.SortStableFunc(moved, func(a, b labels.Label) int { return len(a.Name) - len(b.Name) })
		for _, l := range moved {
			name := "exported_" + l.Name
			for b.Get(name) != "" {
				name = "exported_" + name
			}
			b.Set(name, l.Value)
		}
	}
	if !relabel.ProcessBuilder(b, cfg.MetricRelabelConfigs...) {
		return labels.EmptyLabels(), true
	}
	set := b.Labels()
	ok := set.Has(model.MetricNameLabel)
	set.Range(func(l labels.Label) {
		ok = ok && (cfg.LabelValueLengthLimit == 0 || len(l.Value) <= int(cfg.LabelValueLengthLimit))
	})
	return set, ok
}

// seriesOf returns the label sets of gauges, without those of the report; those that end are separate.
func seriesOf(t *testing.T, md pmetric.Metrics) (live, ended []string) {
	for _, rm := range md.ResourceMetrics().All() {
		job, _ := rm.Resource().Attributes().Get("service.name")
		instance, _ := rm.Resource().Attributes().Get("service.instance.id")
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if strings.HasPrefix(m.Name(), "scrape_") || m.Name() == "up" {
					continue
				}
				require.Equal(t, pmetric.MetricTypeGauge, m.Type())
				for _, dp := range m.Gauge().DataPoints().All() {
					b := labels.NewBuilder(labels.FromStrings("__name__", m.Name(), "job", job.Str(), "instance", instance.Str()))
					if n := sm.Scope().Name(); n != catalog.DefaultScope {
						b.Set("otel_scope_name", n)
					}
					for k, v := range dp.Attributes().All() {
						b.Set(k, v.Str())
					}
					if dp.Flags().NoRecordedValue() {
						ended = append(ended, b.Labels().String())
					} else {
						live = append(live, b.Labels().String())
					}
				}
			}
		}
	}
	slices.Sort(live)
	slices.Sort(ended)
	return live, ended
}

// Rules that read targets' labels have the same result as in Prometheus, whatever targets share.
func TestRulesThatReadTargetsAgainstPrometheus(t *testing.T) {
	racetest.Sequential(t)
	for seed := range uint64(700) {
		checkRules(t, seed, catalog.MostQuestions)
	}
}

func FuzzRulesThatReadTargets(f *testing.F) {
	racetest.Sequential(f)
	for seed := range uint64(50) {
		f.Add(seed, uint16(catalog.MostQuestions))
	}
	f.Fuzz(func(t *testing.T, seed uint64, questions uint16) { checkRules(t, seed, int(questions)) })
}

// If rules depend on too many labels, targets get lines of their own from one page to the next, and no series ends
// because of that.
func TestRulesThatAskTooMuchAgainstPrometheus(t *testing.T) {
	racetest.Sequential(t)
	for seed := range uint64(700) {
		checkRules(t, seed, int(seed%7))
	}
}

func checkRules(t *testing.T, seed uint64, questions int) {
	r := rand.New(rand.NewPCG(seed, 7))
	cfg := testScrapeConfig()
	cfg.HonorLabels = r.IntN(3) == 0
	if r.IntN(5) == 0 {
		cfg.LabelValueLengthLimit = 9
	}
	cfg.MetricRelabelConfigs = randomRules(r, cfg)
	j := newTestJob(t, Config{Scrape: cfg, Reuse: r.IntN(2) == 0})
	j.rules.MostQuestions = questions
	j.rules.MostWhole = r.IntN(30)
	type shown struct {
		*Target

		app    string // on most of its lines
		labels labels.Labels
		series []string // of its last page, nil if that failed
	}
	var targets []*shown
	for i := range 5 {
		b := labels.NewBuilder(labels.FromStrings("job", "j", "instance", fmt.Sprintf("host%d:80", i)))
		b.Set("zone", one(r, "z1", "z2", "Z1-b"))
		if i%2 == 0 {
			b.Set("pod", one(r, "p-1", "p-2", "host1:80"))
		}
		ls := b.Labels()
		targets = append(targets, &shown{Target: j.NewTarget(labels.FromStrings("__scheme__", "http"), ls), labels: ls, app: fmt.Sprint("app-", i)})
	}
	exposed := func(n int) labels.Labels {
		b := labels.NewBuilder(labels.FromStrings("__name__", fmt.Sprint("m", n%4)))
		for _, name := range []string{"a", "zone", "node", "instance", "c"} {
			if r.IntN(3) == 0 {
				b.Set(name, one(r, "z1", "z2", "host1:80", "p-1", "A-b", "host2"))
			}
		}
		return b.Labels()
	}
	// Lines may identify their target by a label that rules read, that they do not read, or that the target has, too.
	app := one(r, "app", "app", "app", "a", "exported_app", "pod", "c")
	told := r.IntN(5)
	page := make([]labels.Labels, 12+r.IntN(20))
	for i := range page {
		page[i] = exposed(i)
	}
	for n := range 6 {
		switch r.IntN(3) {
		case 0:
			page = slices.Insert(page, r.IntN(len(page)), exposed(r.IntN(4)))
		case 1:
			page[r.IntN(len(page))] = exposed(r.IntN(4))
		default:
		}
		for i, target := range targets {
			if r.IntN(6) == 0 && n > 0 {
				continue
			}
			if r.IntN(12) == 0 {
				target.app = fmt.Sprint("app-", r.IntN(7))
			}
			var text strings.Builder
			want, good := map[string]bool{}, true
			for k, l := range page {
				if i == 3 && k%5 == 0 || i == 4 && k%2 == 0 {
					continue
				}
				if k%4 < told {
					l = labels.NewBuilder(l).Set(app, target.app).Labels()
				}
				fmt.Fprintf(&text, "%s%s 1\n", l.Get("__name__"), labels.NewBuilder(l).Del("__name__").Labels())
				set, ok := prometheusLabels(cfg, target.labels, l)
				if good = good && ok; !set.IsEmpty() {
					want[set.String()] = true
				}
			}
			res := show(target.Target, start.Add(time.Duration(n)*time.Second), typeText, text.String(), 1+r.IntN(100))
			what := fmt.Sprintf("seed %d, page %d of target %s, rules %v:\n%s", seed, n, target.labels, printed(cfg.MetricRelabelConfigs), text.String())
			live, ended := seriesOf(t, merged(t, res))
			require.Equal(t, good, res.Err == nil, "%v: %s", res.Err, what)
			if res.Err != nil {
				want = nil
			}
			var all, gone []string
			for s := range want {
				all = append(all, s)
			}
			for _, s := range target.series {
				if !want[s] {
					gone = append(gone, s)
				}
			}
			slices.Sort(all)
			slices.Sort(gone)
			require.Equal(t, all, live, what)
			require.Equal(t, gone, ended, what)
			target.series = all
			res.Release()
		}
	}
	for _, target := range targets {
		target.Retire(start)
	}
	require.Equal(t, Stats{}, j.Stats())
}

func printed(rules []*relabel.Config) string {
	var b strings.Builder
	for _, r := range rules {
		fmt.Fprintf(&b, "\n  %s %v %q -> %s %q", r.Action, r.SourceLabels, r.Regex, r.TargetLabel, r.Replacement)
	}
	return b.String()
}
