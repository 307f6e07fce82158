// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package mistakes

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const sound = `receivers:
  fastprometheus:
    config:
      scrape_configs:
        - job_name: node
          relabel_configs:
            - {source_labels: [a], regex: "(.*)", target_label: b, replacement: "$${1}"}
          static_configs:
            - targets: ["${env:HOSTS:-localhost}:9100"]
  otlp/spare: {protocols: {grpc: {endpoint: "${env:UNSET}:4317"}}}
exporters:
  remotewrite:
    endpoint: ${env:SET}/api/v1/write
    external_labels: {site: "${env:UNSET}"}
service:
  extensions: []
  pipelines:
    metrics/a: {receivers: [fastprometheus], exporters: [remotewrite]}
`

// look finds mistakes in files named a.yaml, b.yaml and so on.
func look(set []string, texts ...string) error {
	var files []File
	for i, text := range texts {
		files = append(files, File{Name: string(rune('a'+i)) + ".yaml", Text: []byte(text)})
	}
	return Find("godwit-agent", files, set, func(name string) (string, bool) {
		value, found := map[string]string{"SET": "http://x", "HOST": "host/write"}[name]
		return value, found
	})
}

func TestMistakesAreToldWithTheirLine(t *testing.T) {
	t.Parallel()
	require.NoError(t, look(nil, sound))
	for _, test := range []struct{ name, from, to, want string }{
		{"a section", "exporters:\n", "exporter:\n", "a.yaml:11: there is no key `exporter`: did you mean `exporters`?"},
		{"a key of the service", "  pipelines:", "  pipeline:", "a.yaml:17: service: there is no key `pipeline`: did you mean `pipelines`?"},
		{"a signal", "metrics/a", "metric/a", "a.yaml:18: service::pipelines: there is no signal `metric`, but metrics, traces, logs, profiles: did you mean `metrics`?"},
		{"a key of a pipeline", "exporters: [remotewrite]", "exporter: [remotewrite]", "a.yaml:18: service::pipelines::metrics/a: there is no key `exporter`: did you mean"},
		{"a part of a match", "$${1}", "${1}", "a.yaml:7: receivers::fastprometheus::config::scrape_configs::relabel_configs::replacement: `${1}` is read as an environment variable: where Prometheus has a `$`, write `$$`, here `$${1}`"},
		{"a named part of a match", "$${1}", "$$${host}", "here `$${host}`"},
		{"no name", `"${env:UNSET}"}`, `"${1}"}`, "a.yaml:14: exporters::remotewrite::external_labels::site: `${1}` is read as an environment variable, and no name of one"},
		{"an endpoint", "env:SET", "env:OTHER", "a.yaml:13: exporters::remotewrite::endpoint: the environment variable OTHER is not set: set it, or give a default, as in `${env:OTHER:-value}`"},
		{"an endpoint in short", "env:SET", "OTHER", "the environment variable OTHER is not set"},
		{"a target", "HOSTS:-localhost", "HOSTS", "a.yaml:9: receivers::fastprometheus::config::scrape_configs::static_configs::targets: the environment variable HOSTS is not set"},
		{"contrib's newer name", "  otlp/spare:", "  prometheus_remote_write/spare:", "a.yaml:10: receivers::prometheus_remote_write/spare: there is no receiver `prometheus_remote_write`: `remotewrite` takes Remote Write, at `/api/v1/write` of its `endpoint`, and is in all distributions; `convert` renames it"},
		{"a component", "  remotewrite:\n", "  remotewrit:\n", "a.yaml:12: exporters::remotewrit: there is no exporter `remotewrit`: did you mean `remotewrite`?"},
		{"another distribution's", "  remotewrite:\n", "  kafka:\n", "a.yaml:12: exporters::kafka: godwit-agent does not have it: run it with the distribution godwit"},
		{"a reference", "exporters: [remotewrite]", "exporters: [remote_write]", "a.yaml:18: service::pipelines::metrics/a::exporters: `remote_write` is not configured under `exporters`: did you mean `remotewrite`?"},
		{"an extension", "extensions: []", "extensions: [console]", "a.yaml:16: service::extensions: `console` is not configured under `extensions`"},
		{"a duration", "    external", "    timeout: 5\n    external", "a.yaml:14: exporters::remotewrite::timeout: 5 without a unit is that many nanoseconds: write 5s"},
		{"a tab", "    endpoint", "\tendpoint", "a.yaml:13: cannot read it as YAML: found"},
		{"a brace", "  extensions: []", "  extensions: [", "a.yaml:16: cannot read it as YAML: "},
		{"too little indented", "          static_configs:", "         static_configs:", "a.yaml:8: cannot read it as YAML: did not find expected"},
		{"too much indented", "    external_labels", "      external_labels", "a.yaml:14: cannot read it as YAML: mapping values are not allowed in this context; look at how this line"},
		{"a list over lines, and a mistake after it", "  extensions: []\n", "  extensions: [\n\n\n\n  ]\n   x: 1\n", "a.yaml:21: cannot read it as YAML: "},
		{"a key twice", "    external", "    endpoint: http://b\n    external", "a.yaml:14: exporters::remotewrite: the key `endpoint` is there already, in line 13"},
		{"a component twice", "exporters:\n", "exporters:\n  remotewrite: {}\n", "a.yaml:13: exporters: the key `remotewrite` is there already, in line 12"},
		{"no receiver", "receivers: [fastprometheus]", "receivers: []", "a.yaml:18: service::pipelines::metrics/a: a pipeline needs at least one of `receivers`"},
		{"a level", "  extensions: []", "  telemetry: {logs: {level: verbose}}", "a.yaml:16: service::telemetry::logs::level: there is no level `verbose`: write debug, info, warn or error"},
		{"no scheme", "${env:SET}/", "host:9090/", "a.yaml:13: exporters::remotewrite::endpoint: `host:9090/api/v1/write` has no scheme: write http://host:9090/api/v1/write, or https://host:9090/api/v1/write"},
		{"another scheme", "${env:SET}/", "tcp://host:9090/", "a.yaml:13: exporters::remotewrite::endpoint: `tcp://host:9090/api/v1/write` must begin with http:// or https://"},
		{"no scheme, and a password", "${env:SET}/", "me:s3cret@host/", "`…@host/api/v1/write` has no scheme: write http://…@host/api/v1/write, or"},
		{"no scheme in a variable", "${env:SET}/api/v1/write", "${env:HOST}", "`host/write`, of the environment variable HOST, has no scheme: write http://host/write, or"},
		{"no scheme in a default", "${env:SET}/api/v1/write", "${env:UNSET:-host}", "a.yaml:13: exporters::remotewrite::endpoint: `host` has no scheme"},
		{"no scheme in a list", "endpoint: ${env:SET}/api/v1/write", "endpoints: [{endpoint: http://a}, {endpoint: b/write}]", "a.yaml:13: exporters::remotewrite::endpoints::endpoint: `b/write` has no scheme"},
		{"a port of a destination", "${env:SET}/api/v1/write", "9090", "a.yaml:13: exporters::remotewrite::endpoint: `9090` is a port without a host: write http://host:9090"},
		{"a port to listen at", "service:\n  extensions: []\n", "extensions:\n  console:\n    endpoint: 13155\nservice:\n  extensions: [console]\n", "a.yaml:17: extensions::console::endpoint: `13155` is a port without an address: write 127.0.0.1:13155 for this machine only, or 0.0.0.0:13155 for all"},
		{"a URL", `"${env:HOSTS:-localhost}:9100"`, "https://a:9100/b/c", "a.yaml:9: receivers::fastprometheus::config::scrape_configs::static_configs::targets: a target is a host and port, not a URL: write a:9100, and `scheme: https` for the job, and `metrics_path: /b/c` for the job"},
	} {
		require.Contains(t, sound, test.from, test.name)
		assert.ErrorContains(t, look(nil, strings.Replace(sound, test.from, test.to, 1)), test.want, test.name)
	}
}

// Something that another file or --set overrides, that no pipeline uses, or that another provider supplies, is no
// mistake.
func TestWhatIsNoMistake(t *testing.T) {
	t.Parallel()
	unset := strings.Replace(sound, "env:SET", "env:OTHER", 1)
	require.Error(t, look(nil, unset))
	require.NoError(t, look(nil, unset, "exporters: {remotewrite: {endpoint: http://a}}\n"))
	require.Error(t, look(nil, unset, "exporters: {remotewrite: {timeout: 1s}}\n"))
	require.NoError(t, look([]string{"exporters.remotewrite.endpoint=http://a"}, unset))
	require.NoError(t, look([]string{"exporters::remotewrite::endpoint=http://a"}, unset))
	require.NoError(t, look(nil, strings.Replace(sound, "${env:SET}", "${file:/a/b}", 1)))
	require.NoError(t, look(nil, strings.Replace(sound, "remotewrite:\n", "remotewrite: &a\n", 1)))
	require.NoError(t, look(nil, strings.Replace(sound, "    external", "    timeout: 0\n    max_batch: 5\n    external", 1)))
	require.NoError(t, look(nil, "service: {extensions: [console]}\n", "extensions: {console: }\n"))
	require.NoError(t, look(nil, strings.Replace(sound, "  remotewrite:\n", "  prometheusremotewrite: {endpoint: http://a}\n  remotewrite:\n", 1)))
	url := strings.Replace(sound, `"${env:HOSTS:-localhost}:9100"`, "https://a/b", 1)
	require.Error(t, look(nil, url))
	require.NoError(t, look(nil, strings.Replace(url, "target_label: b,", "target_label: __address__,", 1)), "a prober's")
	for _, endpoint := range []string{"HTTPS://a/b", `"${env:SET}"`, `"${env:UNSET:-http://${env:SET}}"`, "${env:SET}:9090", "${file:/a}", `""`, ""} {
		require.NoError(t, look(nil, strings.Replace(sound, "${env:SET}/api/v1/write", endpoint, 1)), endpoint)
	}
	bare := strings.Replace(sound, "${env:SET}/", "host/", 1)
	require.Error(t, look(nil, bare))
	require.NoError(t, look(nil, bare, "exporters: {remotewrite: {endpoint: http://a}}\n"))
	require.NoError(t, look(nil, strings.Replace(strings.ReplaceAll(bare, "remotewrite", "otlpstream"), "host/", "host:4317 #", 1)), "no URL")
	// Components from another file, from a variable or from elsewhere in this file.
	const section = "exporters:\n  remotewrite:\n    endpoint: ${env:SET}/api/v1/write\n    external_labels: {site: \"${env:UNSET}\"}\n"
	for _, from := range []string{"${file:exporters.yaml}", "${env:EXPORTERS}", "{<<: *a}", "*a"} {
		require.NoError(t, look(nil, strings.Replace(strings.Replace(sound, section, "exporters: "+from+"\n", 1), "receivers:", "receivers: &a", 1)), from)
	}
	require.Error(t, look(nil, strings.Replace(sound, section, "exporters:\n", 1)))
	require.NoError(t, look(nil, ""))
	require.NoError(t, look(nil, "- a list\n"))
}
