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

// hasMore reports whether something has come over the idle connection that no request asked for, or its end. It might be taken for the next
// response: the rest of a body that is longer than was said, or a second answer. Some of it is lost.
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
	_, err := secured.Read(make([]byte, 1)) // what was in the last record: so late, nothing new is read
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

// socketOf returns the socket of a connection. Of a connection that may do more than to read from one, there is none.
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
		return nil // it is closed, which shows soon enough
	}
	return raw
}

// A probe tries to read from a socket that has nothing to say.
type probe struct {
	room  [1]byte
	found bool
	look  func(fd uintptr) // once, made once
}

var probes = sync.Pool{New: func() any {
	p := &probe{}
	p.look = p.once
	return p
}}
