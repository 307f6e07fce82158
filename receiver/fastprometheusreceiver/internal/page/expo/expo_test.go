// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package expo

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/stretchr/testify/require"
)

// reference parses a page with Prometheus' parser, ours with this package; both return the entries.
func reference(page []byte, om bool) (seen []string, ok bool) {
	var p textparse.Parser
	if om {
		p = textparse.NewOpenMetricsParser(bytes.Clone(page), nil)
	} else {
		p = textparse.NewPromParser(bytes.Clone(page), nil, false)
	}
	for {
		kind, err := p.Next()
		if errors.Is(err, io.EOF) {
			return seen, true
		}
		if err != nil {
			return seen, false
		}
		switch kind {
		case textparse.EntryType:
			n, t := p.Type()
			seen = append(seen, fmt.Sprintf("type %q %q", n, t))
		case textparse.EntryHelp:
			n, h := p.Help()
			seen = append(seen, fmt.Sprintf("help %q %q", n, h))
		case textparse.EntryUnit:
			n, u := p.Unit()
			seen = append(seen, fmt.Sprintf("unit %q %q", n, u))
		case textparse.EntrySeries:
			text, ts, v := p.Series()
			var l labels.Labels
			p.Labels(&l)
			s := fmt.Sprintf("series %q %s %x", text, l, math.Float64bits(v))
			if ts != nil {
				s += fmt.Sprintf(" at %d", *ts)
			}
			var x exemplar.Exemplar
			if p.Exemplar(&x) {
				s += fmt.Sprintf(" exemplar %s %v %v %d", x.Labels, x.Value, x.HasTs, x.Ts)
			}
			seen = append(seen, s)
		}
	}
}

func ours(page []byte, om bool) (seen []string, ok bool) {
	p := Parser{OpenMetrics: om}
	if !om {
		page = append(bytes.Clone(page), '\n')
	}
	var e Entry
	mtype := model.MetricType("")
	for len(page) > 0 {
		n, err := p.Next(page, &e)
		if err != nil {
			return seen, false
		}
		switch e.Kind {
		case Type:
			mtype = e.Type
			seen = append(seen, fmt.Sprintf("type %q %q", e.Name, e.Type))
		case Help:
			seen = append(seen, fmt.Sprintf("help %q %q", e.Name, p.HelpText(&e)))
		case Unit:
			seen = append(seen, fmt.Sprintf("unit %q %q", e.Name, e.Body))
		case Series:
			b := labels.NewScratchBuilder(4)
			e.AppendLabels(&b, mtype)
			b.Sort()
			s := fmt.Sprintf("series %q %s %x", e.Text, b.Labels(), math.Float64bits(e.Value))
			if e.HasTS {
				s += fmt.Sprintf(" at %d", e.TS)
			}
			if e.Exemplar.Found {
				b.Reset()
				e.Exemplar.AppendLabels(&b)
				b.Sort()
				s += fmt.Sprintf(" exemplar %s %v %v %d", b.Labels(), e.Exemplar.Value, e.Exemplar.HasTS, e.Exemplar.TS)
			}
			seen = append(seen, s)
		case End:
			return seen, !om || n == len(page)
		}
		page = page[n:]
	}
	return seen, !om
}

var seeds = []string{
	"a 1\n", "a{b=\"c\"} 1 2\n", " a 1\n", "a{} 1", "a+1\n", "a=1\n", "a{b=\"c\" d=\"e\",} 1\n", "{\"a\",b=\"c\"} 1\n",
	"{\"a.b\",\"c d\"=\"e\"} 1\n", "a{\"b\"} 1\n", "{\"a\",\"b\"} 1\n", "{b=\"c\"} 1\n", "# HELP a b c\n# TYPE a counter\na 1\n",
	"# TYPE a counter \n", "# HELP a \n", "# HELP a\n", "# TYPE \"a b\" gauge\n", "# TYPE a  gauge\n", "# TYPE a\"gauge\n",
	"a{b=\"\n\"} 1\n", "a{b=\"\\\n\"} 1\n", "a 1\r\n", "a 1 -2\n", "a 1 2 3\n", "a 0x1p3\n", "a 1_0\n", "a NaN\n", "a +Inf\n",
	"a 1e999\n", "a 1e-999\n", "a 9007199254740993\n", "a 0.1e23\n", "a .5\n", "a 5.\n", "a .\n", "a 1e\n", "a -0\n", "\n\na 1\n",
	"#a\n", "#\n", "# \x00\na 1\n", "\x00 whatever", "a{b=\"\x00\"} 1\n", "a\x00 1\n", "# HELP a \x00b\n", "#a\x00\nb 1\n", "# H\x00ELP a b\n",
	"# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 1\n", "# TYPE s summary\ns{quantile=\"0.50\"} 1\n",
	"# TYPE a counter\n# UNIT a_s s\na_total 1 1.5 # {t=\"x\"} 2 3.25\n# EOF\n", "a 1 # {} 2\n# EOF", "a 1\n# EOF\n\n", "a 1\n", "a  1\n# EOF\n",
	"a 1 \n# EOF\n", "a 1 # {a=\"b\",} 1\n# EOF\n", "a 1 # {\"a b\"=\"\\n\"} NaN\n# EOF\n", "a 1 NaN\n# EOF\n", "# UNIT a_b c\n# EOF\n", "# UNIT a \n# EOF\n",
	"# foo\n# EOF\n", "a{b=\"c\",} 1\n# EOF\n", "a{,} 1\n# EOF\n", "{\"a\"} 1\n# EOF\n", "# EOFx", "# TYPE a stateset\na{a=\"b\"} 1\n# EOF\n", "a\t1\n# EOF\n",
	"a{b=\"\xff\"} 1\n", "# HELP a \xff\n", "a{b=\"c\"}1\n", "a{b=\"c\"}{} 1\n", "a 1\tb\n", "a\n", "# HELP \n", "a{b=\"c\"", "a{b=\"c", "a{b",
}

// compare asserts that both parsers accept a page with the same entries, or reject it. Prometheus' lexers skip NULs
// after quotes and make them part of the value; that of OpenMetrics also skips some in other places. Such pages may be
// rejected here.
func compare(t *testing.T, page []byte, om bool) {
	want, wantOK := reference(page, om)
	got, gotOK := ours(page, om)
	skipped := "\"\x00"
	if om {
		skipped = "\x00"
	}
	if wantOK && !gotOK && bytes.Contains(page, []byte(skipped)) {
		return
	}
	require.Equal(t, wantOK, gotOK, "accepted %q (OpenMetrics %v)\nreference %q\nours %q", page, om, want, got)
	if wantOK {
		require.Equal(t, want, got, "%q", page)
	}
}

func TestReadsWhatPrometheusReads(t *testing.T) {
	for _, s := range seeds {
		compare(t, []byte(s), false)
		compare(t, []byte(s), true)
	}
}

func TestNULsAnywhere(t *testing.T) {
	const head, value, tail = "# HELP a b\\n c\n# TYPE a counter\n# UNIT a_s s\n# HELP \"a b\" x\n{\"a b\",\"c d\"=\"", "e\\\"f", "\"} 1\n# EOF\n"
	const page = head + value + tail
	for i := range len(page) + 1 {
		for _, nuls := range []string{"\x00", "\x00\x00"} {
			mutant := []byte(page[:i] + nuls + page[i:])
			compare(t, mutant, false)
			compare(t, mutant, true)
			if _, ok := ours(mutant, true); i >= len(head) && i <= len(head)+len(value) && !ok {
				t.Fatalf("%q: a label value may have NULs", mutant)
			}
		}
	}
}

func FuzzGrammar(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, page []byte, om bool) {
		if strings.Count(string(page), "\n") > 1000 {
			return
		}
		compare(t, page, om)
	})
}

func FuzzNumber(f *testing.F) {
	for _, s := range []string{"1", "-1.5", "1e22", "1e23", "0.1", "9007199254740993", "1.23456789e+08", "123456789012345678901", "-0", ".5e-3"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, end, ok := FastNumber(append(bytes.Clone(b), '\n'))
		if !ok {
			return
		}
		if end > len(b) {
			t.Fatalf("end %d of %q", end, b)
		}
		want, err := strconv.ParseFloat(string(b[:end]), 64)
		require.NoError(t, err, "%q", b)
		require.Equal(t, math.Float64bits(want), math.Float64bits(v), "%q", b)
	})
}
