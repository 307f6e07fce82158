// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensioncapabilities"
	"go.opentelemetry.io/collector/extension/extensiontest"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/consoletest"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/metadata"
	"github.com/godwit-otel/godwit/internal/inspect"
)

// subject is a console under test.
type subject struct {
	*console

	t     *testing.T
	clock *consoletest.Clock
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
	clock := consoletest.NewClock()
	s := &subject{newConsole(cfg, set, clock.Now), t, clock}
	require.NoError(t, s.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(t, s.Shutdown(ctx))
	})
	return s
}

// configure passes the effective configuration to the console.
func (s *subject) configure(yaml string) {
	s.t.Helper()
	conf := consoletest.Conf(s.t, yaml)
	require.NoError(s.t, s.NotifyConfigSnapshot(s.t.Context(), extensioncapabilities.NewConfigSnapshot(conf, nil)))
}

// client does not keep connections, which would outlive their test.
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

// get returns the current response of the API.
func get[T any](s *subject, path string) (out T) {
	s.t.Helper()
	status, _, text := s.do(http.MethodGet, path, "")
	require.Equal(s.t, http.StatusOK, status, text)
	require.NoError(s.t, json.Unmarshal([]byte(text), &out), text)
	return out
}

// fault returns the API's response to an invalid request.
func (s *subject) fault(method, path, body string, change ...func(*http.Request)) (status int, code, message string) {
	s.t.Helper()
	status, _, text := s.do(method, path, body, change...)
	code, message = consoletest.FaultOf(s.t, text)
	return status, code, message
}

func (s *subject) processor(name string, c inspect.Cardinality) {
	s.RegisterInspection(inspect.Source{Kind: component.KindProcessor, ID: consoletest.ID(name), Cardinality: c})
}

func newSettings() extension.Settings { return extensiontest.NewNopSettings(metadata.Type) }
