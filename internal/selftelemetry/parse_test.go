// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package selftelemetry

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseLine(t *testing.T) {
	f := func(line, wantName string, wantValue float64, wantLabels ...label) {
		t.Helper()
		name, s, err := parseLine(line)
		require.NoError(t, err)
		assert.Equal(t, wantName, name)
		assert.Equal(t, wantLabels, s.labels)
		assert.True(t, same(wantValue, s.value), "%v", s.value)
	}
	f("a 1", "a", 1)
	f("a\t-2.5e3 1700000000000", "a", -2500)
	f("a +Inf", "a", math.Inf(1))
	f("a NaN", "a", math.NaN())
	f("a{} 1", "a", 1)
	f(`a {x="1" , y="2",} 1`, "a", 1, label{"x", "1"}, label{"y", "2"})
	f("a{\tx = \"1\"}\t1\t2", "a", 1, label{"x", "1"})
	f(`a{x="}, ="}1`, "a", 1, label{"x", "}, ="})
	f(`a{x="\\n\"\n\x"} 1`, "a", 1, label{"x", "\\n\"\n\\x"})
	f(`{"a.b"} 1`, "a.b", 1)
	f(`{"a.b","x.y"="1"} 1`, "a.b", 1, label{"x.y", "1"})
	f(`{x="1","a"} 1`, "a", 1, label{"x", "1"})
	f(`a{x="1"} 1 # {trace="t"} 0.5`, "a", 1, label{"x", "1"})
}

func TestParseLineRejects(t *testing.T) {
	f := func(want error, lines ...string) {
		t.Helper()
		for _, line := range lines {
			_, _, err := parseLine(line)
			require.ErrorIs(t, err, want, line)
		}
	}
	f(errValue, "a", "a ", "a b", "a{}", "<html>", "a{} 1x")
	f(errName, "{} 1", `{x="1"} 1`)
	f(errLabels, "a{", "a{x", "a{x}", "a{x=", "a{x=1} 1", `a{x="1`, `a{x="1\`, `a{x="1\" 1`, `a{x="1"`, `a{x="1"y="2"} 1`,
		`a{="1"} 1`, `a{"b"} 1`, `a{"b} 1`, `a{x y="1"} 1`, `{"a","b"} 1`, "a{,} 1")
}

func TestParseSaysWhere(t *testing.T) {
	_, err := Parse(strings.NewReader("# HELP a b\na 1\n\n  b{ 2\n"), time.Now())
	require.ErrorIs(t, err, errLabels)
	require.ErrorContains(t, err, "line 4")

	_, err = Parse(strings.NewReader("a 1\nb{x=\""+strings.Repeat("y", maxLine)), time.Now())
	require.ErrorContains(t, err, "cannot read line 2")

	cut := errors.New("cut")
	_, err = Parse(&broken{err: cut}, time.Now())
	require.ErrorIs(t, err, cut)
}

type broken struct{ err error }

func (b *broken) Read([]byte) (int, error) { return 0, b.err }

func TestEveryTypeIsRead(t *testing.T) {
	s := parse(t, `# TYPE c counter
c 1
# TYPE g gauge
g -2
u 3
# TYPE h histogram
h_bucket{le="1"} 1
h_bucket{le="+Inf"} 4
h_sum 9
h_count 4
# TYPE q summary
q{quantile="0.5"} 1
q_sum 11
q_count 5
`)
	for name, want := range map[string]float64{"c": 1, "g": -2, "u": 3, "h_count": 4, "h_sum": 9, "q_count": 5, "q_sum": 11, "h": 0} {
		assert.InDelta(t, want, s.Sum(name), 0, name)
	}
	assert.InDelta(t, 4, s.Sum("h_bucket", Is("le", "+Inf")), 0)
}

// The Collector writes its page with expfmt, whose parser is the reference for whole pages.
func TestRealPagesReadAsTheFormatsLibraryReadsThem(t *testing.T) {
	for _, style := range []string{"plain", "suffixed"} {
		page, err := os.ReadFile(filepath.Join("testdata", style+".txt"))
		require.NoError(t, err)
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(bytes.NewReader(page))
		require.NoError(t, err)
		require.NotEmpty(t, families)

		want := make(map[string][]sample)
		for name, family := range families {
			for _, m := range family.GetMetric() {
				s := sample{value: m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue()}
				for _, l := range m.GetLabel() {
					s.labels = append(s.labels, label{l.GetName(), l.GetValue()})
				}
				want[name] = append(want[name], s)
			}
		}
		assert.Equal(t, want, parse(t, string(page)).samples)
	}
}

func FuzzParseReadsWhatIsWritten(f *testing.F) {
	f.Add("otelcol_process_uptime", "service.name", "a\\ \"b\"\n}", 3.5)
	f.Add("http.server.requests", "le", "", math.Inf(1))
	f.Fuzz(func(t *testing.T, name, key, value string, number float64) {
		if !model.UTF8Validation.IsValidMetricName(name) || !model.UTF8Validation.IsValidLabelName(key) || !utf8.ValidString(value) {
			t.Skip("cannot be written")
		}
		var page bytes.Buffer
		_, err := expfmt.MetricFamilyToText(&page, &dto.MetricFamily{
			Name: &name,
			Type: dto.MetricType_GAUGE.Enum(),
			Metric: []*dto.Metric{{
				Label: []*dto.LabelPair{{Name: &key, Value: &value}},
				Gauge: &dto.Gauge{Value: &number},
			}},
		})
		require.NoError(t, err)
		s, err := Parse(&page, time.Now())
		require.NoError(t, err)
		require.Len(t, s.samples[name], 1)
		require.Equal(t, []label{{key, value}}, s.samples[name][0].labels)
		require.True(t, same(number, s.samples[name][0].value))
	})
}

func FuzzParse(f *testing.F) {
	f.Add("# TYPE a counter\na{x=\"\\\\n\\\"\\n\",} 1 2\n{\"b.c\",\"d.e\"=\"f\"} +Inf\n")
	f.Add("#TYPE A \n{}0") // expfmt v0.70.1 panics
	f.Fuzz(func(t *testing.T, page string) {
		s, err := Parse(strings.NewReader(page), time.Now())
		if err != nil {
			require.Nil(t, s)
			return
		}
		for name, series := range s.samples {
			require.NotEmpty(t, name)
			require.NotEmpty(t, series)
		}
	})
}

func same(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
