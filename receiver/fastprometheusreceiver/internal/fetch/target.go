// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A Response is a page as it was transferred, or a part of one.
type Response struct {
	// Status is the code and reason of an error. Only Show returns such pages.
	Status      string
	ContentType string
	Encoding    Encoding
	// Before is the size of the earlier parts of the page in bytes.
	Before int64
	// Body is in the buffer given to Get, or in a larger one that replaces it. It is valid until that is used again.
	// When Get fails, Body is empty and still carries the buffer.
	Body []byte
}

// A Road is how a target's requests are made.
type Road uint8

// The two roads.
const (
	Plain   Road = iota // our own exchange, through TLS or not
	NetHTTP             // net/http
)

func (r Road) String() string { return [...]string{"plain", "net/http"}[r] }

// A Target is the state that one URL needs from scrape to scrape. One goroutine uses it at a time.
type Target struct {
	client  *Client
	url     string
	address string // host and port, or the socket's path
	head    string // request line and Host
	tail    string // further headers
	accept  string
	socket  string
	timeout time.Duration

	secured  bool        // by TLS
	settings *tls.Config // of its connection

	own *http.Client // net/http's way to its socket

	contentType string // the last one; an equal one is not allocated again
	size        int    // of the last body, as transferred
	near        bool   // on this host, according to its name
	local       bool   // asked for uncompressed pages, since it is on this host
	any         bool   // pages of errors count, too
	road        Road
	redirected  bool // which is why net/http makes the requests
	encoding    Encoding

	mu   sync.Mutex // guards conn, against interrupt
	conn net.Conn
	raw  syscall.RawConn // conn's socket, if nothing else is between
	used time.Time       // when conn was last of use
	busy sync.WaitGroup
	stop func() // ends watching the context; used once
}

// NewTarget prepares requests to a URL. unixSocket is the path of the socket that the target listens at, if any. Get
// reports an invalid URL.
func (c *Client) NewTarget(rawURL, unixSocket string, timeout time.Duration, accept string) *Target {
	t := &Target{client: c, url: rawURL, socket: unixSocket, timeout: timeout, accept: accept, road: NetHTTP}
	t.stop = t.interrupt
	u, err := url.Parse(rawURL)
	if err != nil {
		return t
	}
	proxied := c.proxied(&http.Request{URL: u})
	t.near = !proxied && (unixSocket != "" || isLoopback(u.Hostname()))
	t.local = c.options.LocalIdentity && t.near
	if !c.plain || proxied || !isPlain(u) || !validValue(accept) {
		return t
	}
	t.road = Plain
	t.address, t.secured = u.Host, u.Scheme == schemeTLS
	if u.Port() == "" {
		port := "80"
		if t.secured {
			port = "443"
		}
		t.address = net.JoinHostPort(u.Hostname(), port)
	}
	if unixSocket != "" {
		t.address = unixSocket
	}
	t.head = "GET " + u.RequestURI() + " HTTP/1.1\r\nHost: " + strings.TrimSuffix(u.Host, ":") + "\r\n"
	t.tail = c.tail(accept, timeout)
	return t
}

const schemeTLS = "https"

// isPlain reports whether our own exchange sends a request for u exactly as net/http would.
func isPlain(u *url.URL) bool {
	if u.Scheme != "http" && u.Scheme != schemeTLS || u.User != nil || u.Opaque != "" || u.Hostname() == "" {
		return false
	}
	for _, c := range []byte(u.Host) {
		if c >= 0x80 || !tokens[c] && c != ':' && c != '[' && c != ']' || c == '%' {
			return false
		}
	}
	for _, c := range []byte(u.RequestURI()) {
		if c <= ' ' || c >= 0x7f {
			return false
		}
	}
	return true
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// isLocal reports whether a connection leads to an address of this host.
func isLocal(conn net.Conn) bool {
	here, ok := conn.LocalAddr().(*net.TCPAddr)
	there, tcp := conn.RemoteAddr().(*net.TCPAddr)
	return ok && tcp && here.IP.Equal(there.IP)
}

// URL returns the target's URL.
func (t *Target) URL() string { return t.url }

// Road returns how the target's next request is made.
func (t *Target) Road() Road { return t.road }

// Encoding returns the encoding of the last page.
func (t *Target) Encoding() Encoding { return t.encoding }

// Size returns the size of the last page as transferred.
func (t *Target) Size() int { return t.size }

// hint returns how much of the next page may have to be held at a time.
func (t *Target) hint(part func(Response) error) int {
	if part != nil && inParts(t.encoding) {
		return min(t.size, piece)
	}
	return t.size
}

// inParts reports whether large pages of an encoding come in parts. With zstd, the state between two parts is usually
// larger than such a page.
func inParts(e Encoding) bool { return e != Zstd }

// offered returns the Accept-Encoding of the next request.
func (t *Target) offered() string {
	if t.local {
		return identity
	}
	return t.client.offered
}

// Get fetches the page into buf, whose content is overwritten and which is replaced if it is too small. It ends with
// the target's timeout or with ctx. Errors have Prometheus' words; Reason classifies them.
//
// Buffers come from the Options' Memory: buf may be one of those, of any size, and the one that the response ends up
// with must be given back. A larger buffer is taken only once a smaller one is full, whatever size the response
// announces.
//
// A large page, unless it is in zstd, is passed to part while it is received, except its end; a part is valid until
// part returns. The time taken by part does not count for the timeout. An error of part ends the exchange, with
// ReasonOther. Without part, every page is held as a whole.
func (t *Target) Get(ctx context.Context, buf []byte, part func(Response) error) (Response, error) {
	began := time.Now()
	if t.road == Plain {
		r, err := t.getPlain(ctx, buf, part)
		if !errors.Is(err, errRedirected) {
			return t.done(r, err)
		}
		// A server that redirects once is likely to do so again: a second request need not try, until one is not redirected.
		t.road = NetHTTP
		t.drop()
		buf = r.Body
	}
	return t.done(t.getLibrary(ctx, buf, part, t.timeout-time.Since(began)))
}

// Show fetches the page for display, including that of an error. take is given one part after the other; a part is
// valid until take returns.
func (t *Target) Show(ctx context.Context, take func(r Response, last bool) error) error {
	t.any = true
	defer func() { t.any = false }()
	r, err := t.Get(ctx, nil, func(r Response) error { return take(r, false) })
	if err == nil {
		err = take(r, true)
	}
	t.client.options.Memory.Give(r.Body)
	return err
}

// errRedirected leaves an exchange, and those after it, to net/http.
var errRedirected = errors.New("redirected")

func (t *Target) done(r Response, err error) (Response, error) {
	if err != nil {
		return Response{Body: r.Body[:0]}, err
	}
	t.size, t.encoding = int(r.Before)+len(r.Body), r.Encoding
	return r, nil
}

// intern returns b as a string: the last one if it is equal.
func (t *Target) intern(b []byte) string {
	if string(b) != t.contentType {
		t.contentType = string(b)
	}
	return t.contentType
}

// Close closes the target's connection, unless it is one that net/http keeps for several targets. Get may be called again.
func (t *Target) Close() {
	t.drop()
	if t.own != nil {
		t.own.CloseIdleConnections()
		t.own = nil
	}
}

// drop closes the connection, if there is one.
func (t *Target) drop() {
	t.mu.Lock()
	conn := t.conn
	t.conn, t.raw = nil, nil
	t.mu.Unlock()
	if conn != nil {
		_ = conn.Close() // the connection is not used any more
	}
}

// interrupt ends the exchange in progress.
func (t *Target) interrupt() {
	defer t.busy.Done()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conn != nil {
		_ = t.conn.SetDeadline(time.Unix(1, 0)) // a closed connection ends the exchange as well
	}
}

// watch calls interrupt when ctx is done. The returned function ends that; interrupt does not run after it.
func (t *Target) watch(ctx context.Context) func() bool {
	if ctx.Done() == nil {
		return nil
	}
	t.busy.Add(1)
	return context.AfterFunc(ctx, t.stop)
}

func (t *Target) unwatch(stop func() bool) {
	switch {
	case stop == nil:
	case stop():
		t.busy.Done()
	default:
		t.busy.Wait()
		t.drop() // its deadline is in the past now
	}
}
