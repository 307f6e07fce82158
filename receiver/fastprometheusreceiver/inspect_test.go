// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

	"github.com/godwit-otel/godwit/internal/inspect"
)

// watcher is an extension, and the host that has it.
type watcher struct {
	component.StartFunc
	component.ShutdownFunc

	source       inspect.Source
	unregistered bool
}

func (w *watcher) RegisterInspection(s inspect.Source) func() {
	w.source = s
	return func() { w.unregistered = true }
}

func (w *watcher) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{component.MustNewID("watcher"): w}
}

func TestInspection(t *testing.T) {
	good, bad := newEndpoint(t, text), newEndpoint(t, text)
	bad.handle(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "metrics are not here", http.StatusNotFound)
	})
	r := prepare(t, configure(t, fmt.Sprintf(`
config:
  scrape_configs:
    - job_name: b
      scrape_interval: 100ms
      scrape_timeout: 90ms
      target_limit: 7
      basic_auth: {username: me, password: secret}
      static_configs: [{targets: [%s, %s], labels: {__meta_zone: east}}]
      relabel_configs: [{source_labels: [__meta_zone], target_label: zone}]
    - job_name: a
      static_configs: [{targets: [gone:1, gone:2]}]
      keep_dropped_targets: 1
      relabel_configs: [{action: drop}]
`, good.address(), bad.address())))
	w := &watcher{}
	require.NoError(t, r.Start(t.Context(), w))
	require.Eventually(t, func() bool {
		f := w.source.Flow()
		return f.In > 0 && f.Out == f.In && f.Failed["status"] > 0 && f.Targets[inspect.Healthy] == 1 && f.Targets[inspect.Failing] == 1
	}, patience, glance, "what a scrape says about itself came in, too")

	all := w.source.Targets()
	require.Len(t, all.Jobs, 2)
	a, b := all.Jobs[0], all.Jobs[1]
	require.Equal(t, 2, a.Drops)
	require.Len(t, a.Dropped, 1)
	require.Contains(t, fmt.Sprint(a.Dropped[0].Discovered()), "gone:")
	require.Empty(t, a.Dropped[0].Labels())
	require.Equal(t, 7, b.Limit)
	relabel, metricRelabel := b.Rules()
	require.Contains(t, relabel, "target_label: zone")
	require.Empty(t, metricRelabel)
	ids := map[string]string{}
	for _, target := range b.Targets {
		require.Len(t, target.ID, 16)
		ids[target.State] = target.ID
		require.Contains(t, target.Labels.Labels(), inspect.Label{Name: "zone", Value: "east"})
		require.NotContains(t, fmt.Sprint(target.Labels.Labels()), "__", "reserved ones are none")
		require.Contains(t, target.Labels.Discovered(), inspect.Label{Name: "__meta_zone", Value: "east"})
		switch target.State {
		case inspect.Healthy:
			require.Equal(t, 2, target.Samples)
			require.Equal(t, int64(len(text)), target.Bytes)
			require.Empty(t, target.Reason)
		case inspect.Failing:
			require.Equal(t, "status", target.Reason)
			require.Contains(t, target.LastError, "404")
		}
	}
	require.Len(t, ids, 2)

	good.handle(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		fmt.Fprintf(w, "%s %s\n%s", user, password, strings.Repeat("#", 1000))
	})
	page, err := w.source.Look.Look(t.Context(), ids[inspect.Healthy], 100)
	require.NoError(t, err)
	require.True(t, page.Truncated)
	require.Len(t, page.Body, 100)
	require.Contains(t, string(page.Body), "me [REDACTED]", "as a scrape would")
	require.Equal(t, good.URL+"/metrics", page.URL)
	require.Greater(t, page.WireBytes, 1000)

	page, err = w.source.Look.Look(t.Context(), ids[inspect.Failing], 100)
	require.NoError(t, err)
	require.Equal(t, "404 Not Found", page.Status)
	require.Contains(t, string(page.Body), "not here", "what an error says is what people look for")
	for _, id := range []string{"", "0000000000000000", good.URL, "../" + ids[inspect.Healthy]} {
		_, err = w.source.Look.Look(t.Context(), id, 100)
		require.ErrorIs(t, err, inspect.ErrNoTarget)
	}

	require.False(t, w.unregistered)
	require.NoError(t, r.Shutdown(context.Background()))
	require.True(t, w.unregistered)
	_, err = w.source.Look.Look(t.Context(), ids[inspect.Healthy], 100)
	require.Error(t, err, "nothing is fetched when the receiver has stopped")
}
