// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/consoletest"
	"github.com/godwit-otel/godwit/internal/inspect"
)

// subject is the view of a test's data.
type subject struct {
	*consoletest.World

	view *View
}

func open(t *testing.T) *subject {
	t.Helper()
	w := consoletest.New(t)
	return &subject{w, New(w.Sources)}
}

func TestLiveDataIsShownWithoutSecrets(t *testing.T) {
	s := open(t)
	var tap inspect.Tap
	s.Register(inspect.Source{Kind: component.KindProcessor, ID: consoletest.ID("cardinality"), Tap: &tap})
	consoletest.Passes(t, &tap)
	status, _, text := consoletest.Ask(t, s.view.Answer, "", `{"node":"processor/cardinality"}`)
	require.Equal(t, http.StatusOK, status, text)
	var live liveJSON
	require.NoError(t, json.Unmarshal([]byte(text), &live))
	require.Equal(t, placeAround, live.Place)
	require.Len(t, live.Batches, 1)
	point := live.Batches[0].Points[0]
	require.Equal(t, []string{"geese", "42", inspect.FatePassed}, []string{point.Name, point.Value, point.Fate})
	require.NotContains(t, text, "s3cr3t")
}

// Of targets with fixed scrape times each one is seen, whatever was scraped shortly before.
func TestLiveDataOfEachTargetIsSeen(t *testing.T) {
	named := func(name string) pmetric.Metrics {
		md := pmetric.NewMetrics()
		m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		m.SetName(name)
		m.SetEmptyGauge().DataPoints().AppendEmpty()
		return md
	}
	synctest.Test(t, func(t *testing.T) {
		var tap inspect.Tap
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			early, late := named("early"), named("late")
			for {
				select {
				case <-ctx.Done():
					return
				case <-time.After(time.Second):
				}
				tap.Metrics(early)
				time.Sleep(time.Millisecond)
				tap.Metrics(late)
			}
		}()
		seen := map[string]int{}
		for range 100 {
			glance, err := anyOf(ctx, []*inspect.Tap{&tap})
			require.NoError(t, err)
			seen[glance.Points[0].Name]++
			time.Sleep(500 * time.Millisecond) // the next look begins before the early one
		}
		require.Greater(t, seen["early"], 10)
		require.Greater(t, seen["late"], 10)
	})
}

func TestLiveDataIsBounded(t *testing.T) {
	s := open(t)
	var tap inspect.Tap
	s.Register(inspect.Source{Kind: component.KindReceiver, ID: consoletest.ID("otlpstream"), Tap: &tap})
	s.view.watchFor = time.Millisecond
	status, _, text := consoletest.Ask(t, s.view.Answer, "", `{"node":"receiver/otlpstream"}`)
	require.Equal(t, http.StatusOK, status, text)
	require.JSONEq(t, `{"node":"receiver/otlpstream","place":"out","batches":[]}`, text, "nothing passed")

	status, code, _ := consoletest.Fault(t, s.view.Answer, "", `{"node":"receiver/other"}`)
	require.Equal(t, http.StatusNotFound, status)
	require.Equal(t, "not_found", code)

	for range maxWatching {
		s.view.watching <- struct{}{}
	}
	status, code, _ = consoletest.Fault(t, s.view.Answer, "", `{"node":"receiver/otlpstream"}`)
	require.Equal(t, http.StatusTooManyRequests, status)
	require.Equal(t, "busy", code)
}
