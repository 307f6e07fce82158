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
	// handshakeTimeout bounds a handshake, as in Prometheus' client.
	handshakeTimeout = 10 * time.Second
	// coarsest is how far apart two changes of a file may be that have the same time.
	coarsest = 2 * time.Second
	// noProtocol is the alert of a server that speaks no protocol which the client offers: here, one that speaks HTTP/2 alone.
	// It has a type, which is crypto/tls' own.
	noProtocol = "tls: no application protocol"
)

// secure has the TLS settings of a job. As in Prometheus' client, files they are in are looked at before each request, and
// when one has changed every connection is made anew.
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
	settled bool // a change since would show in its time
}

// changed tells whether there is something else in the file than when it could last be read.
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

// A handshakeTimeoutError says what net/http says.
type handshakeTimeoutError struct{}

func (handshakeTimeoutError) Error() string   { return "net/http: TLS handshake timeout" }
func (handshakeTimeoutError) Timeout() bool   { return true }
func (handshakeTimeoutError) Temporary() bool { return true }

// handshake makes a connection one of TLS, or closes it.
func (t *Target) handshake(ctx context.Context, conn net.Conn) (net.Conn, error) {
	config := t.settings
	if config.ServerName == "" {
		u, err := url.Parse(t.url)
		if err != nil { // it was parsed before
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

// speaksHTTP2 tells whether net/http may find a common language where the exchange of our own does not.
func (t *Target) speaksHTTP2() bool { return t.secured && t.client.config.EnableHTTP2 }

// renew turns to the present TLS settings. A connection that was made with others is closed.
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
