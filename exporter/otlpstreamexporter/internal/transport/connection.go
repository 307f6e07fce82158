// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/stats"
)

// connection is a gRPC connection that streams and unary requests share. It may connect to several addresses, and
// records when each was last heard from.
type connection struct {
	*grpc.ClientConn

	wire      *atomic.Int64 // bytes sent
	begun     time.Time
	mu        sync.Mutex
	addresses map[string]*address // connected ones

	// Guarded by the transport's lock: the number of calls that use it, and whether it is closed when the last of them
	// ends.
	users    int
	replaced bool
}

// address is an address of a connection.
type address struct {
	begun time.Time
	heard atomic.Int64 // nanoseconds since begun
	conns int          // number of transport connections; guarded by the connection's lock
}

func (a *address) hears() { a.heard.Store(int64(time.Since(a.begun))) }

func (a *address) silentSince(moment time.Time) bool {
	return time.Duration(a.heard.Load()) < moment.Sub(a.begun)
}

// call records the address to which a call went.
type call struct{ to atomic.Pointer[address] }

type callKey struct{}

// calling returns a context that records a call's address.
func calling(ctx context.Context) (context.Context, *call) {
	c := &call{}
	return context.WithValue(ctx, callKey{}, c), c
}

// at returns an address, and changes its number of connections.
func (c *connection) at(remote net.Addr, more int) *address {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := remote.String()
	a := c.addresses[name]
	if a == nil {
		a = &address{begun: c.begun}
		c.addresses[name] = a
	}
	if a.conns += more; a.conns <= 0 {
		delete(c.addresses, name)
	}
	return a
}

// TagRPC and the other methods let gRPC report what it sends and receives.
func (*connection) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC records the address of a call and when the server there was heard from, and counts what is sent.
func (c *connection) HandleRPC(ctx context.Context, s stats.RPCStats) {
	k, _ := ctx.Value(callKey{}).(*call)
	switch s := s.(type) {
	case *stats.OutHeader:
		if k != nil && s.RemoteAddr != nil {
			k.to.Store(c.at(s.RemoteAddr, 0))
		}
	case *stats.InHeader, *stats.InPayload, *stats.InTrailer:
		if k == nil {
			return
		}
		if a := k.to.Load(); a != nil {
			a.hears()
		}
	case *stats.OutPayload:
		c.wire.Add(int64(s.WireLength))
	}
}

type remoteKey struct{}

// TagConn stores the address for HandleConn.
func (*connection) TagConn(ctx context.Context, info *stats.ConnTagInfo) context.Context {
	return context.WithValue(ctx, remoteKey{}, info.RemoteAddr)
}

// HandleConn records the beginning and the end of a connection to an address.
func (c *connection) HandleConn(ctx context.Context, s stats.ConnStats) {
	remote, ok := ctx.Value(remoteKey{}).(net.Addr)
	if !ok {
		return
	}
	switch s.(type) {
	case *stats.ConnBegin:
		c.at(remote, 1).hears()
	case *stats.ConnEnd:
		c.at(remote, -1)
	}
}

// use returns the connection of a slot for one call, a new one if the last was replaced. The caller must call leave.
func (t *grpcTransport) use(slot int) (*connection, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.alone {
		own, err := t.dial()
		if err != nil {
			return nil, err
		}
		own.replaced = true
		own.users++
		return own, nil
	}
	return t.shared(slot % len(t.conns))
}

// useShared returns the connection for a unary request. If streams have connections of their own, requests share one,
// which is replaced as often as streams are: dialling for each request would cost more than the request.
func (t *grpcTransport) useShared() (*connection, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.conns[0]; t.alone && t.renew > 0 && !c.replaced && time.Since(c.begun) > t.renew {
		c.replaced = true
		if c.users == 0 {
			_ = c.Close()
		}
	}
	return t.shared(0)
}

// shared returns one of the connections that calls share. The caller must hold the lock.
func (t *grpcTransport) shared(n int) (*connection, error) {
	if t.conns[n].replaced {
		next, err := t.dial()
		if err != nil {
			return nil, err
		}
		t.conns[n] = next
	}
	t.conns[n].users++
	return t.conns[n], nil
}

func (t *grpcTransport) leave(c *connection) {
	t.mu.Lock()
	c.users--
	unused := c.replaced && c.users == 0
	t.mu.Unlock()
	if unused {
		_ = c.Close()
	}
}

// giveUp makes the next calls dial again if a call has had no answer since a time, and nothing else was received from
// its address either. A proxy may acknowledge all bytes and forward none, so the kernel does not notice. gRPC cannot
// give up a single address, so the other addresses of the connection are dialled again, too. Calls stay on the old
// connection. A connection that is not established is left to gRPC, which dials with a backoff.
func (t *grpcTransport) giveUp(c *connection, k *call, since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	to := k.to.Load()
	if c.users > 0 && slices.Contains(t.conns, c) && to != nil && to.silentSince(since) && c.GetState() == connectivity.Ready {
		c.replaced = true
	}
}
