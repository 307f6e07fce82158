// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"bufio"
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A shared machine is not always equally fast: other load takes caches, memory bandwidth and turbo. The yardstick is a
// fixed unit of work like that of agents, which runs all the time with 3 % of a core. Its CPU time is the speed of the
// machine during a measurement.
type yardstick struct {
	packed []byte // a deflated page
	known  map[string]float64
	chain  []uint32 // a walk through more memory than caches hold
	peers  [][2]int // both ends of connections over loopback
	turn   int

	mu    sync.Mutex
	cost  time.Duration
	units int
}

const (
	yardEvery = 40 * time.Millisecond
	yardChain = 1 << 22 // 16 MiB
	yardSteps = 2000    // steps of the walk per unit
	yardPeers = 64
	yardPages = 10 // pages received per unit
)

// newYardstick returns a yardstick that works on a page in text format.
func newYardstick(page string) (*yardstick, error) {
	text, err := os.ReadFile(page)
	if err != nil {
		return nil, fmt.Errorf("cannot make a yardstick: %w", err)
	}
	y := &yardstick{known: map[string]float64{}, chain: make([]uint32, yardChain)}
	var packed bytes.Buffer
	w, _ := flate.NewWriter(&packed, flate.DefaultCompression)
	_, _ = w.Write(text)
	w.Close()
	y.packed = packed.Bytes()
	for i := range y.chain {
		y.chain[i] = uint32((uint64(i)*2654435761 + 12345) % yardChain) // one long cycle: a factor of 4n+1 and an odd step
	}
	if err := y.connect(); err != nil {
		y.hangUp()
		return nil, fmt.Errorf("cannot make a yardstick: %w", err)
	}
	return y, nil
}

// run works until stop is closed.
func (y *yardstick) run(stop <-chan struct{}) {
	runtime.LockOSThread() // its CPU time is that of this thread
	defer runtime.UnlockOSThread()
	defer y.hangUp()
	tick := time.NewTicker(yardEvery)
	defer tick.Stop()
	w, _ := flate.NewWriter(io.Discard, flate.BestSpeed)
	at := uint32(0)
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		before := threadTime()
		at = y.unit(w, at)
		cost := threadTime() - before
		y.mu.Lock()
		y.cost, y.units = y.cost+cost, y.units+1
		y.mu.Unlock()
	}
}

// unit receives, inflates and parses a page, looks up its series, walks through memory and compresses the page again.
func (y *yardstick) unit(w *flate.Writer, at uint32) uint32 {
	var page []byte
	for range yardPages {
		page = y.exchange()
	}
	w.Reset(io.Discard)
	lines := bufio.NewScanner(flate.NewReader(bytes.NewReader(page)))
	for lines.Scan() {
		line := lines.Bytes()
		_, _ = w.Write(line)
		if i := bytes.LastIndexByte(line, ' '); i > 0 && line[0] != '#' {
			v, _ := strconv.ParseFloat(string(line[i+1:]), 64)
			y.known[string(line[:i])] = v
		}
	}
	w.Close()
	for range yardSteps {
		at = y.chain[at]
	}
	return at
}

// connect opens the connections with plain blocking sockets, so that an exchange stays on one thread.
func (y *yardstick) connect() error {
	listen, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(listen)
	loopback := [4]byte{127, 0, 0, 1}
	if err := errors.Join(syscall.Bind(listen, &syscall.SockaddrInet4{Addr: loopback}), syscall.Listen(listen, 1)); err != nil {
		return err
	}
	at, err := syscall.Getsockname(listen)
	if err != nil {
		return err
	}
	for range yardPeers {
		client, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		if err := syscall.Connect(client, at); err != nil {
			return err
		}
		server, _, err := syscall.Accept(listen)
		if err != nil {
			return err
		}
		y.peers = append(y.peers, [2]int{client, server})
	}
	return nil
}

func (y *yardstick) hangUp() {
	for _, p := range y.peers {
		syscall.Close(p[0])
		syscall.Close(p[1])
	}
}

// exchange requests the page from the next peer and receives it, both on this thread.
func (y *yardstick) exchange() []byte {
	client, server := y.peers[y.turn][0], y.peers[y.turn][1]
	y.turn = (y.turn + 1) % len(y.peers)
	request, page := make([]byte, 200), make([]byte, len(y.packed))
	_, _ = syscall.Write(client, request)
	_, _ = syscall.Read(server, request)
	_, _ = syscall.Write(server, y.packed)
	for got := 0; got < len(page); {
		n, err := syscall.Read(client, page[got:min(got+4096, len(page))])
		if n <= 0 || err != nil {
			break
		}
		got += n
	}
	return page
}

// reading returns the work so far: CPU seconds and units.
func (y *yardstick) reading() (cost float64, units int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.cost.Seconds(), y.units
}

// threadTime returns the CPU time of the calling thread in nanoseconds.
func threadTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
