// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// statusHost records the statuses that components report.
type statusHost struct {
	component.Host

	mu       sync.Mutex
	statuses []componentstatus.Status
}

func (h *statusHost) Report(event *componentstatus.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.statuses = append(h.statuses, event.Status())
}

func (h *statusHost) reported() []componentstatus.Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]componentstatus.Status(nil), h.statuses...)
}

// The console is not essential: while its address is in use, the Collector runs without it.
func TestABusyEndpointIsWaitedFor(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer busy.Close()
	address := busy.Addr().String()

	core, logs := observer.New(zap.InfoLevel)
	host := &statusHost{Host: componenttest.NewNopHost()}
	cfg := createDefaultConfig().(*Config)
	cfg.ServerConfig.NetAddr.Endpoint = address
	set := newSettings()
	set.Logger = zap.New(core)
	c := newConsole(cfg, set, time.Now)
	require.NoError(t, c.Start(t.Context(), host))
	require.Equal(t, []componentstatus.Status{componentstatus.StatusRecoverableError}, host.reported())
	require.Len(t, logs.FilterMessageSnippet("not served").All(), 1)
	require.Empty(t, logs.FilterMessageSnippet("is open").All())

	require.NoError(t, busy.Close())
	require.Eventually(t, func() bool { return len(host.reported()) == 2 }, time.Minute, 10*time.Millisecond)
	require.Equal(t, componentstatus.StatusOK, host.reported()[1])
	response, err := client.Get("http://" + address + "/")
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.NoError(t, c.Shutdown(t.Context()))
	require.Len(t, logs.FilterMessageSnippet("is open").All(), 1)
	require.Len(t, logs.FilterMessageSnippet("not served").All(), 1, "said once")
}

// Shutdown does not wait for the address.
func TestShutdownWhileTheEndpointIsBusy(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer busy.Close()
	cfg := createDefaultConfig().(*Config)
	cfg.ServerConfig.NetAddr.Endpoint = busy.Addr().String()
	c := newConsole(cfg, newSettings(), time.Now)
	require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, c.Shutdown(t.Context()))
}
