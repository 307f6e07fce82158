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
	"time"
)

// A Response is a page as it was transferred, or a part of one.
type Response struct {
	// Status is that of an error, as code and reason. Only Show returns such pages.
	Status      string
	ContentType string
	Encoding    Encoding
	// Before is how many bytes of the page came in parts before this.
	Before int64
	// Body is in the buffer given to Get, or in a larger one that replaces it. It is valid until that is used again.
	// When Get fails, Body is empty and still carries the buffer.
	Body []byte
}

// A Road is how a target's requests travel.
type Road uint8

// The roads.
const (
	Plain   Road = iota // our own exchange, through TLS or not
	NetHTTP             // net/http
)

func (r Road) String() string { return [...]string{"plain", "net/http"}[r] }

// A Target is what one URL needs from scrape to scrape. One goroutine uses it at a time.
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

	contentType string // the last one, so that the same one again costs nothing
	size        int    // of the last body, as transferred
	near        bool   // on this host, by its name
	local       bool   // asked for pages that are not compressed, since it is on this host
	any         bool   // the page of an error is a page
	road        Road
	encoding    Encoding

	mu   sync.Mutex // conn, against interrupt
	conn net.Conn
	used time.Time // when conn was last of use
	busy sync.WaitGroup
	stop func() // interrupt, once
}

// NewTarget prepares the exchanges with a URL. unixSocket is the path of the socket that the target listens at, if it
// does. A URL that makes no sense is reported by Get.
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

// isPlain reports whether the plain road can send a request for u exactly as net/http would.
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

// isLocal tells whether a connection leads to an address of this host, and not away from it.
func isLocal(conn net.Conn) bool {
	here, ok := conn.LocalAddr().(*net.TCPAddr)
	there, tcp := conn.RemoteAddr().(*net.TCPAddr)
	return ok && tcp && here.IP.Equal(there.IP)
}

// URL is where the target is.
func (t *Target) URL() string { return t.url }

// Road is how the target's next request travels.
func (t *Target) Road() Road { return t.road }

// Encoding is how the last page was compressed.
func (t *Target) Encoding() Encoding { return t.encoding }

// Size is how large the last page was, as it was transferred.
func (t *Target) Size() int { return t.size }

// hint is how much of the next page may have to be held.
func (t *Target) hint(part func(Response) error) int {
	if part != nil && inParts(t.encoding) {
		return min(t.size, piece)
	}
	return t.size
}

// inParts tells whether large pages of an encoding come in parts. What it takes to go on with one in the middle is more
// with zstd than such a page is, as a rule.
func inParts(e Encoding) bool { return e != Zstd }

// offered is the Accept-Encoding of the next request.
func (t *Target) offered() string {
	if t.local {
		return identity
	}
	return t.client.offered
}

// Get fetches the page into buf, whose content is overwritten and which is replaced when it is too small. It ends with
// the target's timeout or with ctx. Errors are in Prometheus' words; Reason sorts them.
//
// Buffers are the Options' Memory's: buf may be one of those, as small as one likes, and the one that the response has at
// the end is to be given back. There is a large one only once a small one is full, however large a page is said to be.
//
// A large page, unless it is in zstd, is given to part as it comes in, all but its end; a part is valid until part
// returns. The time that takes does not count for the timeout. An error of part's ends it; its reason is ReasonOther. Without
// part, every page is held as a whole.
func (t *Target) Get(ctx context.Context, buf []byte, part func(Response) error) (Response, error) {
	began := time.Now()
	if t.road == Plain {
		r, err := t.getPlain(ctx, buf, part)
		if !errors.Is(err, errRedirected) {
			return t.done(r, err)
		}
		// Whoever redirects once will do so again: one request is enough to learn it.
		t.road = NetHTTP
		t.drop()
		buf = r.Body
	}
	return t.done(t.getLibrary(ctx, buf, part, t.timeout-time.Since(began)))
}

// Show fetches the page for people, who want to see what an error says, too. It is given to take part by part; a part is
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

// errRedirected hands an exchange on to net/http.
var errRedirected = errors.New("redirected")

func (t *Target) done(r Response, err error) (Response, error) {
	if err != nil {
		return Response{Body: r.Body[:0]}, err
	}
	t.size, t.encoding = int(r.Before)+len(r.Body), r.Encoding
	return r, nil
}

// intern returns b as a string: the last one when it is the same.
func (t *Target) intern(b []byte) string {
	if string(b) != t.contentType {
		t.contentType = string(b)
	}
	return t.contentType
}

// Close closes the target's connection. Get may be called again.
func (t *Target) Close() { t.drop() }

// drop closes the connection if there is one.
func (t *Target) drop() {
	t.mu.Lock()
	conn := t.conn
	t.conn = nil
	t.mu.Unlock()
	if conn != nil {
		_ = conn.Close() // nothing of it is wanted any more
	}
}

// interrupt ends the exchange under way.
func (t *Target) interrupt() {
	defer t.busy.Done()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conn != nil {
		_ = t.conn.SetDeadline(time.Unix(1, 0)) // a closed connection ends the exchange as well
	}
}

// watch calls interrupt when ctx is done. The function it returns ends that; interrupt does not run after it.
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
		t.drop() // its deadline is spoilt
	}
}
