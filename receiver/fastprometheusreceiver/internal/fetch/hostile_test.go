// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	promconfig "github.com/prometheus/prometheus/config"
	"github.com/stretchr/testify/require"
)

const head200 = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"

func TestSurvivesHostilePeers(t *testing.T) {
	// f fetches from a peer on each road; the reason is the same for both unless two are given.
	f := func(name string, handle func(conn net.Conn), timeout time.Duration, want string, reasons ...string) {
		t.Helper()
		once := func(conn net.Conn, _ int) {
			requests(conn, func(*http.Request) bool {
				handle(conn)
				return false
			})
		}
		bounded := func(c *promconfig.ScrapeConfig) { c.BodySizeLimit, c.HTTPClientConfig.EnableHTTP2 = 1<<20, false }
		fails := func(t *testing.T, road Road, target *Target) {
			t.Helper()
			r, err := target.Get(t.Context(), make([]byte, 0, 1000), nil)
			require.ErrorContains(t, err, want)
			require.Equal(t, reasons[min(int(road), len(reasons)-1)], Reason(err), "%v", err)
			require.Empty(t, r.Body)
			require.LessOrEqual(t, cap(r.Body), 2<<20)
		}
		server := serveRaw(t, once)
		secured, trust := throughTLS(t, once)
		for _, road := range []Road{Plain, NetHTTP} {
			t.Run(name+"/"+road.String(), func(t *testing.T) {
				t.Parallel()
				fails(t, road, newTarget(t, road, server, timeout, bounded))
			})
			t.Run(name+"/TLS/"+road.String(), func(t *testing.T) {
				t.Parallel()
				fails(t, road, newTarget(t, road, secured, timeout, bounded, trust))
			})
		}
	}
	send := func(text string) func(net.Conn) {
		return func(conn net.Conn) { io.WriteString(conn, text) }
	}
	forever := func(begin, text string) func(net.Conn) {
		return func(conn net.Conn) {
			_, err := io.WriteString(conn, begin)
			for err == nil {
				_, err = io.WriteString(conn, text)
			}
		}
	}
	drip := func(text string) func(net.Conn) {
		return func(conn net.Conn) {
			for i := range text {
				if _, err := io.WriteString(conn, text[i:i+1]); err != nil {
					return
				}
			}
			hold(conn)
		}
	}
	reset := func(text string) func(net.Conn) {
		return func(conn net.Conn) {
			io.WriteString(conn, text)
			reset(conn)
			conn.Close()
		}
	}

	f("silent", hold, hasty, "context deadline exceeded", ReasonTimeout)
	f("slow head", drip(head200), hasty, "context deadline exceeded", ReasonTimeout)
	f("slow body", drip(head200+"Content-Length: 100\r\n\r\nup"), hasty, "context deadline exceeded", ReasonTimeout)
	f("slow chunks", drip(head200+"Transfer-Encoding: chunked\r\n\r\n2\r\nup"), hasty, "context deadline exceeded", ReasonTimeout)
	f("slow end", drip(head200+"\r\nup 1\n"), hasty, "context deadline exceeded", ReasonTimeout)
	f("endless head", forever(head200, "X: "+strings.Repeat("x", 1000)+"\r\n"), patient, "headers exceeded", ReasonProtocol)
	f("endless line", forever("HTTP/1.1 200 ", strings.Repeat("x", 1000)), patient, "exceeded", ReasonProtocol)
	f("endless interim", forever("", "HTTP/1.1 103 Early Hints\r\n\r\n"), patient, "", ReasonProtocol)
	f("endless body", forever(head200+"\r\n", strings.Repeat("x", 1000)), patient, "body size limit exceeded", ReasonBodySize)
	f("endless chunks", forever(head200+"Transfer-Encoding: chunked\r\n\r\n", "10\r\n0123456789abcdef\r\n"), patient, "body size limit exceeded", ReasonBodySize)
	f("endless gzip", forever(head200+"Content-Encoding: gzip\r\n\r\n", strings.Repeat("x", 1000)), patient, "body size limit exceeded", ReasonBodySize)
	f("endless trailer", forever(head200+"Transfer-Encoding: chunked\r\n\r\n0\r\n", "X: x\r\n"), patient, "", ReasonProtocol)
	f("huge length", send(head200+"Content-Length: 1099511627776\r\n\r\n"), patient, "body size limit exceeded", ReasonBodySize)
	f("huge chunk", send(head200+"Transfer-Encoding: chunked\r\n\r\nffffffffff\r\nx"), patient, "", ReasonBodySize, ReasonReset)
	f("short", send(head200+"Content-Length: 100\r\n\r\nup 1\n"), patient, "unexpected EOF", ReasonReset)
	f("short chunk", send(head200+"Transfer-Encoding: chunked\r\n\r\n100\r\nup 1\n"), patient, "unexpected EOF", ReasonReset)
	f("no last chunk", send(head200+"Transfer-Encoding: chunked\r\n\r\n5\r\nup 1\n\r\n"), patient, "unexpected EOF", ReasonReset)
	f("bad chunk", send(head200+"Transfer-Encoding: chunked\r\n\r\nzz\r\nup 1\n\r\n"), patient, "invalid byte in chunk length", ReasonProtocol)
	f("reset", reset(""), patient, "", ReasonReset)
	f("reset in head", reset(head200), patient, "", ReasonReset)
	f("reset in body", reset(head200+"Content-Length: 100\r\n\r\nup 1\n"), patient, "", ReasonReset)
	f("closed", send(""), patient, "EOF", ReasonReset)
	f("not http", send("SSH-2.0-OpenSSH_9.2\r\n"), patient, "malformed HTTP response", ReasonProtocol)
	f("other version", send("RTSP/1.0 200 OK\r\n\r\n"), patient, "malformed HTTP version", ReasonProtocol)
	f("tls", send("\x15\x03\x01\x00\x02\x02\x16\r\n"), patient, "malformed HTTP response", ReasonProtocol)
	f("bad length", send(head200+"Content-Length: -1\r\n\r\n"), patient, "bad Content-Length", ReasonProtocol)
	f("two lengths", send(head200+"Content-Length: 5\r\nContent-Length: 4\r\n\r\nup 1\n"), patient, "multiple Content-Length", ReasonProtocol)
	f("bad header", send(head200+"no colon\r\n\r\n"), patient, "malformed MIME header", ReasonProtocol)
	f("unknown encoding", send(head200+"Content-Encoding: br\r\n\r\nx"), patient, `unsupported content encoding "br"`, ReasonEncoding)
	f("not found", send("HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno"), patient, "server returned HTTP status 404 Not Found", ReasonStatus)
	f("no content", send("HTTP/1.1 204 No Content\r\n\r\n"), patient, "server returned HTTP status 204 No Content", ReasonStatus)
	f("partial", send("HTTP/1.1 206 Partial Content\r\nContent-Length: 5\r\n\r\nup 1\n"), patient, "server returned HTTP status 206 Partial Content", ReasonStatus)
	f("endless error", forever("HTTP/1.1 500 Internal Server Error\r\n\r\n", strings.Repeat("x", 1000)), patient, "server returned HTTP status 500", ReasonStatus)
	f("redirect loop", send("HTTP/1.1 302 Found\r\nLocation: /metrics\r\nContent-Length: 0\r\n\r\n"), patient, "stopped after 10 redirects", ReasonProtocol)
}

// If the end of a body is given in two ways, it ends as in net/http, and so in Prometheus. The same for names with
// spaces.
func TestLeavesOddHeadsToNetHTTP(t *testing.T) {
	for framing, want := range map[string]string{
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nup 1\n\r\n0\r\n\r\n": "up 1\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n5\r\nup 1\n\r\n0\r\n\r\n": "up 1\n",
		"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nup 1\n":                                        "up 1\n",
	} {
		for _, road := range []Road{Plain, NetHTTP} {
			target := newTarget(t, road, answering(t, framing, true), patient)
			for range 2 {
				page, err := get(target)
				require.NoError(t, err, framing)
				require.Equal(t, want, page, framing)
				require.Equal(t, NetHTTP, target.Road())
			}
		}
	}
}

// Bytes after a response are not the beginning of the next one.
func TestDropsWhatFollowsAResponse(t *testing.T) {
	server := answering(t, page200+"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nup 0\n", false)
	bothRoads(t, server, func(t *testing.T, target *Target) {
		for range 3 {
			page, err := get(target)
			require.NoError(t, err)
			require.Equal(t, "up 1\n", page)
		}
	})
}

func TestSaysWhyThereIsNoConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	refused := "http://" + l.Addr().String() + "/metrics"
	l.Close()
	bothRoads(t, refused, func(t *testing.T, target *Target) {
		_, err := get(target)
		require.ErrorContains(t, err, `Get "`+refused+`": dial tcp `)
		require.ErrorContains(t, err, "connect: connection refused")
		require.Equal(t, ReasonRefused, Reason(err))
	})
	bothRoads(t, "http://name.invalid/metrics", func(t *testing.T, target *Target) {
		_, err := get(target)
		require.Equal(t, ReasonDNS, Reason(err), "%v", err)
	})
	c := newClient(t, jobConfig(), Options{})
	_, err = get(c.NewTarget("http://x/metrics", t.TempDir()+"/missing.sock", patient, accept))
	require.Equal(t, ReasonConnect, Reason(err), "%v", err)
	require.Empty(t, Reason(nil))
	require.Equal(t, ReasonOther, Reason(io.ErrClosedPipe))
}

// The body of an error is read to keep the connection, but only for a short time.
func TestKeepsTheConnectionAfterAnError(t *testing.T) {
	conns := make(chan struct{}, 100)
	server := serveRaw(t, func(conn net.Conn, _ int) {
		conns <- struct{}{}
		requests(conn, func(*http.Request) bool {
			_, err := io.WriteString(conn, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy")
			return err == nil
		})
	})
	bothRoads(t, server, func(t *testing.T, target *Target) {
		for range 3 {
			_, err := get(target)
			require.EqualError(t, err, "server returned HTTP status 503 Service Unavailable")
		}
		require.Len(t, conns, 1)
		<-conns
	})
}
