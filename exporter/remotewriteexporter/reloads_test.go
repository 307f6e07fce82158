// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

// harbour is a destination of several tenants. While it is rough, some requests fail, and others get no response.
type harbour struct {
	rough atomic.Bool
	asked atomic.Int64

	mu      sync.Mutex
	arrived map[string]bool // by tenant and number
}

func (h *harbour) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	tenant := r.Header.Get("X-Scope-Orgid")
	if h.rough.Load() {
		switch n := h.asked.Add(1); {
		case n%5 == 1:
			_, _ = io.Copy(io.Discard, r.Body) // otherwise a closed connection is not noticed
			<-r.Context().Done()
			return
		case n%5 == 2 || tenant == "c":
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
	}
	series, err := decode(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var written promwrite.Written
	for i := range series {
		written.Samples += len(series[i].Samples)
		for _, s := range series[i].Samples {
			h.arrived[fmt.Sprint(tenant, s.Value)] = true
		}
	}
	written.SetHeaders(w.Header())
	w.WriteHeader(http.StatusNoContent)
}

// TestReloadsUnderLoadLoseNothing: whatever kinds of queues an exporter and its successor have, and although callers
// wait for room during its shutdown, everything that was acknowledged to any of several tenants arrives; and a shutdown
// takes no longer than it may.
func TestReloadsUnderLoadLoseNothing(t *testing.T) {
	const (
		inMemory, inDirectory, inStorage = "memory", "directory", "storage"
		shutdownTimeout                  = 20 * time.Millisecond
		each                             = 30 // acknowledged between two reloads
	)
	h := &harbour{arrived: map[string]bool{}}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	directory, host := t.TempDir(), newFiles(t, t.TempDir(), nil)
	begin := func(kind string) *remoteWrite {
		e := create(t, func(c *Config) {
			c.Endpoint, c.ShutdownTimeout = server.URL, shutdownTimeout
			c.Tenant.Header, c.Tenant.FromResourceAttribute = "X-Scope-OrgID", "tenant"
			c.Queue.Size, c.Queue.BlockTimeout = 32<<10, 10*time.Millisecond
			c.Timeout = 5 * shutdownTimeout
			switch kind {
			case inDirectory:
				c.Queue.Directory = filepath.Join(directory, "queue")
			case inStorage:
				c.Queue.Storage = &storageID
			}
		})
		var of component.Host = host
		if kind == inMemory {
			of = componenttest.NewNopHost()
		}
		require.NoError(t, e.Start(t.Context(), of))
		return e
	}

	var now atomic.Pointer[remoteWrite]
	var acknowledged, refused atomic.Int64
	var callers sync.WaitGroup
	var over atomic.Bool
	var mu sync.Mutex
	owed := map[string]bool{}
	h.rough.Store(true)
	now.Store(begin(inMemory))
	t.Cleanup(func() {
		over.Store(true)
		callers.Wait()
		require.NoError(t, now.Load().Shutdown(context.Background()))
	})
	for _, tenant := range []string{"a", "b", "c", "d"} {
		callers.Go(func() {
			for n := 1; !over.Load(); {
				md := gauges(1, n)
				md.ResourceMetrics().At(0).Resource().Attributes().PutStr("tenant", tenant)
				if err := now.Load().ConsumeMetrics(context.Background(), md); err != nil {
					if consumererror.IsPermanent(err) {
						t.Errorf("nobody brings it again: %v", err)
					}
					refused.Add(1)
					continue
				}
				mu.Lock()
				owed[fmt.Sprint(tenant, n)] = true
				mu.Unlock()
				acknowledged.Add(1)
				n++
			}
		})
	}
	for _, kind := range []string{
		inMemory, inDirectory, inDirectory, inMemory, inStorage, inStorage, inMemory, inMemory, inStorage, inDirectory, inMemory,
	} {
		enough := acknowledged.Load() + each
		eventually(t, func() bool { return acknowledged.Load() >= enough }, "data is taken")
		begun := time.Now()
		require.NoError(t, now.Load().Shutdown(context.Background()))
		require.Less(t, time.Since(begun), shutdownTimeout+patience/6)
		now.Store(begin(kind))
	}
	over.Store(true)
	callers.Wait()
	require.Positive(t, refused.Load())

	h.rough.Store(false)
	for _, kind := range []string{inStorage, inDirectory} { // the first one takes what is in memory, and each what it has on disk
		require.NoError(t, now.Load().Shutdown(context.Background()))
		now.Store(begin(kind))
		eventually(t, func() bool { return now.Load().Snapshot().Destinations[0].QueuedBlocks == 0 }, "everything is sent")
	}
	require.NoError(t, now.Load().Shutdown(context.Background()))
	h.mu.Lock()
	defer h.mu.Unlock()
	missing := 0
	for what := range owed {
		if !h.arrived[what] {
			missing++
		}
	}
	require.Zero(t, missing, "of %d", len(owed))
	require.Len(t, owed, int(acknowledged.Load()))
}
