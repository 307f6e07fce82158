// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

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

	"github.com/godwit-otel/godwit/internal/inspect"
)

// passes has batches pass a tap until the test ends.
func passes(t *testing.T, tap *inspect.Tap) {
	t.Helper()
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("token", "s3cr3t")
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("geese")
	p := m.SetEmptyGauge().DataPoints().AppendEmpty()
	p.SetIntValue(42)
	p.Attributes().PutStr("url", "http://me:s3cr3t@pond/?token=s3cr3t")
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
				tap.Before(md).After(md)
			}
		}
	}()
	t.Cleanup(func() {
		close(done)
		<-ended
	})
}

func TestLiveDataIsShownWithoutSecrets(t *testing.T) {
	s := open(t)
	var tap inspect.Tap
	s.RegisterInspection(inspect.Source{Kind: component.KindProcessor, ID: id("cardinality"), Tap: &tap})
	passes(t, &tap)
	status, _, text := s.do(http.MethodPost, "/api/v1/live", `{"node":"processor/cardinality"}`)
	require.Equal(t, http.StatusOK, status, text)
	var live liveJSON
	require.NoError(t, json.Unmarshal([]byte(text), &live))
	require.Equal(t, placeAround, live.Place)
	require.Len(t, live.Batches, 1)
	point := live.Batches[0].Points[0]
	require.Equal(t, []string{"geese", "42", inspect.FatePassed}, []string{point.Name, point.Value, point.Fate})
	require.NotContains(t, text, "s3cr3t")
}

// Of targets with fixed times each is seen, whatever else came right before it.
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
			time.Sleep(500 * time.Millisecond) // when the next looks there is time before the early one
		}
		require.Greater(t, seen["early"], 10)
		require.Greater(t, seen["late"], 10)
	})
}

func TestLiveDataIsBounded(t *testing.T) {
	s := open(t)
	var tap inspect.Tap
	s.RegisterInspection(inspect.Source{Kind: component.KindReceiver, ID: id("otlpstream"), Tap: &tap})
	s.watchFor = time.Millisecond
	status, _, text := s.do(http.MethodPost, "/api/v1/live", `{"node":"receiver/otlpstream"}`)
	require.Equal(t, http.StatusOK, status, text)
	require.JSONEq(t, `{"node":"receiver/otlpstream","place":"out","batches":[]}`, text, "nothing passed")

	status, code, _ := s.fault(http.MethodPost, "/api/v1/live", `{"node":"receiver/other"}`)
	require.Equal(t, http.StatusNotFound, status)
	require.Equal(t, "not_found", code)

	for range maxWatching {
		s.watching <- struct{}{}
	}
	status, code, _ = s.fault(http.MethodPost, "/api/v1/live", `{"node":"receiver/otlpstream"}`)
	require.Equal(t, http.StatusTooManyRequests, status)
	require.Equal(t, "busy", code)
}
