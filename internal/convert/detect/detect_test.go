// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDetect(t *testing.T) {
	for text, want := range map[string]Kind{
		"scrape_configs:\n  - job_name: a\n    static_configs: [{targets: ['a:1']}]\nremote_write:\n  - url: http://a\n":    Prometheus,
		"{scrape_configs: [{job_name: a}], remote_write: [{url: a}]}":                                                       Prometheus,
		"global: {external_labels: {a: b}}":                                                                                 Prometheus,
		"receivers: {otlp: }\nexporters: {nop: }\nservice: {pipelines: {metrics: {receivers: [otlp], exporters: [nop]}}}\n": Collector,
		"processors: {batch: }":                                                 Collector,
		"scrape_configs: [{job_name: a, stream_parse: true}]":                   VMAgent,
		"scrape_configs: [{metric_relabel_configs: [{if: a}]}]":                 VMAgent,
		"global: {metric_relabel_configs: []}\nscrape_configs: [{job_name: a}]": VMAgent,
		"scrape_configs: [{static_configs: [{targets: ['http://a/b']}]}]":       VMAgent,
		"scrape_configs: [{static_configs: [{targets: ['http://a/b']}], relabel_configs: [{source_labels: [__address__], target_label: __param_target}, {target_label: __address__, replacement: c}]}]": Prometheus,
		"scrape_configs: [{static_configs: [{targets: ['%{A}:1']}]}]":                                        VMAgent,
		"scrape_configs: [{static_configs: [{targets: ['${A}:1']}]}]":                                        Prometheus,
		"scrape_configs: [{relabel_configs: [{regex: [a, b], source_labels: [c]}]}]":                         VMAgent,
		"scrape_configs: [{yandexcloud_sd_configs: []}]":                                                     VMAgent,
		"receivers: {file_log: {operators: [{regex: '%{a}'}]}}":                                              Collector,
		"processors: {transform: {a: '%{b}'}}":                                                               Collector,
		"config: {processors: {batch: }}":                                                                    Chart,
		"-remoteWrite.url=http://a\n":                                                                        VMAgent,
		"# a comment\n--promscrape.config=a --remoteWrite.url=b\n":                                           VMAgent,
		"[Unit]\nDescription=a\n[Service]\nExecStart=a":                                                      VMAgent,
		"/usr/bin/vmagent -remoteWrite.url=a":                                                                VMAgent,
		"- -remoteWrite.url=a\n- -promscrape.config=b\n":                                                     VMAgent,
		"apiVersion: v1\nkind: Pod\n":                                                                        Manifest,
		"services: {a: {image: b, command: [-remoteWrite.url=a]}}":                                           VMAgent,
		"services: {a: {image: b, command: -remoteWrite.url=a}}":                                             VMAgent,
		"services: {a: {image: prom/prometheus}}":                                                            Compose,
		"// a\nprometheus.scrape \"a\" {\n  targets = []\n}\n":                                               Alloy,
		"groups: [{name: a, rules: []}]":                                                                     Rules,
		"route: {receiver: a}\nreceivers: [{name: a}]":                                                       Alertmanager,
		"[{targets: ['a:1']}]":                                                                               Targets,
		"- targets: ['a:1']":                                                                                 Targets,
		"- {job_name: a, static_configs: []}":                                                                Jobs,
		"- {match: a, interval: 1m, outputs: [total]}":                                                       StreamAggregation,
		"- {if: a, action: drop}":                                                                            RelabelRules,
		"{{- if .Values.a }}\nreceivers:\n{{- end }}\n":                                                      Unfilled,
		"allocation_strategy: per-node\nconfig: {scrape_configs: []}\n":                                      TargetAllocator,
		"[program:vmagent]\ncommand=/usr/bin/vmagent -remoteWrite.url=http://a\n":                            VMAgent,
		"args = [\n  \"-remoteWrite.url=http://a\",\n]\n":                                                    VMAgent,
		"{containerDefinitions: [{name: a, command: [-remoteWrite.url=http://a]}]}":                          VMAgent,
		"scrape_configs: [{metrics_path: '%{A}'}]\nalerting: {}\n":                                           VMAgent,
		"{{ ansible_managed | comment }}\n\n[Unit]\n[Service]\nExecStart=vmagent -remoteWrite.url={{ a }}\n": Unfilled,
		"[Service]\nExecStart=vmagent -remoteWrite.url={{ a }}\n":                                            Unfilled,
		"{{ a }}\nglobal:\n  {{ b }}\n":                                                                      Unfilled,
		"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n":                                     Unknown,
		"service: {flush: 1}\npipeline: {inputs: []}\n":                                                      Unknown,
		"service: {telemetry: {logs: {level: debug}}}":                                                       Collector,
		"service: ": Collector,
		"dist: {name: a}\nreceivers: [{gomod: b v1}]\nexporters: [{gomod: c v1}]": builder,
		"[1]":                             Unknown,
		"metrics: {configs: [{name: a}]}": grafanaAgent,
		"traces: {configs: [{name: a}]}":  grafanaAgent,
		"server: {log_level: info}\nintegrations: {node_exporter: {enabled: true, device_exclusion: '{{a}}'}}": grafanaAgent,
		"integrations: {nginx: {}}":                               Unknown,
		"{service: {}, nameOverride: a, global: {}}":              Chart,
		"config: {receivers: {otlp: }}":                           Chart,
		"vmagent: {config: {scrape_configs: []}}":                 Chart,
		"prometheus: {prometheusSpec: {}}":                        Chart,
		"receivers: {prometheus: {config: {scrape_configs: []}}}": Collector,
		"":      Unknown,
		"hello": Unknown,
		"a: [":  Unknown,
	} {
		assert.Equal(t, want, File([]byte(text)), text)
	}
}
