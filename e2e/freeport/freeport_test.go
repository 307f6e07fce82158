// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package freeport

import (
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNoPortIsHandedOutTwice(t *testing.T) {
	var mu sync.Mutex
	seen := map[int]bool{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				port, err := take()
				mu.Lock()
				assert.True(t, err == nil && !seen[port], "port %d, error %v", port, err)
				seen[port] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	assert.Len(t, seen, 160)
}

func TestPortsAreFreeAndBelowTheEphemeralRange(t *testing.T) {
	l, err := net.Listen("tcp", Addr(t))
	require.NoError(t, err)
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	assert.GreaterOrEqual(t, port, lowest)
	assert.Less(t, port, lowest+count)
	assert.False(t, Free(port))
}

func TestTakenPortsArePassedOver(t *testing.T) {
	pool.Lock()
	next := lowest + pool.next
	pool.Unlock()
	l, err := net.Listen("tcp", (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: next}).String())
	if err == nil { // otherwise another process uses it, which serves as well
		defer l.Close()
	}
	assert.NotEqual(t, next, Get(t))
}
