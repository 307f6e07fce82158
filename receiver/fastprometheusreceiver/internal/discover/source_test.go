// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/config"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// next waits for the first update that meets the condition.
func next(t *testing.T, s *Source, condition func(Groups) bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		select {
		case update, open := <-s.Updates():
			require.True(t, open)
			if condition(update.Groups) {
				return
			}
		case <-deadline:
			require.Fail(t, "no such update")
		}
	}
}

func TestSource(t *testing.T) {
	s, err := NewSource(zap.NewNop(), prometheus.NewRegistry(), nil)
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, s.Apply([]*config.ScrapeConfig{job(t, "  static_configs: [{targets: [a:1, b:1]}]\n")}))
	next(t, s, func(g Groups) bool { return len(g["test"]) == 1 && len(g["test"][0].Targets) == 2 })

	other := job(t, "  static_configs: [{targets: [c:1]}]\n")
	other.JobName = "other"
	require.NoError(t, s.Apply([]*config.ScrapeConfig{other}))
	next(t, s, func(g Groups) bool {
		_, old := g["test"]
		return !old && len(g["other"]) == 1
	})
}

// An error of a mechanism is logged once.
func TestErrorsHaveNoStackTraces(t *testing.T) {
	entries := make(chan zapcore.Entry, 100)
	core, _ := observer.New(zap.ErrorLevel)
	s, err := NewSource(zap.New(zapcore.RegisterHooks(core, func(e zapcore.Entry) error {
		entries <- e
		return nil
	})), prometheus.NewRegistry(), nil)
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, s.Apply([]*config.ScrapeConfig{job(t, "  file_sd_configs: [{files: ["+filepath.ToSlash(t.TempDir())+"/gone/*.yml]}]\n")}))
	e := <-entries
	assert.Equal(t, "Error adding file watch", e.Message)
	assert.Empty(t, e.Stack)
}

// Two receivers in one process do not interfere.
func TestSourcesAreIndependent(t *testing.T) {
	for range 2 {
		s, err := NewSource(zap.NewNop(), prometheus.NewRegistry(), nil)
		require.NoError(t, err)
		defer s.Close()
	}
	s, err := NewSource(zap.NewNop(), prometheus.NewRegistry(), nil)
	require.NoError(t, err)
	s.Close()
	_, open := <-s.Updates()
	assert.False(t, open)
}

// An endless response is aborted. The responses of a connection may have any total size.
func TestAnswersAreBounded(t *testing.T) {
	const limit = 1 << 20
	var endless atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if !endless.Load() {
			_, _ = w.Write([]byte(`[{"targets": ["a:1"]}]`))
			return
		}
		for err := error(nil); err == nil; {
			_, err = w.Write(bytes.Repeat([]byte(" "), 64<<10))
		}
	}))
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{DialContext: bounded((&net.Dialer{}).DialContext, limit)}}
	get := func() (int, error) {
		response, err := client.Get(server.URL)
		require.NoError(t, err)
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		return len(text), err
	}
	for range 10_000 { // their heads together exceed the limit
		n, err := get()
		require.NoError(t, err)
		require.Equal(t, 22, n)
	}
	endless.Store(true)
	n, err := get()
	require.ErrorContains(t, err, "the answer is larger than 1MiB")
	require.LessOrEqual(t, n, limit)
	client.CloseIdleConnections()
	endless.Store(false)

	s, err := NewSource(zap.NewNop(), prometheus.NewRegistry(), nil)
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, s.Apply([]*config.ScrapeConfig{job(t, "  http_sd_configs: [{url: "+server.URL+", refresh_interval: 10ms}]\n")}))
	next(t, s, func(g Groups) bool { return len(g["test"]) == 1 && len(g["test"][0].Targets) == 1 })
}
