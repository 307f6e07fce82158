// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/internal/racetest"
)

// TestMessagesLikeTheLastAreRight writes series with references of every length, which grow from one series to the
// next, in messages of every length.
func TestMessagesLikeTheLastAreRight(t *testing.T) {
	racetest.Sequential(t)
	const targets, pods = 2, 16_500 // more values than two bytes can number
	for _, wide := range []int{0, 70} {
		e, d := newEncoder(t, nil)
		want := map[string]float64{}
		for target := range targets {
			md := page(target, 0, epoch)
			m := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().AppendEmpty()
			m.SetName("m")
			points := m.SetEmptyGauge().DataPoints()
			for pod := range pods {
				if wide > 0 && pod > 300 {
					break
				}
				labels := []string{`__name__="m"`}
				dp := points.AppendEmpty()
				for i := range wide {
					name := fmt.Sprintf("a%02d", i)
					dp.Attributes().PutStr(name, fmt.Sprint(i))
					labels = append(labels, fmt.Sprintf(`%s="%d"`, name, i))
				}
				for i, name := range []string{"b", "c"} {
					value := fmt.Sprint((pod + i) % pods) // known and new
					dp.Attributes().PutStr(name, value)
					labels = append(labels, fmt.Sprintf(`%s=%q`, name, value))
				}
				labels = append(labels, fmt.Sprintf(`instance="127.0.0.%d:9100"`, target), `job="node"`)
				dp.SetTimestamp(pcommon.NewTimestampFromTime(epoch))
				dp.SetDoubleValue(float64(pod % 3)) // zero is omitted from the message
				want[strings.Join(labels, ",")+","] = float64(pod % 3)
			}
			require.NoError(t, e.Add(md, ""))
		}
		series, _ := decode(t, flushAll(e, v2Zstd))
		for _, s := range series {
			labels := labelsOf(s)
			value, ok := want[labels]
			if !ok || len(s.Samples) != 1 || s.Samples[0] != (promwrite.Sample{Value: value, Timestamp: epoch.UnixMilli()}) {
				t.Fatalf("%s: %v, want %v, %v", labels, s.Samples, value, ok)
			}
			delete(want, labels)
		}
		assert.Empty(t, want)
		assert.Zero(t, d.total())
	}
}

// TestMessagesOfAMetricHaveOneLength, whichever of their values got small numbers: messages of the same length are a
// run, which is declared to compression. Symbols after the first 16,383 take more bytes.
func TestMessagesOfAMetricHaveOneLength(t *testing.T) {
	lengths := func(pods int) map[int]int {
		md, samples := kubelets(2*leastRun, pods, 3) // one of two values is shared by all targets, and others get numbers before and after it
		e, _ := newEncoder(t, nil)
		require.NoError(t, e.Add(md, ""))
		blocks := flushAll(e, v2Zstd)
		require.Len(t, blocks, 1)
		raw, err := blocks[0].Raw()
		require.NoError(t, err)
		found, n := map[int]int{}, 0
		for len(raw) > 0 {
			number, kind, tag := protowire.ConsumeTag(raw)
			require.Equal(t, protowire.BytesType, kind)
			content, size := protowire.ConsumeBytes(raw[tag:])
			require.Positive(t, size)
			if number == 5 {
				found[len(content)]++
				n++
			}
			raw = raw[tag+size:]
		}
		require.Equal(t, samples, n)
		return found
	}
	for length, n := range lengths(20) {
		assert.Greater(t, n, 2*leastRun*20-leastRun, "%d bytes: the first metric is described by what is named early", length)
	}
	assert.Greater(t, len(lengths(900)), len(lengths(20)))
}
