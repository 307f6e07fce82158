// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/godwit-otel/godwit/e2e/wait"
)

const (
	hostileCrowd = 200
	// Between two blows of the same attacker.
	blowPause = 50 * time.Millisecond
	// How long an attacker waits for a connection.
	blowTimeout = 5 * time.Second
)

// again repeats a blow until ctx ends.
func again(ctx context.Context, blow func()) {
	for ctx.Err() == nil {
		blow()
		wait.Pause(ctx, blowPause)
	}
}

// connect opens a connection that is closed when ctx ends. It returns nil if the other side refuses it.
func connect(ctx context.Context, addr string) net.Conn {
	conn, err := (&net.Dialer{Timeout: blowTimeout}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil
	}
	context.AfterFunc(ctx, func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(10 * blowTimeout))
	return conn
}

// shout sends bytes, then reads the response until it ends or a second has passed.
func shout(ctx context.Context, addr string, text []byte) {
	conn := connect(ctx, addr)
	if conn == nil {
		return
	}
	defer conn.Close()
	if _, err := conn.Write(text); err != nil {
		return
	}
	_ = conn.SetReadDeadline(time.Now().Add(time.Second))
	_, _ = io.Copy(io.Discard, io.LimitReader(conn, 1<<20))
}

// many runs an attacker on each of hostileCrowd connections.
func many(ctx context.Context, addr string, attacker func(conn net.Conn)) {
	var all sync.WaitGroup
	for range hostileCrowd {
		all.Go(func() {
			for ctx.Err() == nil {
				if conn := connect(ctx, addr); conn != nil {
					attacker(conn)
					conn.Close()
				}
				wait.Pause(ctx, 4*blowPause)
			}
		})
	}
	all.Wait()
}

// drip sends a small piece of text again and again.
func drip(ctx context.Context, conn net.Conn, text string) {
	for wait.Pause(ctx, 2*blowPause) {
		if _, err := conn.Write([]byte(text)); err != nil {
			return
		}
	}
}

func noise(n int) []byte {
	source := rand.NewChaCha8([32]byte{17})
	b := make([]byte, n)
	_, _ = source.Read(b) // it never fails
	return b
}

// httpPeers are malicious clients of an HTTP server. head is a request without the headers that say how long it is.
var httpPeers = []struct {
	name string
	do   func(ctx context.Context, addr, head string)
}{
	{"garbage", func(ctx context.Context, addr, _ string) { again(ctx, func() { shout(ctx, addr, noise(1<<20)) }) }},
	{"garbage body", func(ctx context.Context, addr, head string) {
		body := noise(1 << 20)
		again(ctx, func() {
			shout(ctx, addr, append(fmt.Appendf(nil, "%sContent-Length: %d\r\nConnection: close\r\n\r\n", head, len(body)), body...))
		})
	}},
	{"slow headers", func(ctx context.Context, addr, head string) {
		many(ctx, addr, func(conn net.Conn) {
			_, _ = io.WriteString(conn, head)
			drip(ctx, conn, "X")
		})
	}},
	{"slow bodies", func(ctx context.Context, addr, head string) {
		many(ctx, addr, func(conn net.Conn) {
			_, _ = io.WriteString(conn, head+"Content-Length: 10000000\r\n\r\n")
			drip(ctx, conn, "x")
		})
	}},
	{"bodies that stop", func(ctx context.Context, addr, head string) {
		many(ctx, addr, func(conn net.Conn) {
			_, _ = io.WriteString(conn, head+"Content-Length: 10000000\r\n\r\n"+strings.Repeat("x", 256<<10))
			<-ctx.Done()
		})
	}},
	{"idle connections", func(ctx context.Context, addr, _ string) {
		many(ctx, addr, func(net.Conn) { <-ctx.Done() })
	}},
	{"flood of connections", func(ctx context.Context, addr, _ string) { many(ctx, addr, func(net.Conn) {}) }},
	{"cut in the body", func(ctx context.Context, addr, head string) {
		again(ctx, func() {
			if conn := connect(ctx, addr); conn != nil {
				_, _ = io.WriteString(conn, head+"Content-Length: 1000000\r\n\r\n"+strings.Repeat("x", 100_000))
				_ = conn.(*net.TCPConn).SetLinger(0)
				conn.Close()
			}
		})
	}},
	{"answers not read", func(ctx context.Context, addr, head string) { // a thousand requests a second at most
		many(ctx, addr, func(conn net.Conn) {
			for ctx.Err() == nil {
				if _, err := io.WriteString(conn, strings.Repeat(head+"Content-Length: 0\r\n\r\n", 5)); err != nil {
					return
				}
				wait.Pause(ctx, 20*blowPause)
			}
		})
	}},
	{"heads that never end", func(ctx context.Context, addr, head string) {
		line := "X: " + strings.Repeat("x", 1000) + "\r\n"
		many(ctx, addr, func(conn net.Conn) {
			if _, err := io.WriteString(conn, head+strings.Repeat(line, 900)); err == nil {
				_, _ = io.Copy(io.Discard, conn)
			}
			wait.Pause(ctx, 20*blowPause)
		})
	}},
	{"huge header", func(ctx context.Context, addr, head string) {
		again(ctx, func() { shout(ctx, addr, []byte(head+"X-Long: "+strings.Repeat("x", 8<<20)+"\r\n\r\n")) })
	}},
	{"many headers", func(ctx context.Context, addr, head string) {
		again(ctx, func() { shout(ctx, addr, []byte(head+strings.Repeat("X: y\r\n", 100_000)+"\r\n")) })
	}},
	{"two lengths", func(ctx context.Context, addr, head string) {
		again(ctx, func() {
			shout(ctx, addr, []byte(head+"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n"))
			shout(ctx, addr, []byte(head+"Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef"))
			shout(ctx, addr, []byte(head+"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"))
			shout(ctx, addr, []byte(head+"Content-Length : 5\r\n Folded: yes\r\n\r\nabcde"))
			shout(ctx, addr, []byte(head+"Content-Length: -1\r\n\r\n"))
			shout(ctx, addr, []byte(head+"Content-Length: 99999999999999999999\r\n\r\n"))
			shout(ctx, addr, []byte(strings.ReplaceAll(head, "\r\n", "\n")+"Content-Length: 0\n\n"))
		})
	}},
	{"huge chunks", func(ctx context.Context, addr, head string) {
		again(ctx, func() {
			shout(ctx, addr, []byte(head+"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\nabc"))
			shout(ctx, addr, []byte(head+"Transfer-Encoding: chunked\r\n\r\n7FFFFFFFFFFFFFFF\r\nabc"))
			shout(ctx, addr, []byte(head+"Transfer-Encoding: chunked\r\n\r\n1;"+strings.Repeat("x", 1<<20)+"\r\na\r\n0\r\n\r\n"))
		})
	}},
	{"endless chunks", func(ctx context.Context, addr, head string) {
		again(ctx, func() {
			conn := connect(ctx, addr)
			if conn == nil {
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, head+"Transfer-Encoding: chunked\r\n\r\n")
			chunk := append(fmt.Appendf(nil, "%x\r\n", 64<<10), append(bytes.Repeat([]byte("x"), 64<<10), '\r', '\n')...)
			for ctx.Err() == nil {
				if _, err := conn.Write(chunk); err != nil {
					return
				}
				wait.Pause(ctx, blowPause/10)
			}
		})
	}},
}
