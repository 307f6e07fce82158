// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package distance adds network latency between programs on one machine.
package distance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Proxy adds latency to connections: all bytes come out in order after the delay, however many there are. Only the two
// ends limit the bytes in flight.
type Proxy struct {
	to    string
	delay time.Duration
	l     net.Listener

	// sent counts the bytes from clients.
	sent atomic.Int64

	ctx   context.Context
	stop  context.CancelFunc
	conns sync.WaitGroup
}

// NewProxy listens and forwards connections to an address. The delay is for one direction, half a round trip.
func NewProxy(to string, delay time.Duration) (*Proxy, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot open the network in between: %w", err)
	}
	p := &Proxy{to: to, delay: delay, l: l}
	p.ctx, p.stop = context.WithCancel(context.Background())
	p.conns.Go(p.accept)
	return p, nil
}

// Addr returns the address for clients.
func (p *Proxy) Addr() string { return p.l.Addr().String() }

// Sent returns the number of bytes from clients.
func (p *Proxy) Sent() int64 { return p.sent.Load() }

// Close closes all connections.
func (p *Proxy) Close() {
	p.stop()
	p.l.Close()
	p.conns.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.l.Accept()
		if err != nil {
			return
		}
		p.conns.Go(func() { p.connect(client) })
	}
}

func (p *Proxy) connect(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp4", p.to)
	if err != nil {
		return
	}
	defer server.Close()
	defer context.AfterFunc(p.ctx, func() { client.Close(); server.Close() })()
	var both sync.WaitGroup
	both.Go(func() { p.carry(server, client, &p.sent) })
	both.Go(func() { p.carry(client, server, nil) })
	both.Wait()
}

// chunk is the result of one read; an empty one is the end.
type chunk struct {
	due   time.Time
	bytes []byte
}

// carry forwards one direction: one goroutine reads as fast as it can, the other one writes what is due.
func (p *Proxy) carry(to, from net.Conn, count *atomic.Int64) {
	// Enough for 200 ms at more than loopback's rate here: the reader must never wait.
	way := make(chan chunk, 1<<16)
	go func() {
		defer close(way)
		buf := make([]byte, 256<<10)
		for {
			n, err := from.Read(buf)
			if count != nil {
				count.Add(int64(n))
			}
			if n > 0 {
				way <- chunk{time.Now().Add(p.delay), append([]byte(nil), buf[:n]...)}
			}
			if err != nil {
				if errors.Is(err, io.EOF) {
					way <- chunk{due: time.Now().Add(p.delay)}
				}
				return
			}
		}
	}()
	broken := false
	for c := range way {
		if broken {
			continue // drain until the reader ends
		}
		time.Sleep(time.Until(c.due))
		if len(c.bytes) == 0 {
			_ = to.(*net.TCPConn).CloseWrite()
			return
		}
		if _, err := to.Write(c.bytes); err != nil {
			from.Close()
			broken = true
		}
	}
	// The connection broke instead of ending, so the other side is closed too.
	to.Close()
}
