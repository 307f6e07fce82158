// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package consoletest has what tests of the console's parts use: components with counters that a test sets, and a clock
// that a test advances.
package consoletest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/answer"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/meter"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/service"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/sources"
	"github.com/godwit-otel/godwit/internal/inspect"
)

// Clock is a clock that a test advances.
type Clock struct {
	mu sync.Mutex
	at time.Time
}

// NewClock returns a clock that stands still.
func NewClock() *Clock { return &Clock{at: time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)} }

// Now returns the clock's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// Pass advances the clock.
func (c *Clock) Pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// World is a set of components and a meter, which has taken its first reading.
type World struct {
	T       testing.TB
	Clock   *Clock
	Sources *sources.Registry
	Service *service.Service
	Meter   *meter.Meter
}

// New returns a world without components.
func New(t testing.TB) *World {
	t.Helper()
	clock := NewClock()
	all := sources.NewRegistry(clock.Now)
	w := &World{T: t, Clock: clock, Sources: all, Service: &service.Service{}, Meter: meter.New(all, clock.Now)}
	w.Meter.Look()
	return w
}

// Pass lets an interval pass, and takes a reading.
func (w *World) Pass() {
	w.Clock.Pass(meter.Interval)
	w.Meter.Look()
}

// Register adds a component.
func (w *World) Register(s inspect.Source) { w.Sources.Register(s) }

// Configure sets the effective configuration.
func (w *World) Configure(yaml string) {
	w.T.Helper()
	w.Service.Configured(Conf(w.T, yaml))
}

// Conf parses a configuration.
func Conf(t testing.TB, yaml string) *confmap.Conf {
	t.Helper()
	retrieved, err := confmap.NewRetrievedFromYAML([]byte(yaml))
	require.NoError(t, err)
	conf, err := retrieved.AsConf()
	require.NoError(t, err)
	return conf
}

// ID parses the ID of a component.
func ID(text string) component.ID {
	out := component.ID{}
	if err := out.UnmarshalText([]byte(text)); err != nil {
		panic(err)
	}
	return out
}

// Ask sends a request to a function of the API. query begins with a question mark; the request has the method POST if
// there is a body.
func Ask(t testing.TB, f answer.Func, query, body string, change ...func(*http.Request)) (status int, header http.Header, text string) {
	t.Helper()
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	r := httptest.NewRequestWithContext(t.Context(), method, "/api"+query, strings.NewReader(body))
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	return w.Code, w.Header(), w.Body.String()
}

// Get returns the API's answer to a request.
func Get[T any](t testing.TB, f answer.Func, query string, change ...func(*http.Request)) (out T) {
	t.Helper()
	status, _, text := Ask(t, f, query, "", change...)
	require.Equal(t, http.StatusOK, status, text)
	require.NoError(t, json.Unmarshal([]byte(text), &out), text)
	return out
}

// Fault returns the API's error for a request.
func Fault(t testing.TB, f answer.Func, query, body string, change ...func(*http.Request)) (status int, code, message string) {
	t.Helper()
	status, _, text := Ask(t, f, query, body, change...)
	code, message = FaultOf(t, text)
	return status, code, message
}

// FaultOf returns the error in an answer.
func FaultOf(t testing.TB, text string) (code, message string) {
	t.Helper()
	var out struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	require.NoError(t, json.Unmarshal([]byte(text), &out), text)
	return out.Error.Code, out.Error.Message
}
