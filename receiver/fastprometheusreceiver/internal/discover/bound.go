// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/godwit-otel/godwit/internal/memlimit"
)

// answerShare limits the answer of a discovery server: Prometheus' mechanisms read it as a whole, and it takes several
// times as much when it is parsed.
var answerShare = memlimit.Share{Part: 32, Least: 8 << 20, Most: 64 << 20}

type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// bounded returns a dialer whose connections fail when an answer is larger than limit bytes.
func bounded(dial dialer, limit int64) dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &boundedConn{Conn: conn, limit: limit}, nil
	}
}

// A boundedConn limits the bytes that may be read between two writes, which are requests.
type boundedConn struct {
	net.Conn

	limit int64
	read  atomic.Int64
}

func (c *boundedConn) Write(b []byte) (int, error) {
	c.read.Store(0)
	return c.Conn.Write(b)
}

func (c *boundedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.read.Add(int64(n)) > c.limit {
		return 0, fmt.Errorf("cannot read the targets: the answer is larger than %s", memlimit.Size(c.limit))
	}
	return n, err
}
