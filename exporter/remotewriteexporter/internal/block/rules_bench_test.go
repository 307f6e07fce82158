// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"fmt"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

// BenchmarkRelabel applies a rule that drops nothing, one that drops half, and one that changes all.
func BenchmarkRelabel(b *testing.B) {
	const series = 10_000
	var list []promwrite.Series
	for i := range series {
		s := promwrite.Series{Samples: []promwrite.Sample{{Value: float64(i), Timestamp: 1_700_000_000_000}}}
		for j := range 11 {
			s.Labels = append(s.Labels, promwrite.Label{Name: fmt.Sprint("label_", j), Value: fmt.Sprint("value ", j*i%(10*j+1))})
		}
		s.Labels = append(s.Labels, promwrite.Label{Name: "series", Value: fmt.Sprint(i)})
		s.Labels = append([]promwrite.Label{{Name: "__name__", Value: fmt.Sprint("metric_", i%300)}}, s.Labels...)
		list = append(list, s)
	}
	f := Format{Version: promwrite.V2, Compression: promwrite.Zstd}
	whole, err := write(Header{}, f, list, nil)
	require.NoError(b, err)
	rule := func(action relabel.Action, source, text, target string) relabel.Config {
		c := relabel.DefaultRelabelConfig
		c.Action, c.SourceLabels, c.Regex, c.TargetLabel = action, model.LabelNames{model.LabelName(source)}, relabel.MustNewRegexp(text), target
		return c
	}
	for name, c := range map[string]relabel.Config{
		"none": rule(relabel.Drop, "series", "nothing", ""),
		"half": rule(relabel.Drop, "series", ".*[02468]", ""),
		"all":  rule(relabel.Replace, "series", "(.*)", "copy"),
	} {
		require.NoError(b, c.Validate(model.LegacyValidation))
		b.Run(name, func(b *testing.B) {
			r := NewRules([]relabel.Config{c}, model.LegacyValidation, 1_000_000)
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := r.Relabel(whole, 1); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/series, "ns/sample")
		})
	}
}
