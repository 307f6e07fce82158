// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"sync"

	"go.opentelemetry.io/collector/config/configcompression"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/internal/changedfiles"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// renewed is a transport whose certificates and keys are in files. When these have changed it is made anew: before the
// next stream is opened, and when a unary request fails. Otherwise a new authority would be unknown until a restart, and
// connections that a proxy has accepted with a certificate that it then refuses would be used for ever.
type renewed struct {
	another func() (Transport, error)
	log     *zap.Logger

	mu      sync.Mutex // guards the fields below, and the generations
	files   *changedfiles.Files
	current *generation
	all     map[*generation]struct{} // that are not closed
}

// generation is a transport, and the number of calls that use it.
type generation struct {
	Transport

	users   int
	retired bool // it is closed when the last of them ends
}

// renewing returns a transport that is made anew when files change.
func renewing(first Transport, files *changedfiles.Files, log *zap.Logger, another func() (Transport, error)) Transport {
	r := &renewed{another: another, log: log, files: files, all: map[*generation]struct{}{}}
	r.start(first)
	return r
}

func (r *renewed) start(t Transport) {
	r.current = &generation{Transport: t}
	r.all[r.current] = struct{}{}
}

// use returns the current transport for a call, which must call leave.
func (r *renewed) use() *generation {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current.users++
	return r.current
}

func (r *renewed) leave(g *generation) {
	r.mu.Lock()
	g.users--
	_, open := r.all[g]
	ends := open && g.retired && g.users == 0
	if ends {
		delete(r.all, g)
	}
	r.mu.Unlock()
	if ends {
		_ = g.Close()
	}
}

// renew makes the transport anew if a file has changed. Files that are still being written are tried again when they
// change.
func (r *renewed) renew() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.files.Changed() {
		return
	}
	next, err := r.another()
	if err != nil {
		r.log.Warn("The files of `tls` have changed, and cannot be used: what was in them before is", zap.Error(err))
		return
	}
	old := r.current
	r.start(next)
	if old.retired = true; old.users == 0 {
		delete(r.all, old)
		_ = old.Close()
	}
	r.log.Info("The files of `tls` have changed, and are used")
}

// Open opens a stream, which ends when ctx ends.
func (r *renewed) Open(ctx context.Context, slot int, c configcompression.Type) (Conn, error) {
	r.renew()
	g := r.use()
	conn, err := g.Open(ctx, slot, c)
	if err != nil {
		r.leave(g)
		return nil, err
	}
	context.AfterFunc(ctx, func() { r.leave(g) })
	return conn, nil
}

func (r *renewed) Unary(ctx context.Context, p otlpstream.Payload, c configcompression.Type) ([]byte, error) {
	g := r.use()
	response, err := g.Unary(ctx, p, c)
	r.leave(g)
	if err != nil {
		r.renew()
	}
	return response, err
}

func (r *renewed) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for g := range r.all {
		errs = append(errs, g.Close())
	}
	clear(r.all)
	return errors.Join(errs...)
}
