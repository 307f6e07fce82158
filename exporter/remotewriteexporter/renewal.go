// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"net/http"
	"os"
	"sync"

	"go.opentelemetry.io/collector/config/confighttp"
	"go.uber.org/zap"
)

// renewed is a transport whose certificates and keys are in files. When a request fails and a file has changed since the
// transport was made, it is made anew: otherwise a new authority, which replaces an expired one, would be unknown until a
// restart.
type renewed struct {
	files   [3]string
	another func() (*http.Client, error)
	log     *zap.Logger

	mu      sync.Mutex // guards the fields below
	current http.RoundTripper
	stamps  [3]stamp // of the files when it was made
}

// stamp tells versions of a file apart.
type stamp struct{ written, size int64 }

// renewTransport makes a client renew its transport, if any of its certificates are in files. another makes such a client.
func renewTransport(client *http.Client, cfg *confighttp.ClientConfig, log *zap.Logger, another func() (*http.Client, error)) {
	r := &renewed{files: [3]string{cfg.TLS.CAFile, cfg.TLS.CertFile, cfg.TLS.KeyFile}, another: another, log: log, current: client.Transport}
	if r.files == [3]string{} {
		return
	}
	r.stamps = r.look()
	client.Transport = r
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
	now := r.look()
	if now == r.stamps {
		return
	}
	r.stamps = now
	client, err := r.another()
	if err != nil {
		r.log.Warn("The files of `tls` have changed, and cannot be used: what was in them before is", zap.Error(err))
		return
	}
	closeIdle(r.current)
	r.current = client.Transport
	r.log.Info("The files of `tls` have changed, and are used")
}

func (r *renewed) look() (stamps [3]stamp) {
	for i, name := range r.files {
		if info, err := os.Stat(name); err == nil {
			stamps[i] = stamp{info.ModTime().UnixNano(), info.Size()}
		}
	}
	return stamps
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
