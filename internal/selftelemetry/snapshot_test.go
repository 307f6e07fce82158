// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package selftelemetry

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func parse(t *testing.T, page string) *Snapshot {
	t.Helper()
	s, err := Parse(strings.NewReader(page), time.Unix(1700000000, 0))
	require.NoError(t, err)
	return s
}

// Both pages are from one Collector with the same load, with and without suffixes.
func TestBothStylesOfNamesAnswerTheSame(t *testing.T) {
	for _, style := range []string{"plain", "suffixed"} {
		t.Run(style, func(t *testing.T) {
			page, err := os.ReadFile(filepath.Join("testdata", style+".txt"))
			require.NoError(t, err)
			s := parse(t, string(page))

			assert.InDelta(t, 236, s.Sum("otelcol_receiver_accepted_metric_points"), 0)
			assert.InDelta(t, 236, s.Sum("otelcol_receiver_accepted_metric_points_total"), 0)
			assert.InDelta(t, 118, s.Sum("otelcol_receiver_accepted_metric_points", Is("receiver", "otlp/loopback")), 0)
			assert.InDelta(t, 2000, s.Sum("otelcol_exporter_queue_capacity"), 0)
			assert.InDelta(t, 1000, s.Sum("otelcol_exporter_queue_capacity", Is("exporter", "otlphttp"), Is("data_type", "traces")), 0)
			assert.InDelta(t, 0.09, s.Sum("otelcol_process_cpu_seconds"), 0)
			assert.InDelta(t, 37e6, s.Sum("otelcol_process_memory_rss"), 1e6)
			assert.InDelta(t, 7.1, s.Sum("otelcol_process_uptime"), 0.2)
			assert.Equal(t, map[string]float64{"debug": 118, "otlphttp": 118}, s.SumBy("otelcol_exporter_sent_metric_points", "exporter"))
		})
	}
}

func TestSumOfWhatIsNotThereIsZero(t *testing.T) {
	s := parse(t, "a{x=\"1\"} 5\n")
	assert.Zero(t, s.Sum("b"))
	assert.Zero(t, s.Sum("a", Is("x", "2")))
	assert.Zero(t, s.Sum("a", Is("y", "1")))
	assert.Empty(t, s.SumBy("b", "x"))
}

func TestAbsentLabelIsEmpty(t *testing.T) {
	s := parse(t, "a{x=\"1\"} 5\na 2\n")
	assert.Equal(t, map[string]float64{"1": 5, "": 2}, s.SumBy("a", "x"))
	assert.InDelta(t, 2, s.Sum("a", Is("x", "")), 0)
}

// Both exist: otelcol_exporter_enqueue_size and …_size_bytes.
func TestDeclaredNameWinsOverAddedUnit(t *testing.T) {
	s := parse(t, "size 1\nsize_bytes 100\nonly_bytes 7\n")
	assert.InDelta(t, 1, s.Sum("size"), 0)
	assert.InDelta(t, 100, s.Sum("size_bytes"), 0)
	assert.InDelta(t, 7, s.Sum("only"), 0)
}
