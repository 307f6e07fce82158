// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	promcommon "github.com/prometheus/common/config"
)

const (
	// handshakeTimeout limits a handshake, as in Prometheus' client.
	handshakeTimeout = 10 * time.Second
	// coarsest is how far apart two changes of a file may be and still have the same modification time.
	coarsest = 2 * time.Second
	// noProtocol is the alert of a server that supports no protocol which the client offers: one that speaks HTTP/2
	// only. Its type is internal to crypto/tls.
	noProtocol = "tls: no application protocol"
)

// secure has the TLS settings of a job. As in Prometheus' client, their files are checked before each request, and if
// one has changed, all connections are made again.
type secure struct {
	config promcommon.TLSConfig

	mu      sync.Mutex
	files   []watchedFile
	current *tls.Config
}

func newSecure(config promcommon.TLSConfig) *secure {
	s := &secure{config: config}
	for _, path := range []string{config.CAFile, config.CertFile, config.KeyFile} {
		if path != "" {
			s.files = append(s.files, watchedFile{path: path})
		}
	}
	return s
}

// settings returns the same settings until a file changes.
func (s *secure) settings() (*tls.Config, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	isMissing := false
	for i := range s.files {
		switch changed, err := s.files[i].changed(); {
		case err != nil:
			isMissing = true
		case changed:
			s.current = nil
		}
	}
	if s.current != nil && !isMissing {
		return s.current, nil
	}
	config, err := promcommon.NewTLSConfig(&s.config)
	if err != nil {
		return nil, err
	}
	config.NextProtos = []string{"http/1.1"}
	s.current = config
	return config, nil
}

// A watchedFile is read again only if it may have changed.
type watchedFile struct {
	path    string
	info    os.FileInfo // when it was last read
	sum     [sha256.Size]byte
	settled bool // a change since would have another modification time
}

// changed reports whether the file's content differs from when it could last be read.
func (f *watchedFile) changed() (bool, error) {
	info, err := os.Stat(f.path)
	if err != nil {
		return false, err
	}
	if f.settled && os.SameFile(info, f.info) && info.Size() == f.info.Size() && info.ModTime().Equal(f.info.ModTime()) {
		return false, nil
	}
	content, err := os.ReadFile(f.path)
	if err != nil {
		return false, err
	}
	sum := sha256.Sum256(content)
	isSame := sum == f.sum
	f.info, f.sum, f.settled = info, sum, time.Since(info.ModTime()) > coarsest
	return !isSame, nil
}

// A handshakeTimeoutError has the text of net/http's.
type handshakeTimeoutError struct{}

func (handshakeTimeoutError) Error() string   { return "net/http: TLS handshake timeout" }
func (handshakeTimeoutError) Timeout() bool   { return true }
func (handshakeTimeoutError) Temporary() bool { return true }

// handshake makes a TLS connection of conn, or closes it.
func (t *Target) handshake(ctx context.Context, conn net.Conn) (net.Conn, error) {
	config := t.settings
	if config.ServerName == "" {
		u, err := url.Parse(t.url)
		if err != nil { // it could be parsed before
			return nil, errors.Join(err, conn.Close())
		}
		config = config.Clone()
		config.ServerName = u.Hostname()
	}
	secured := tls.Client(conn, config)
	limited, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	err := secured.HandshakeContext(limited)
	if err == nil {
		return secured, nil
	}
	_ = conn.Close() // the handshake's error says more
	var plain tls.RecordHeaderError
	switch {
	case ctx.Err() == nil && limited.Err() != nil:
		return nil, handshakeTimeoutError{}
	case errors.As(err, &plain) && string(plain.RecordHeader[:]) == "HTTP/":
		return nil, http.ErrSchemeMismatch
	case t.speaksHTTP2() && strings.HasSuffix(err.Error(), noProtocol):
		return nil, errRedirected
	default:
		return nil, err
	}
}

// speaksHTTP2 reports whether net/http may succeed with HTTP/2 where our own exchange cannot.
func (t *Target) speaksHTTP2() bool { return t.secured && t.client.config.EnableHTTP2 }

// renew takes the current TLS settings. A connection made with others is closed.
func (t *Target) renew() error {
	if !t.secured {
		return nil
	}
	settings, err := t.client.secure.settings()
	if err != nil {
		return err
	}
	if t.settings != settings {
		t.drop()
		t.settings = settings
	}
	return nil
}
