// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// labLine is a sample of the node page.
type labLine struct {
	name  string
	attrs [][2]string
	value float64
	help  string
}

// readPage reads the samples of testdata's node exporter page, whose label values contain no escapes.
func readPage(t testing.TB) (lines []labLine) {
	data, err := os.ReadFile("../../../../testdata/pages/node.txt")
	require.NoError(t, err)
	help := map[string]string{}
	for text := range strings.Lines(string(data)) {
		text = strings.TrimSuffix(text, "\n")
		if rest, ok := strings.CutPrefix(text, "# HELP "); ok {
			name, h, _ := strings.Cut(rest, " ")
			help[name] = h
		}
		if text == "" || text[0] == '#' {
			continue
		}
		at := strings.LastIndexByte(text, ' ')
		value, err := strconv.ParseFloat(text[at+1:], 64)
		require.NoError(t, err)
		l := labLine{name: text[:at], value: value}
		if name, labels, ok := strings.Cut(text[:at], "{"); ok {
			l.name = name
			for pair := range strings.SplitSeq(strings.TrimSuffix(labels, "}"), `",`) {
				k, v, _ := strings.Cut(pair, `="`)
				l.attrs = append(l.attrs, [2]string{k, strings.TrimSuffix(v, `"`)})
			}
		}
		l.help = help[l.name]
		lines = append(lines, l)
	}
	return lines
}

// labValue returns a value that differs between targets where it would in reality: flags, sizes and small counts do
// not.
func labValue(l *labLine, target, i int) float64 {
	if l.value == math.Trunc(l.value) && math.Abs(l.value) < 1000 {
		return l.value
	}
	h := fnv.New64a()
	fmt.Fprint(h, target, ",", i)
	v := l.value * (0.5 + float64(h.Sum64()>>11)/(1<<53))
	if l.value != math.Trunc(l.value) {
		return math.Round(v*1e3) / 1e3
	}
	if math.Mod(l.value, 4096) == 0 {
		return math.Round(v/4096) * 4096
	}
	return math.Round(v)
}

// labPages returns scrapes of node exporters, each at a different time.
func labPages(t testing.TB, targets int) (pages []pmetric.Metrics, samples int) {
	lines := readPage(t)
	for target := range targets {
		md := page(target, 0, epoch)
		metrics := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
		at := pcommon.NewTimestampFromTime(epoch.Add(time.Duration(target) * 10 * time.Millisecond))
		var points pmetric.NumberDataPointSlice
		for i := range lines {
			l := &lines[i]
			if i == 0 || lines[i-1].name != l.name {
				m := metrics.AppendEmpty()
				m.SetName(l.name)
				m.SetDescription(l.help)
				points = m.SetEmptyGauge().DataPoints()
			}
			dp := points.AppendEmpty()
			dp.SetTimestamp(at)
			dp.SetDoubleValue(labValue(l, target, i))
			for _, kv := range l.attrs {
				dp.Attributes().PutStr(kv[0], kv[1])
			}
		}
		pages = append(pages, md)
	}
	return pages, targets * len(lines)
}
