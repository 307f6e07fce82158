// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/repository"
)

// Our metrics that no dashboard and no alert uses, and why not.
var unwatched = map[string]string{
	"otelcol_exporter_otlpstream_in_flight_requests":         "bytes in flight and pending items say the same",
	"otelcol_exporter_otlpstream_metadata_sets":              "requests that find no place are there, and the limit bounds the others",
	"otelcol_exporter_remotewrite_cache_series":              "the hits say whether the cache is large enough",
	"otelcol_exporter_remotewrite_queued_blocks":             "the queue is bounded in bytes, which are there",
	"otelcol_exporter_remotewrite_rate_limited_requests":     "they are as many as the limit makes them; what it costs is the age of the queue, which is there",
	"otelcol_exporter_remotewrite_relabel_dropped_points":    "what rules drop is what somebody wanted dropped",
	"otelcol_extension_runtimeprofile_binary_pages_released": "it is resident memory that is looked at",
	"otelcol_extension_runtimeprofile_gc_cpu_time":           "its share of the CPU is there",
	"otelcol_processor_cardinality_aggregate_failed_points":  "only deltas can be among them, and the log tells of a change",
	"otelcol_processor_cardinality_aggregate_members":        "it is for those who wonder what a rule saves; the points that are not taken pass, and are limited as others",
	"otelcol_processor_cardinality_aggregate_points":         "they are among the points that are passed on",
	"otelcol_processor_cardinality_aggregate_refused_points": "they go with the next, and the log tells of a change",
	"otelcol_processor_cardinality_aggregate_series":         "each has a place, and series by rule are there",
	"otelcol_processor_cardinality_aggregate_state":          "series beyond the memory for it pass, and are limited as others",
	"otelcol_processor_cardinality_aggregate_state_fullest":  "a tenant that fills its share is limited as others are, and takes nothing of theirs",
	"otelcol_processor_cardinality_aggregated_points":        "it is for those who wonder what a rule saves",
	"otelcol_processor_cardinality_unaggregated_points":      "it is for those who write a rule; what passes is limited as other points",
	"otelcol_processor_cardinality_ended_series":             "they go with expired series, which are there",
	"otelcol_processor_cardinality_promoted_series":          "members and series are there, and what it does shows in both",
	"otelcol_processor_cardinality_end_markers":              "they go with expired series, which are there",
	"otelcol_processor_cardinality_overflow_refused_points":  "what is lost of them is there, and the log tells of a change",
	"otelcol_receiver_otlpstream_duplicate_requests":         "requests that are sent again are there; these did no harm",
	"otelcol_receiver_fastprometheus_backlog_bytes":          "scrapes that are left out for it are there, and scrapes in the pipeline",
	"otelcol_receiver_remotewrite_deduplicated_points":       "they are as many as the replicas make them",
	"otelcol_receiver_otlpstream_reuse":                      "whether memory is used again does not change with load, and the log tells of it at the start",
	"otelcol_receiver_remotewrite_known_bytes":               "it is bounded, and part of the memory that is there",
	"otelcol_receiver_remotewrite_reuse":                     "whether memory is used again does not change with load, and the log tells of it at the start",
	"otelcol_receiver_remotewrite_unkept_label_sets":         "they are translated as all were before any was known; the CPU is there",
	"otelcol_receiver_remotewrite_failovers":                 "the log tells of each",
	"otelcol_receiver_fastprometheus_reuse":                  "it follows from the configuration, and the log says why",
}

var (
	documentedMetric = regexp.MustCompile(`(?m)^### (otelcol_\w+)$`)
	usedMetric       = regexp.MustCompile(`\botelcol_\w+`)
	parts            = regexp.MustCompile(`_(bucket|count|sum)$`) // series of a histogram
)

// All instances of a type in a process share its metrics, so each metric has an attribute with the component's ID, as
// the Collector's own metrics have.
func TestEveryMetricSaysWhoseItIs(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, name := range repository.Files(t) {
		kind, _, _ := strings.Cut(name, "/")
		if path.Base(name) != "documentation.md" || kind == "extension" { // extensions count for the whole process
			continue
		}
		text := repository.Read(t, name)
		starts := documentedMetric.FindAllStringSubmatchIndex(text, -1)
		for i, at := range starts {
			end := len(text)
			if i+1 < len(starts) {
				end = starts[i+1][0]
			}
			assert.Contains(t, text[at[0]:end], "\n| "+kind+" | ID of the "+kind+". | ", "%s: %s", name, text[at[2]:at[3]])
			seen++
		}
	}
	assert.Greater(t, seen, 100)
}

// A dashboard or an alert uses each metric of our components, except the known ones, and each metric that is used
// exists.
func TestEveryMetricIsLookedAt(t *testing.T) {
	t.Parallel()
	documented, components := map[string]bool{}, map[string]bool{}
	used := map[string]string{}
	for _, name := range repository.Files(t) {
		switch {
		case path.Base(name) == "documentation.md":
			for _, m := range documentedMetric.FindAllStringSubmatch(repository.Read(t, name), -1) {
				documented[m[1]] = true
			}
			kind, folder := path.Split(path.Dir(name)) // e.g. exporter/ and remotewriteexporter
			kind = strings.TrimSuffix(kind, "/")
			components["otelcol_"+kind+"_"+strings.TrimSuffix(folder, kind)+"_"] = true
		case path.Dir(name)+"/" == dashboards:
			for _, metric := range usedMetric.FindAllString(repository.Read(t, name), -1) {
				used[parts.ReplaceAllString(metric, "")] = name
			}
		}
	}
	require.NotEmpty(t, documented)
	for metric := range documented {
		why, known := unwatched[metric]
		switch file, there := used[metric]; {
		case there:
			assert.False(t, known, "%s is in %s", metric, file)
		case !known:
			assert.Fail(t, "nobody looks at "+metric, "put it on a dashboard or into an alert, or say in `unwatched` why not")
		default:
			assert.NotEmpty(t, why, metric)
		}
	}
	for metric := range unwatched {
		assert.True(t, documented[metric], "there is no %s", metric)
	}
	for metric, file := range used {
		for component := range components {
			if strings.HasPrefix(metric, component) {
				assert.True(t, documented[metric], "%s looks at %s, which no component has", file, metric)
			}
		}
	}
}
