// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !purego && !race

//nolint:gosec // what a call moves is the caller's, and there until it returns
package quietconn

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"unsafe"
)

// atOnce is the maximum number of bytes moved by one call: garbage collection waits while the kernel copies.
const atOnce = 64 << 10

// Of returns a reader and writer for a connection. Deadlines and errors are the connection's.
func Of(nc net.Conn) io.ReadWriter {
	var raw syscall.RawConn
	var err error
	switch of := nc.(type) { // other types may do more than use their socket
	case *net.TCPConn:
		raw, err = of.SyscallConn()
	case *net.UnixConn:
		raw, err = of.SyscallConn()
	default:
		return nc
	}
	if err != nil {
		return nc
	}
	c := &conn{nc: nc, raw: raw}
	c.in.prepare("read", syscall.SYS_READ)
	c.out.prepare("write", syscall.SYS_WRITE)
	return c
}

type conn struct {
	nc      net.Conn
	raw     syscall.RawConn
	in, out transfer
}

// Read reads like the connection.
func (c *conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	n, err := c.in.some(c.raw.Read, p)
	switch {
	case err != nil:
		return 0, c.fault("read", err)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// Write writes like the connection.
func (c *conn) Write(p []byte) (written int, err error) {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	for written < len(p) {
		n, err := c.out.some(c.raw.Write, p[written:])
		if err != nil {
			return written, c.fault("write", err)
		}
		written += n
	}
	return written, nil
}

// fault returns an error in the form of the connection's.
func (c *conn) fault(what string, err error) error {
	if told, ok := err.(*net.OpError); ok { //nolint:errorlint // it is the raw connection's own
		err = told.Err
	}
	return &net.OpError{Op: what, Net: c.nc.LocalAddr().Network(), Source: c.nc.LocalAddr(), Addr: c.nc.RemoteAddr(), Err: err}
}

// transfer moves bytes in one direction.
type transfer struct {
	name string
	call uintptr
	try  func(fd uintptr) (done bool) // the method once as a value, made once

	mu    sync.Mutex
	bytes []byte
	n     int
	errno syscall.Errno
}

func (t *transfer) prepare(name string, call uintptr) {
	t.name, t.call = name, call
	t.try = t.once
}

// some moves some bytes as soon as the socket is ready.
func (t *transfer) some(whenReady func(func(uintptr) bool) error, p []byte) (n int, err error) {
	t.bytes = p[:min(len(p), atOnce)]
	err = whenReady(t.try)
	t.bytes = nil
	switch {
	case err != nil:
		return 0, err //nolint:wrapcheck // it is wrapped as the connection would
	case t.errno != 0:
		return 0, os.NewSyscallError(t.name, t.errno)
	}
	return t.n, nil
}

// once moves some bytes, and returns false if the socket is not ready.
func (t *transfer) once(fd uintptr) (done bool) {
	for {
		n, _, errno := syscall.RawSyscall(t.call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(t.bytes))), uintptr(len(t.bytes)))
		switch errno {
		case syscall.EINTR:
		case syscall.EAGAIN:
			return false
		default:
			t.n, t.errno = int(n), errno
			return true
		}
	}
}
