// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/alloctest"
	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
)

// shapedLines has three or more lines of each shape, or of what looks like one shape.
var shapedLines = []string{
	`plain 1`,
	`one{a="1"} 1`, `one{a="2"} 2`, `one{a="x y"} 3`, `one{a=""} 4`, `one{a="\"q\\"} 5`,
	`two{b="1",a="2"} 1`, `two{b="2",a="1"} 2`, `two{b="é",a="same"} 3`, `two{b="same",a="same"} 4`, `two{a="5",b="5"} 5`,
	`app{pod="a-1",env="dev",secret="x"} 1`, `app{pod="b-2",env="prod",secret="y"} 2`, `app{pod="c-3",env="dev",secret="z"} 3`, `app{pod="d-4",env="dev",secret="u"} 4`,
	`clash{job="own",instance="i1",host="h1"} 1`, `clash{job="own",instance="i2",host="h2"} 2`, `clash{job="other",instance="i3",host="h3"} 3`,
	`clash{job="own",exported_job="also",instance="i4"} 4`, `clash{job="own",exported_job="too",instance="i5"} 5`, `clash{job="own",exported_job="three",instance="i6"} 6`,
	`scoped{otel_scope_name="s1",otel_scope_x="1",a="1"} 1`, `scoped{otel_scope_name="s1",otel_scope_x="1",a="2"} 2`, `scoped{otel_scope_name="s2",otel_scope_x="1",a="3"} 3`,
	`target_info{a="1",b="x"} 1`, `target_info{a="1",b="x",c="y"} 1`,
	`long{a="012345678901234567890123456789",b="1"} 1`, `long{a="11",b="012345678901234567890123456789"} 2`, `long{a="1",b="2"} 3`,
	`{"a name",a="1"} 1`, `{"a name",a="2"} 2`, `{"a name",a="3"} 3`,
	`ends_total{a="1"} 1`, `ends_total{a="2"} 2`, `ends_total{a="3"} 3`,
}

// distribution returns points of one shape, with le both as a bound and as an ordinary label.
func distribution(kind string) []string {
	lines := []string{"# TYPE lat " + kind}
	for _, path := range []string{"/a", "/b", "/c", "/d"} {
		for i, le := range []string{"1", "2.50", "+Inf"} {
			lines = append(lines, fmt.Sprintf(`lat_bucket{path=%q,le=%q} %d`, path, le, 2*i), fmt.Sprintf(`lat{path=%q,quantile="0.%d"} %d`, path, i+1, i))
		}
		lines = append(lines, fmt.Sprintf(`lat_sum{path=%q} 9`, path), fmt.Sprintf(`lat_count{path=%q} 4`, path))
	}
	return lines
}

// A line has the same meaning as alone, no matter how many lines of its shape come before it.
func TestShapesMeanWhatLinesMean(t *testing.T) {
	racetest.Sequential(t)
	rule := func(r relabel.Config) *relabel.Config {
		c := relabel.DefaultRelabelConfig
		if r.Action != "" {
			c.Action = r.Action
		}
		if r.Regex.Regexp != nil {
			c.Regex = r.Regex
		}
		if r.Replacement != "" {
			c.Replacement = r.Replacement
		}
		c.SourceLabels, c.TargetLabel, c.Modulus = r.SourceLabels, r.TargetLabel, r.Modulus
		c.NameValidationScheme = testScrapeConfig().MetricNameValidationScheme
		return &c
	}
	regex := relabel.MustNewRegexp
	for name, rules := range map[string][]*relabel.Config{
		"none":     nil,
		"drop":     {rule(relabel.Config{Action: relabel.Drop, SourceLabels: model.LabelNames{"env"}, Regex: regex("prod")})},
		"keep":     {rule(relabel.Config{Action: relabel.Keep, SourceLabels: model.LabelNames{"a"}, Regex: regex("1|2|")})},
		"replace":  {rule(relabel.Config{SourceLabels: model.LabelNames{"pod"}, Regex: regex("(.*)-.*"), TargetLabel: "deployment"})},
		"fixed":    {rule(relabel.Config{TargetLabel: "zone", Replacement: "z1"}), rule(relabel.Config{TargetLabel: "a", Replacement: "z2"})},
		"rename":   {rule(relabel.Config{SourceLabels: model.LabelNames{"__name__", "a"}, Regex: regex("one;(.*)"), TargetLabel: "__name__", Replacement: "one_$1"})},
		"exported": {rule(relabel.Config{SourceLabels: model.LabelNames{"exported_instance"}, TargetLabel: "moved"})},
		"hidden":   {rule(relabel.Config{Action: relabel.LabelDrop, Regex: regex("secret|exported_.*")})},
		"map":      {rule(relabel.Config{Action: relabel.LabelMap, Regex: regex("(pod|a)"), Replacement: "x_$1"})},
		"hash":     {rule(relabel.Config{Action: relabel.HashMod, SourceLabels: model.LabelNames{"a"}, TargetLabel: "shard", Modulus: 4})},
		"equal":    {rule(relabel.Config{Action: relabel.DropEqual, SourceLabels: model.LabelNames{"a"}, TargetLabel: "b"})},
		"bound":    {rule(relabel.Config{SourceLabels: model.LabelNames{"path"}, TargetLabel: "le"})},
		"upper":    {rule(relabel.Config{Action: relabel.Uppercase, SourceLabels: model.LabelNames{"path"}, TargetLabel: "path"})},
	} {
		for _, whole := range []int{catalog.MostWhole, 0} {
			for _, honor := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%d/%v", name, whole, honor), func(t *testing.T) {
					cfg := testScrapeConfig()
					cfg.MetricRelabelConfigs, cfg.HonorLabels = rules, honor
					job := func() *Job {
						j := newTestJob(t, Config{Scrape: cfg, External: labels.FromStrings("host", "outside")})
						j.rules.MostWhole = whole
						return j
					}
					points := func(j *Job, n int, page string) []string {
						r := show(testTarget(j, n, "pod", "the target's"), start, typeText, page, 1<<20)
						require.NoError(t, r.Err)
						return canon(r.Metrics)
					}
					for _, lines := range [][]string{shapedLines, distribution("histogram"), distribution("summary"), distribution("gauge"), distribution("counter")} {
						shared := job()
						for n := range 3 { // by the third target, all shapes are known
							page := strings.Join(lines, "\n") + "\n"
							if n > 0 {
								page = strings.ReplaceAll(page, `a="`, fmt.Sprintf(`a="%d`, n))
							}
							long := job()
							long.rules.MostShapes = 0
							require.Equal(t, points(long, n, page), points(shared, n, page))
						}
						for _, c := range shared.cohorts {
							require.NotZero(t, c.Counts().Shapes)
						}
					}
				})
			}
		}
	}
}

func TestNewSeriesOfAKnownShapeAllocateLittle(t *testing.T) {
	t.Cleanup(handback.Poison(false)) // poisoning takes memory, and loses what is kept
	const n = 200
	j := newTestJob(t, Config{Scrape: testScrapeConfig(), Reuse: true})
	target := testTarget(j, 1)
	c := newCrowd(1, exporterLines(2*n, n), 0.5, atEnd)
	var pages [][]byte
	for range 130 {
		pages = append(pages, c.next(0, nil))
	}
	showBytes(target, start, typeText, pages[0]).Release()
	allocs := alloctest.PerRun(func() {
		pages = pages[1:]
		r := showBytes(target, start, typeText, pages[0])
		require.NoError(t, r.Err)
		require.Equal(t, n, r.Added)
		r.Release()
	})
	assert.Greater(t, allocs/n, 1.5, "they are new")
	assert.Less(t, allocs/n, 3.0)
}
