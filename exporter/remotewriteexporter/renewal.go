// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"net/http"
	"sync"

	"go.opentelemetry.io/collector/config/confighttp"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/internal/changedfiles"
)

// renewed is a transport whose certificates and keys are in files. When a request fails and a file has changed since the
// transport was made, it is made anew: otherwise a new authority, which replaces an expired one, would be unknown until a
// restart.
type renewed struct {
	another func() (*http.Client, error)
	log     *zap.Logger

	mu      sync.Mutex // guards the fields below
	files   *changedfiles.Files
	current http.RoundTripper
}

// renewTransport makes a client renew its transport, if any of its certificates are in files. another makes such a client.
func renewTransport(client *http.Client, cfg *confighttp.ClientConfig, log *zap.Logger, another func() (*http.Client, error)) {
	files := changedfiles.New(cfg.TLS.CAFile, cfg.TLS.CertFile, cfg.TLS.KeyFile)
	if files.None() {
		return
	}
	client.Transport = &renewed{files: files, another: another, log: log, current: client.Transport}
}

// RoundTrip sends a request.
func (r *renewed) RoundTrip(request *http.Request) (*http.Response, error) {
	r.mu.Lock()
	current := r.current
	r.mu.Unlock()
	response, err := current.RoundTrip(request)
	if err != nil || response.StatusCode >= http.StatusBadRequest { // by which some proxies refuse a certificate
		r.renew()
	}
	return response, err
}

// renew makes the transport anew if a file has changed. Files that are still being written are tried again when they
// change.
func (r *renewed) renew() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.files.Changed() {
		return
	}
	client, err := r.another()
	if err != nil {
		r.log.Warn("The files of `tls` have changed, and cannot be used: what was in them before is", zap.Error(err))
		return
	}
	closeIdle(r.current)
	r.current = client.Transport
	r.log.Info("The files of `tls` have changed, and are used")
}

// CloseIdleConnections closes those of the transport.
func (r *renewed) CloseIdleConnections() {
	r.mu.Lock()
	defer r.mu.Unlock()
	closeIdle(r.current)
}

func closeIdle(t http.RoundTripper) {
	if c, ok := t.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
