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

// connection is a gRPC connection that streams and unary requests share. It may lead to several addresses, and notes of each when
// it was last heard.
type connection struct {
	*grpc.ClientConn

	wire      *atomic.Int64 // the bytes of all that is sent
	begun     time.Time
	mu        sync.Mutex
	addresses map[string]*address // that it is connected to

	// The transport's lock guards how many calls use it, and whether it is closed when the last of them ends.
	users    int
	replaced bool
}

// address is one that a connection leads to.
type address struct {
	begun time.Time
	heard atomic.Int64 // nanoseconds since it begun
	conns int          // of the transport; the connection's lock guards it
}

func (a *address) hears() { a.heard.Store(int64(time.Since(a.begun))) }

func (a *address) silentSince(moment time.Time) bool {
	return time.Duration(a.heard.Load()) < moment.Sub(a.begun)
}

// call is what a connection knows of one: where it went, once it has.
type call struct{ to atomic.Pointer[address] }

type callKey struct{}

// calling is the context of a call that is to be known.
func calling(ctx context.Context) (context.Context, *call) {
	c := &call{}
	return context.WithValue(ctx, callKey{}, c), c
}

// at returns what is known of an address, to which there are so many more connections now.
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

// TagRPC and the others let gRPC tell what it sends and hears.
func (*connection) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC records where a call goes, and that the server there has said something, and counts what is sent.
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

// TagConn has the end of a connection known.
func (*connection) TagConn(ctx context.Context, info *stats.ConnTagInfo) context.Context {
	return context.WithValue(ctx, remoteKey{}, info.RemoteAddr)
}

// HandleConn records that somebody is there at the other end.
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

// use returns the connection of a slot for one call, dialled anew if the last one was replaced. Who is done with it leaves it.
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

// useShared returns the connection for a unary request. Where streams have connections of their own, requests share one, which is dialled anew as often as a
// stream is opened: to dial for each request would cost more than the request.
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

// shared is one of those that calls share. The lock is held.
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

// giveUp makes the next calls dial anew if a call has had no answer since then, and nothing else has come from the address that
// it went to either. A proxy between may confirm all bytes and forward none, so the kernel finds nothing wrong. Other
// addresses of the connection are dialled with it: gRPC gives up none alone. Calls that are on the connection stay. One that is not
// established is left to gRPC, which dials with a backoff.
func (t *grpcTransport) giveUp(c *connection, k *call, since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	to := k.to.Load()
	if c.users > 0 && slices.Contains(t.conns, c) && to != nil && to.silentSince(since) && c.GetState() == connectivity.Ready {
		c.replaced = true
	}
}
