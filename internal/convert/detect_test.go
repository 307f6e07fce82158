// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDetect(t *testing.T) {
	for text, want := range map[string]Kind{
		aPrometheus: Prometheus,
		"{scrape_configs: [{job_name: a}], remote_write: [{url: a}]}":           Prometheus,
		"global: {external_labels: {a: b}}":                                     Prometheus,
		aCollector:                                                              Collector,
		"processors: {batch: }":                                                 Collector,
		"scrape_configs: [{job_name: a, stream_parse: true}]":                   VMAgent,
		"scrape_configs: [{metric_relabel_configs: [{if: a}]}]":                 VMAgent,
		"global: {metric_relabel_configs: []}\nscrape_configs: [{job_name: a}]": VMAgent,
		"scrape_configs: [{static_configs: [{targets: ['http://a/b']}]}]":       VMAgent,
		"scrape_configs: [{static_configs: [{targets: ['http://a/b']}], relabel_configs: [{source_labels: [__address__], target_label: __param_target}, {target_label: __address__, replacement: c}]}]": Prometheus,
		"scrape_configs: [{static_configs: [{targets: ['%{A}:1']}]}]":                VMAgent,
		"scrape_configs: [{static_configs: [{targets: ['${A}:1']}]}]":                Prometheus,
		"scrape_configs: [{relabel_configs: [{regex: [a, b], source_labels: [c]}]}]": VMAgent,
		"scrape_configs: [{yandexcloud_sd_configs: []}]":                             VMAgent,
		"receivers: {file_log: {operators: [{regex: '%{a}'}]}}":                      Collector,
		"processors: {transform: {a: '%{b}'}}":                                       Collector,
		"config: {processors: {batch: }}":                                            chart,
		"-remoteWrite.url=http://a\n":                                                VMAgent,
		"# a comment\n--promscrape.config=a --remoteWrite.url=b\n":                   VMAgent,
		"[Unit]\nDescription=a\n[Service]\nExecStart=a":                              VMAgent,
		"/usr/bin/vmagent -remoteWrite.url=a":                                        VMAgent,
		"- -remoteWrite.url=a\n- -promscrape.config=b\n":                             VMAgent,
		"apiVersion: v1\nkind: Pod\n":                                                manifest,
		"services: {a: {image: b, command: [-remoteWrite.url=a]}}":                   VMAgent,
		"services: {a: {image: b, command: -remoteWrite.url=a}}":                     VMAgent,
		"services: {a: {image: prom/prometheus}}":                                    compose,
		"// a\nprometheus.scrape \"a\" {\n  targets = []\n}\n":                       alloy,
		"groups: [{name: a, rules: []}]":                                             rules,
		"route: {receiver: a}\nreceivers: [{name: a}]":                               alertmanager,
		"[{targets: ['a:1']}]":                                                       targets,
		"- targets: ['a:1']":                                                         targets,
		"- {job_name: a, static_configs: []}":                                        jobs,
		"- {match: a, interval: 1m, outputs: [total]}":                               sums,
		"- {if: a, action: drop}":                                                    relabels,
		"{{- if .Values.a }}\nreceivers:\n{{- end }}\n":                              unfilled,
		"allocation_strategy: per-node\nconfig: {scrape_configs: []}\n":              allocate,
		"[1]": unknown,
		"{service: {}, nameOverride: a, global: {}}":              chart,
		"config: {receivers: {otlp: }}":                           chart,
		"vmagent: {config: {scrape_configs: []}}":                 chart,
		"prometheus: {prometheusSpec: {}}":                        chart,
		"receivers: {prometheus: {config: {scrape_configs: []}}}": Collector,
		"":      unknown,
		"hello": unknown,
		"a: [":  unknown,
	} {
		assert.Equal(t, want, Detect([]byte(text)), text)
	}
}

// Of what Prometheus tests itself with none is taken for a collector's, and of a collector's own none for Prometheus'.
func TestIsPrometheus(t *testing.T) {
	for _, file := range prometheusTestdata(t) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if root, err := parse(text); err == nil && find(root, "scrape_configs") != nil {
			assert.True(t, IsPrometheus(text), file)
		}
	}
	assert.False(t, IsPrometheus([]byte(aCollector)))
	assert.False(t, IsPrometheus([]byte("receivers:\n  prometheus:\n    config:\n      scrape_configs:\n")))
	assert.False(t, IsPrometheus([]byte("a: b\n")))
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]string{
		"30s": "30s", "1m30s": "1m30s", "1d": "24h", "2w": "336h", "90s": "1m30s", "1h": "1h", "10ms": "10ms", "1.5h": "1h30m", "0": "0s", "1h0m5s": "1h0m5s",
	} {
		d, err := duration(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, goDuration(d))
		again, err := time.ParseDuration(goDuration(d))
		require.NoError(t, err)
		assert.Equal(t, d, again)
	}
	for _, text := range []string{"a", "5", "5 s", "-5s", "1i"} {
		_, err := duration(text)
		assert.Error(t, err, text)
	}
}

func TestArrayValues(t *testing.T) {
	for text, want := range map[string][]string{
		"":              {""},
		"a":             {"a"},
		"a,b":           {"a", "b"},
		",b":            {"", "b"},
		`"a,b",'c,d'`:   {"a,b", "c,d"},
		`{"a":"b,c"},d`: {`{"a":"b,c"}`, "d"},
		`[a,b],(c,d)`:   {"[a,b]", "(c,d)"},
		`'it\'s',b`:     {"it's", "b"},
	} {
		assert.Equal(t, want, arrayValues(text), text)
	}
}
