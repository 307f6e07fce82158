// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package configuration

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/consoletest"
)

func TestConfiguration(t *testing.T) {
	w := consoletest.New(t)
	w.Configure(consoletest.Pipelines)
	view := View{Sources: w.Sources, Service: w.Service, Build: component.BuildInfo{Command: "test-agent"}}
	got := consoletest.Get[configurationJSON](t, view.Answer, "")
	require.Equal(t, "test-agent", got.Collector.Name)
	require.Contains(t, got.YAML, "pipelines:\n")
	require.Zero(t, got.Redacted)
	ids := map[string][]string{}
	for _, c := range got.Components {
		ids[c.ID] = c.Pipelines
	}
	require.Equal(t, []string{"metrics"}, ids["receiver/fastprometheus"])
	require.Equal(t, []string{"metrics", "metrics/2"}, ids["connector/forward"])
	require.Empty(t, ids["extension/console"])
	require.Contains(t, ids, "extension/console")
	require.NotEmpty(t, got.Modules)
	status, h, text := consoletest.Ask(t, view.Answer, "?format=yaml", "")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "application/yaml", h.Get("Content-Type"))
	require.Equal(t, got.YAML, text)
}
