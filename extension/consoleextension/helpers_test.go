// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensioncapabilities"
	"go.opentelemetry.io/collector/extension/extensiontest"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/metadata"
	"github.com/godwit-otel/godwit/internal/inspect"
)

// clock is a time that passes when told to.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// subject is a console that is open.
type subject struct {
	*console

	t     *testing.T
	clock *clock
}

func open(t *testing.T, change ...func(*Config)) *subject {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	cfg.ServerConfig.NetAddr.Endpoint = "127.0.0.1:0"
	for _, f := range change {
		f(cfg)
	}
	require.NoError(t, confmap.Validate(cfg))
	set := extensiontest.NewNopSettings(metadata.Type)
	set.BuildInfo = component.BuildInfo{Command: "test-agent", Version: "1.2.3"}
	s := &subject{newConsole(cfg, set), t, &clock{at: time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)}}
	s.now = s.clock.now
	require.NoError(t, s.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(t, s.Shutdown(ctx))
	})
	return s
}

// configure tells the console the effective configuration.
func (s *subject) configure(yaml string) {
	s.t.Helper()
	retrieved, err := confmap.NewRetrievedFromYAML([]byte(yaml))
	require.NoError(s.t, err)
	conf, err := retrieved.AsConf()
	require.NoError(s.t, err)
	require.NoError(s.t, s.NotifyConfigSnapshot(s.t.Context(), extensioncapabilities.NewConfigSnapshot(conf, nil)))
}

// client keeps no connections, so that none outlives its test.
var client = &http.Client{
	Timeout:       time.Minute,
	Transport:     &http.Transport{DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func (s *subject) do(method, path, body string, change ...func(*http.Request)) (status int, header http.Header, text string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.address+path, strings.NewReader(body))
	require.NoError(s.t, err)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, f := range change {
		f(r)
	}
	response, err := client.Do(r)
	require.NoError(s.t, err)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	require.NoError(s.t, err)
	return response.StatusCode, response.Header, string(data)
}

// get reads what the API answers now, whatever it has answered before.
func get[T any](s *subject, path string) (out T) {
	s.t.Helper()
	s.shared.forget(s.now().Add(sharedFor))
	status, _, text := s.do(http.MethodGet, path, "")
	require.Equal(s.t, http.StatusOK, status, text)
	require.NoError(s.t, json.Unmarshal([]byte(text), &out), text)
	return out
}

// fault is what the API answers to a request that makes no sense.
func (s *subject) fault(method, path, body string, change ...func(*http.Request)) (status int, code, message string) {
	s.t.Helper()
	status, _, text := s.do(method, path, body, change...)
	var out struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	require.NoError(s.t, json.Unmarshal([]byte(text), &out), text)
	return status, out.Error.Code, out.Error.Message
}

func id(text string) component.ID {
	out := component.ID{}
	if err := out.UnmarshalText([]byte(text)); err != nil {
		panic(err)
	}
	return out
}

// fakeLabels are labels of a target.
type fakeLabels struct{ labels, discovered []inspect.Label }

func (f fakeLabels) Labels() []inspect.Label     { return append([]inspect.Label{}, f.labels...) }
func (f fakeLabels) Discovered() []inspect.Label { return append([]inspect.Label{}, f.discovered...) }

// scraped is a receiver with n targets, of which each hundredth fails.
func scraped(n int) inspect.Source {
	return inspect.Source{
		Kind: component.KindReceiver, ID: id("fastprometheus"), Signal: "metrics",
		Flow: func() inspect.Flow {
			return inspect.Flow{In: int64(n), Targets: map[string]int{inspect.Healthy: n - n/100, inspect.Failing: n / 100}}
		},
		Targets: func() inspect.Targets {
			job := inspect.Job{Name: "node", Targets: make([]inspect.Target, n), Drops: 1, Rules: func() (string, string) { return "- action: keep\n", "" }}
			job.Dropped = []inspect.Labels{fakeLabels{discovered: []inspect.Label{{Name: "__address__", Value: "dropped:1"}}}}
			for i := range job.Targets {
				address := fmt.Sprintf("10.0.%d.%d:9100", i/256, i%256)
				t := &job.Targets[i]
				*t = inspect.Target{
					ID: fmt.Sprintf("%016x", i), URL: "http://" + address + "/metrics", State: inspect.Healthy, Interval: 15 * time.Second,
					Samples: i, Bytes: int64(n - i), LastScrape: time.Unix(int64(i), 0), LastDuration: time.Duration(i),
					Labels: fakeLabels{
						labels: []inspect.Label{
							{Name: "instance", Value: address},
							{Name: "job", Value: "node"},
							{Name: "cluster", Value: "north"},
							{Name: "rack", Value: fmt.Sprintf("R%d", i%40)},
						},
						discovered: []inspect.Label{{Name: "__address__", Value: address}, {Name: "__param_token", Value: "s3cr3t"}},
					},
				}
				if i%100 == 99 {
					t.State, t.Reason, t.LastError = inspect.Failing, reasonRefused, "dial tcp "+address+": connect: connection refused"
				}
			}
			return inspect.Targets{Jobs: []inspect.Job{job}}
		},
		Look: fakeLooker{},
	}
}

type fakeLooker struct{ waiting chan chan struct{} }

func (f fakeLooker) Look(ctx context.Context, id string, limit int) (inspect.Page, error) {
	switch {
	case f.waiting != nil:
		release := make(chan struct{})
		f.waiting <- release
		select {
		case <-release:
		case <-ctx.Done():
			return inspect.Page{}, ctx.Err()
		}
	case id == "000000000000000f":
		return inspect.Page{}, errors.New("Get \"http://u:s3cr3t@host/?token=s3cr3t\": broken")
	case id != "0000000000000001":
		return inspect.Page{}, inspect.ErrNoTarget
	}
	return inspect.Page{URL: "http://10.0.0.1:9100/metrics", Status: "503 Service Unavailable", ContentType: "text/plain", Encoding: "gzip", WireBytes: limit, Body: []byte("up 1\n\xff")}, nil
}

func newSettings() extension.Settings { return extensiontest.NewNopSettings(metadata.Type) }

// fakeCardinality answers what a test says.
type fakeCardinality struct {
	overview inspect.CardinalityOverview
	top      inspect.Top
	asked    *inspect.TopQuery
	slow     func() // a Top takes as long
}

func (f fakeCardinality) TSDBStatus(limit int) ([]byte, error) {
	return fmt.Appendf(nil, `{"status":"success","data":{"limit":%d}}`, limit), nil
}

func (f fakeCardinality) Overview() inspect.CardinalityOverview { return f.overview }

func (f fakeCardinality) Top(query inspect.TopQuery) inspect.Top {
	if f.asked != nil {
		*f.asked = query
	}
	if f.slow != nil {
		f.slow()
	}
	return f.top
}

func (f fakeCardinality) Metric(name string) (inspect.MetricDetail, bool) {
	return inspect.MetricDetail{Row: inspect.Row{Name: name}, Labels: []inspect.Row{
		{Name: "path"}, {Name: "id", Values: inspect.Estimate{Value: 9}}, {Name: "method"},
	}}, name == "m"
}

func (f fakeCardinality) WhatIf(change inspect.Change) (inspect.Projection, error) {
	if change.Metric == "unseen" {
		return inspect.Projection{}, errors.New("there is no metric \"unseen\"")
	}
	return inspect.Projection{Before: inspect.Estimate{Value: 10}, After: inspect.Estimate{Value: 1, Error: 0.5}}, nil
}
