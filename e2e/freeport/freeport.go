// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package freeport finds loopback ports for processes that must be told theirs.
//
// Each port is bound, closed and returned, at most once per test binary. Ports are below the ephemeral range, so that
// no outgoing connection takes one before its owner binds it. Each test binary starts its search elsewhere, so that
// packages tested in parallel rarely collide.
package freeport

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
)

const (
	lowest = 20000
	count  = 12000 // up to 31999; Linux takes ephemeral ports from 32768
	// Test binaries with adjacent process IDs start this many ports apart.
	stride = 131
)

var pool = struct {
	sync.Mutex

	next, left int
}{next: os.Getpid() * stride % count, left: count}

// Get returns a TCP port that was free on 127.0.0.1 a moment ago.
func Get(t testing.TB) int {
	t.Helper()
	port, err := take()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// Addr returns 127.0.0.1 with a port from Get.
func Addr(t testing.TB) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(Get(t)))
}

func take() (int, error) {
	pool.Lock()
	defer pool.Unlock()
	for ; pool.left > 0; pool.left-- {
		port := lowest + pool.next
		pool.next = (pool.next + 1) % count
		if Free(port) {
			pool.left--
			return port, nil
		}
	}
	return 0, fmt.Errorf("cannot find a free port: all of %d to %d were handed out or are taken", lowest, lowest+count-1)
}

// Free reports whether port can be bound on 127.0.0.1 now.
func Free(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	l.Close()
	return true
}
