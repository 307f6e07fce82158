// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"golang.org/x/net/http/httpproxy"
)

// An HTTP proxy cannot forward a WebSocket as a request: it must be asked for a connection to the server, by CONNECT.
// The library does so for TLS only; without TLS the proxy could do anything with the handshake.

// fromEnvironment finds the proxy of a request in the variables that all programs read: HTTP_PROXY, HTTPS_PROXY and NO_PROXY.
func fromEnvironment() func(*http.Request) (*url.URL, error) {
	proxy := httpproxy.FromEnvironment().ProxyFunc()
	return func(r *http.Request) (*url.URL, error) { return proxy(r.URL) }
}

// tunneling is a transport for handshakes with a server.
func tunneling(base *http.Transport, server string) *http.Transport {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != plain {
		return base // with TLS the library does it
	}
	proxy, err := base.Proxy(&http.Request{URL: u})
	if err != nil || proxy == nil || proxy.Scheme != plain && proxy.Scheme != plain+"s" {
		return base // other schemes are proxies of connections
	}
	t := base.Clone()
	t.Proxy = nil
	t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := base.DialContext(ctx, network, hostPort(proxy))
		if err != nil {
			return nil, fmt.Errorf("cannot connect to the proxy: %w", err)
		}
		if proxy.Scheme != plain {
			conn = tls.Client(conn, &tls.Config{ServerName: proxy.Hostname(), MinVersion: tls.VersionTLS12})
		}
		if err := connect(ctx, conn, proxy, addr); err != nil {
			return nil, errors.Join(fmt.Errorf("cannot connect to %s through the proxy %s: %w", addr, proxy.Redacted(), err), conn.Close())
		}
		return conn, nil
	}
	return t
}

// connect asks the proxy at the other end of a connection to connect to addr.
func connect(ctx context.Context, conn net.Conn, proxy *url.URL, addr string) error {
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: addr}, Host: addr, Header: http.Header{}}
	if user := proxy.User; user != nil {
		password, _ := user.Password()
		request.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)))
	}
	if err := request.Write(conn); err != nil {
		return err
	}
	const largestAnswer = 4 << 10
	read := bufio.NewReaderSize(conn, largestAnswer)
	response, err := http.ReadResponse(read, request) //nolint:bodyclose // it is the connection
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return err
	case response.StatusCode != http.StatusOK:
		return errors.New(response.Status)
	case read.Buffered() > 0:
		return errors.New("it says something before it is asked")
	}
	return nil
}

// hostPort is the address of a proxy.
func hostPort(proxy *url.URL) string {
	port := proxy.Port()
	if port == "" {
		port = map[string]string{plain: "80", plain + "s": "443"}[proxy.Scheme]
	}
	return net.JoinHostPort(proxy.Hostname(), port)
}
