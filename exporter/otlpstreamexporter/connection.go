// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/stats"
)

// connection is a gRPC connection that streams and unary requests share. It notes when the server was last heard on it.
type connection struct {
	*grpc.ClientConn

	tally *tally
	begun time.Time
	heard atomic.Int64 // nanoseconds since it begun

	// The transport's lock guards how many calls use it, and whether it is closed when the last of them ends.
	users    int
	replaced bool
}

// TagRPC and the others let gRPC tell what it hears.
func (c *connection) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	return c.tally.TagRPC(ctx, info)
}

// HandleRPC notes that the server has said something, and counts what is sent.
func (c *connection) HandleRPC(ctx context.Context, s stats.RPCStats) {
	switch s.(type) {
	case *stats.InHeader, *stats.InPayload, *stats.InTrailer:
		c.hears()
	default:
		c.tally.HandleRPC(ctx, s)
	}
}

// TagConn does nothing.
func (*connection) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn notes that somebody is there at the other end.
func (c *connection) HandleConn(_ context.Context, s stats.ConnStats) {
	if _, ok := s.(*stats.ConnBegin); ok {
		c.hears()
	}
}

func (c *connection) hears() { c.heard.Store(int64(time.Since(c.begun))) }

func (c *connection) silentSince(moment time.Time) bool {
	return time.Duration(c.heard.Load()) < moment.Sub(c.begun)
}

// use returns the connection of a slot for one call, dialled anew if the last one was replaced. Who is done with it leaves it.
func (t *grpcTransport) use(slot int) (*connection, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &t.conns[slot%len(t.conns)]
	if t.alone {
		own, err := t.dial()
		if err != nil {
			return nil, err
		}
		own.replaced = true
		c = &own
	} else if (*c).replaced {
		next, err := t.dial()
		if err != nil {
			return nil, err
		}
		*c = next
	}
	(*c).users++
	return *c, nil
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

// giveUp has the next calls dial anew where a call has waited in vain since a moment, and nothing else was heard on its
// connection since either. A proxy between may confirm all bytes and forward none, so the kernel finds nothing wrong.
// Calls that are on the connection stay. One that is not established is left to gRPC, which dials with a backoff.
func (t *grpcTransport) giveUp(c *connection, since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.users > 0 && slices.Contains(t.conns, c) && c.silentSince(since) && c.GetState() == connectivity.Ready {
		c.replaced = true
	}
}
