// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// hasMore reports whether the idle connection has received data that no request asked for, or has ended. Such data
// could be mistaken for the next response: it is the rest of a body longer than announced, or a second response.
// hasMore may consume some of it.
func (t *Target) hasMore() bool {
	if t.raw != nil {
		p := probes.Get().(*probe)
		err := t.raw.Control(p.look)
		found := p.found
		probes.Put(p)
		if err != nil || found {
			return true
		}
	}
	secured, ok := t.conn.(*tls.Conn)
	if !ok {
		return false
	}
	if err := secured.SetReadDeadline(time.Unix(1, 0)); err != nil {
		return true
	}
	_, err := secured.Read(make([]byte, 1)) // what is left of the last record: with this deadline, nothing new is read
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

// socketOf returns the socket of a connection, nil if the connection does more than read from one.
func socketOf(conn net.Conn) syscall.RawConn {
	var raw syscall.RawConn
	var err error
	switch of := conn.(type) {
	case *net.TCPConn:
		raw, err = of.SyscallConn()
	case *net.UnixConn:
		raw, err = of.SyscallConn()
	}
	if err != nil {
		return nil // it is closed, which the next use shows
	}
	return raw
}

// A probe tries to read from a socket that should have nothing to read.
type probe struct {
	room  [1]byte
	found bool
	look  func(fd uintptr) // the method once as a value, made once
}

var probes = sync.Pool{New: func() any {
	p := &probe{}
	p.look = p.once
	return p
}}
