// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package selftelemetry

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
)

// effective is the configuration that a Collector passes to its extensions if the user configured no telemetry: with
// the defaults.
const effective = `
receivers: {otlp: {protocols: {grpc: {endpoint: localhost:4317}}}}
service:
  extensions: [pulse]
  pipelines: {metrics: {receivers: [otlp], exporters: [debug]}}
  telemetry:
    logs: {level: info, encoding: console, sampling: {enabled: true, tick: 10s, initial: 10, thereafter: 100}}
    metrics:
      level: Normal
      readers:
        - pull:
            exporter:
              prometheus: {host: localhost, port: 8888, without_scope_info: true, without_type_suffix: true, without_units: true}
`

func conf(t *testing.T, yaml string) *confmap.Conf {
	t.Helper()
	retrieved, err := confmap.NewRetrievedFromYAML([]byte(yaml))
	require.NoError(t, err)
	c, err := retrieved.AsConf()
	require.NoError(t, err)
	return c
}

func TestEndpoint(t *testing.T) {
	f := func(yaml, want string) {
		t.Helper()
		got, err := Endpoint(conf(t, yaml))
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	const standard = "http://localhost:8888/metrics"
	f(effective, standard)
	// As users write it.
	f(`{}`, standard)
	f(`{service: {telemetry: }}`, standard)
	f(`{service: {telemetry: {metrics: }}}`, standard)
	f(`{service: {telemetry: {metrics: {level: detailed}}}}`, standard)

	reader := func(prometheus string) string {
		return `{service: {telemetry: {metrics: {readers: [{pull: {exporter: {prometheus: ` + prometheus + `}}}]}}}}`
	}
	f(reader(`{host: 127.0.0.1, port: 18888}`), "http://127.0.0.1:18888/metrics")
	f(reader(`{host: 10.1.2.3, port: 8888, without_units: false}`), "http://10.1.2.3:8888/metrics")
	f(reader(`{host: 0.0.0.0, port: 8889}`), "http://localhost:8889/metrics")
	f(reader(`{host: "", port: 8889}`), "http://localhost:8889/metrics")
	f(reader(`{host: "::", port: 8889}`), "http://localhost:8889/metrics")
	f(reader(`{host: "[::1]", port: 8889}`), "http://[::1]:8889/metrics")
	f(reader(`{host: "::1", port: 8889}`), "http://[::1]:8889/metrics")

	// The first page is used.
	f(`{service: {telemetry: {metrics: {readers: [
		{periodic: {interval: 10000, exporter: {otlp: {protocol: http/protobuf, endpoint: "http://localhost:4318"}}}},
		{pull: {exporter: {prometheus: {host: localhost, port: 1}}}},
		{pull: {exporter: {prometheus: {host: localhost, port: 2}}}}]}}}}`, "http://localhost:1/metrics")
}

func TestEndpointWithoutConfigurationIsTheDefault(t *testing.T) {
	got, err := Endpoint(nil)
	require.NoError(t, err)
	assert.Equal(t, "http://localhost:8888/metrics", got)
}

func TestEndpointSaysWhyThereIsNone(t *testing.T) {
	f := func(yaml string, want error) {
		t.Helper()
		got, err := Endpoint(conf(t, yaml))
		require.ErrorIs(t, err, want)
		assert.Empty(t, got)
	}
	f(`{service: {telemetry: {metrics: {level: none}}}}`, ErrLevelNone)
	f(`{service: {telemetry: {metrics: {level: None, readers: [{pull: {exporter: {prometheus: {host: localhost, port: 8888}}}}]}}}}`, ErrLevelNone)
	f(`{service: {telemetry: {metrics: {readers: []}}}}`, ErrNoReader)
	f(`{service: {telemetry: {metrics: {readers: [{periodic: {exporter: {otlp: {endpoint: "http://localhost:4318"}}}}]}}}}`, ErrNoReader)
	f(`{service: {telemetry: {metrics: {readers: [{pull: {exporter: {prometheus: {host: localhost, port: 0}}}}]}}}}`, ErrNoReader)
}

func TestEndpointOfABrokenConfiguration(t *testing.T) {
	f := func(yaml string) {
		t.Helper()
		_, err := Endpoint(conf(t, yaml))
		require.ErrorContains(t, err, "cannot read `service::telemetry::metrics`")
	}
	f(`{service: {telemetry: {metrics: 7}}}`)
	f(`{service: {telemetry: {metrics: {readers: [pull]}}}}`)
}
