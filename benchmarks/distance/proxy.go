// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package distance puts a network between programs on one machine: what passes arrives later.
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

// Proxy is a network in between: what passes comes out in order, a while later, however much it is. What is in progress
// is bounded only by what the two ends let be in progress.
type Proxy struct {
	to    string
	delay time.Duration
	l     net.Listener

	// sent counts the bytes that came from clients.
	sent atomic.Int64

	ctx   context.Context
	stop  context.CancelFunc
	conns sync.WaitGroup
}

// NewProxy listens, and connects who comes with an address. The delay is for one direction, half a round trip.
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

// Addr is where clients connect.
func (p *Proxy) Addr() string { return p.l.Addr().String() }

// Sent is how many bytes came from clients.
func (p *Proxy) Sent() int64 { return p.sent.Load() }

// Close cuts all connections.
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

// chunk is what was read at once. An empty one is the end.
type chunk struct {
	due   time.Time
	bytes []byte
}

// carry moves one direction: a goroutine reads as fast as it can, this one writes what is due.
func (p *Proxy) carry(to, from net.Conn, count *atomic.Int64) {
	// Enough for 200 ms of more than loopback carries here: the reader must never wait.
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
			continue // until the reader is done
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
	// It broke rather than ended: so does the other side.
	to.Close()
}
