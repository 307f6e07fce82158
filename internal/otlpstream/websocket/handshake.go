// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package websocket

import (
	"context"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // the protocol's choice; nothing depends on it
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

const (
	headerKey     = "Sec-WebSocket-Key"
	headerAccept  = "Sec-WebSocket-Accept"
	headerVersion = "Sec-WebSocket-Version"
	version       = "13"
)

// Accept answers a handshake, and takes over the connection for messages of at most limit bytes. If it returns an
// error, it has sent that as the answer.
func Accept(w http.ResponseWriter, r *http.Request, limit int) (*Conn, error) {
	refuse := func(code int, why string) (*Conn, error) {
		http.Error(w, why, code)
		return nil, errors.New("cannot accept a WebSocket: " + why)
	}
	header := w.Header()
	switch {
	case r.ProtoMajor != 1 || !r.ProtoAtLeast(1, 1) || !has(r.Header, "Connection", "upgrade") || !has(r.Header, "Upgrade", "websocket"):
		header.Set("Connection", "Upgrade")
		header.Set("Upgrade", "websocket")
		return refuse(http.StatusUpgradeRequired, "upgrade to a WebSocket over HTTP/1.1")
	case r.Method != http.MethodGet:
		header.Set("Allow", http.MethodGet)
		return refuse(http.StatusMethodNotAllowed, "use GET")
	case r.Header.Get(headerVersion) != version:
		header.Set(headerVersion, version)
		return refuse(http.StatusBadRequest, "the version is not "+version)
	case len(r.Header.Values(headerKey)) != 1 || !isKey(r.Header.Get(headerKey)):
		return refuse(http.StatusBadRequest, headerKey+" is not one of 16 bytes")
	case !sameOrigin(r):
		return refuse(http.StatusForbidden, "the page is from elsewhere")
	}
	header.Set("Connection", "Upgrade")
	header.Set("Upgrade", "websocket")
	header.Set(headerAccept, acceptance(r.Header.Get(headerKey)))
	w.WriteHeader(http.StatusSwitchingProtocols)
	conn, buffers, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, fmt.Errorf("cannot take over the connection: %w", err)
	}
	waiting := buffers.Reader
	ahead, _ := waiting.Peek(waiting.Buffered())
	return newConn(conn, false, limit, ahead), nil
}

// Dial opens a connection for messages of at most limit bytes. It returns the response whenever there was one.
func Dial(ctx context.Context, client *http.Client, address string, header http.Header, limit int) (*Conn, *http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot ask for a WebSocket: %w", err)
	}
	key := newKey()
	req.Header = header.Clone()
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "websocket")
	req.Header.Set(headerVersion, version)
	req.Header.Set(headerKey, key)
	response, err := client.Do(req)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot open a WebSocket: %w", err)
	}
	conn, ok := response.Body.(io.ReadWriteCloser)
	switch {
	case response.StatusCode != http.StatusSwitchingProtocols:
		err = errors.New(response.Status)
	case !ok || !has(response.Header, "Connection", "upgrade") || !has(response.Header, "Upgrade", "websocket") ||
		response.Header.Get(headerAccept) != acceptance(key):
		err = errors.New("the answer to the handshake is none of a WebSocket")
	case response.Header.Get("Sec-WebSocket-Extensions") != "" || response.Header.Get("Sec-WebSocket-Protocol") != "":
		err = errors.New("the server wants extensions, or a subprotocol")
	}
	if err != nil {
		_ = response.Body.Close()
		return nil, response, fmt.Errorf("cannot open a WebSocket: %w", err)
	}
	return newConn(conn, true, limit, nil), response, nil
}

// has reports whether a list in a header contains a word.
func has(header http.Header, name, word string) bool {
	for _, list := range header.Values(name) {
		for one := range strings.SplitSeq(list, ",") {
			if strings.EqualFold(strings.TrimSpace(one), word) {
				return true
			}
		}
	}
	return false
}

// sameOrigin reports whether a request comes from one of this server's own pages, or from no page at all.
func sameOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && strings.EqualFold(u.Host, r.Host)
}

func newKey() string {
	var key [16]byte
	_, _ = rand.Read(key[:]) // it does not fail
	return base64.StdEncoding.EncodeToString(key[:])
}

func isKey(key string) bool {
	b, err := base64.StdEncoding.DecodeString(key)
	return err == nil && len(b) == 16
}

// acceptance computes a server's answer to a key.
func acceptance(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) //nolint:gosec // as above
	return base64.StdEncoding.EncodeToString(sum[:])
}
