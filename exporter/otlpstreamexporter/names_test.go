// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/resolver"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
)

// names defines what names resolve to in tests. gRPC accepts resolvers only before anything else.
var names = newNames()

type nameService struct {
	mu    sync.Mutex
	addrs map[string][]string
}

func newNames() *nameService {
	n := &nameService{addrs: map[string][]string{}}
	resolver.Register(n)
	return n
}

func (n *nameService) set(name string, addrs ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addrs[name] = addrs
}

func (*nameService) Scheme() string { return "names" }

func (n *nameService) Build(target resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var state resolver.State
	for _, addr := range n.addrs[target.Endpoint()] {
		state.Addresses = append(state.Addresses, resolver.Address{Addr: addr})
	}
	return n, cc.UpdateState(state)
}

func (*nameService) ResolveNow(resolver.ResolveNowOptions) {}

func (*nameService) Close() {}

// TestNewConnectionsGoToAnyAddressThatTheNameHasByThen is about gRPC: for WebSocket the system resolves names.
func TestNewConnectionsGoToAnyAddressThatTheNameHasByThen(t *testing.T) {
	old, added := run(t, &testServer{stream: echo}, transport.GRPC), run(t, &testServer{stream: echo}, transport.GRPC)
	names.set("gateway", old.addr)
	e := newTestExporter(t, transport.GRPC, "names:///gateway", func(cfg *Config) {
		cfg.Rebalance.Scope = scopeConnection
		cfg.Rebalance.Requests = 5
	})
	const before = 30
	e.export(0, before)
	require.Equal(t, int64(before), e.settled().Acked)
	require.Len(t, old.seen(), before)

	names.set("gateway", old.addr, added.addr)
	n := before
	more := func(s *testServer) {
		had := len(s.seen())
		eventually(t, func() bool {
			e.export(n, 1)
			n++
			return len(s.seen()) > had+5
		}, "it has its share")
	}
	more(added)
	more(old)
	require.Equal(t, int64(n), e.settled().Acked)
	require.Equal(t, n, len(old.seen())+len(added.seen()), "nothing was sent twice")
}
