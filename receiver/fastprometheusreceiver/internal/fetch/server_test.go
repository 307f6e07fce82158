// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	promcommon "github.com/prometheus/common/config"
	promconfig "github.com/prometheus/prometheus/config"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // net/http logs errors of the peers that are hostile on purpose
	goleak.VerifyTestMain(m)
}

const (
	accept = "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
	agent  = "godwit/1.0"
	// patient is a timeout that is never reached, and hasty one that tests reach.
	patient = time.Minute
	hasty   = 150 * time.Millisecond
)

// serveRaw listens and passes each connection to handle with its number. It closes the connection when handle returns.
func serveRaw(tb testing.TB, handle func(conn net.Conn, n int)) (url string) {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	var handlers sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	handlers.Go(func() {
		for n := 0; ; n++ {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			handlers.Go(func() {
				defer conn.Close()
				handle(conn, n)
			})
		}
	})
	tb.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, conn := range conns {
			conn.Close()
		}
		mu.Unlock()
		handlers.Wait()
	})
	return "http://" + l.Addr().String() + "/metrics"
}

// requests calls answer for each request on conn until that returns false.
func requests(conn net.Conn, answer func(r *http.Request) bool) {
	br := bufio.NewReader(conn)
	for {
		r, err := http.ReadRequest(br)
		if err != nil || !answer(r) {
			return
		}
	}
}

// throughTLS wraps a handler of plain connections for TLS.
func throughTLS(tb testing.TB, handle func(conn net.Conn, n int)) (url string, trust func(*promconfig.ScrapeConfig)) {
	tb.Helper()
	dir := tb.TempDir()
	a := newAuthority(tb, dir, "ca")
	node, _, _ := a.pair(tb, dir, "node.example")
	plain := serveRaw(tb, func(conn net.Conn, n int) {
		secured := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{node}})
		handle(secured, n)
		_ = secured.Close()
	})
	return "https" + plain[len("http"):], tlsJob(func(c *promcommon.TLSConfig) { c.CAFile = a.path })
}

// answering serves the same bytes for each request. If closing is set, it closes the connection after them.
func answering(tb testing.TB, response string, closing bool) string {
	tb.Helper()
	return serveRaw(tb, func(conn net.Conn, _ int) {
		requests(conn, func(*http.Request) bool {
			_, err := io.WriteString(conn, response)
			return err == nil && !closing
		})
	})
}

// serveFast serves the same bytes for each request, without allocations.
func serveFast(tb testing.TB, response []byte) string {
	tb.Helper()
	return serveRaw(tb, func(conn net.Conn, _ int) {
		buf := make([]byte, 4<<10)
		for n := 0; ; {
			k, err := conn.Read(buf[n:])
			if err != nil {
				return
			}
			if n += k; !bytes.HasSuffix(buf[:n], []byte("\r\n\r\n")) {
				continue
			}
			n = 0
			if _, err := conn.Write(response); err != nil {
				return
			}
		}
	})
}

// reset makes closing a connection send RST.
func reset(conn net.Conn) {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	_ = conn.(*net.TCPConn).SetLinger(0) // if it fails, the test shows that
}

// hold keeps a connection open until the peer closes it.
func hold(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

func jobConfig(edit ...func(*promconfig.ScrapeConfig)) *promconfig.ScrapeConfig {
	cfg := &promconfig.ScrapeConfig{
		JobName: "test", EnableCompression: true, HTTPClientConfig: promcommon.DefaultHTTPClientConfig,
	}
	for _, f := range edit {
		f(cfg)
	}
	return cfg
}

func newClient(tb testing.TB, cfg *promconfig.ScrapeConfig, options Options) *Client {
	tb.Helper()
	options.UserAgent = agent
	c, err := NewClient(cfg, options)
	require.NoError(tb, err)
	tb.Cleanup(c.Close)
	return c
}

// newTarget returns a target of a new job on the given road.
func newTarget(tb testing.TB, road Road, url string, timeout time.Duration, edit ...func(*promconfig.ScrapeConfig)) *Target {
	tb.Helper()
	target := newClient(tb, jobConfig(edit...), Options{NetHTTP: road == NetHTTP}).NewTarget(url, "", timeout, accept)
	require.Equal(tb, road, target.Road())
	tb.Cleanup(target.Close)
	return target
}

// bothRoads runs f for a target on each road.
func bothRoads(t *testing.T, url string, f func(t *testing.T, target *Target)) {
	t.Helper()
	for _, road := range []Road{Plain, NetHTTP} {
		t.Run(road.String(), func(t *testing.T) { f(t, newTarget(t, road, url, patient)) })
	}
}

func get(target *Target) (string, error) {
	r, err := target.Get(context.Background(), nil, nil)
	return string(r.Body), err
}

func decode(d *Decoder, r Response, limit int64) ([]byte, error) {
	var page []byte
	n, err := d.Decode(r, limit, func(chunk []byte) error {
		page = append(page, chunk...)
		return nil
	})
	if err == nil && n != int64(len(page)) {
		panic("the count is not what was yielded")
	}
	return page, err
}

func gzipped(tb testing.TB, body []byte) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(body)
	require.NoError(tb, err)
	require.NoError(tb, w.Close())
	return b.Bytes()
}

// zstded compresses as a stream, whose frame has no content size.
func zstded(tb testing.TB, body []byte, options ...zstd.EOption) []byte {
	tb.Helper()
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, append([]zstd.EOption{zstd.WithEncoderConcurrency(1)}, options...)...)
	require.NoError(tb, err)
	half := len(body) / 2
	_, err = w.Write(body[:half])
	require.NoError(tb, err)
	require.NoError(tb, w.Flush())
	_, err = w.Write(body[half:])
	require.NoError(tb, err)
	require.NoError(tb, w.Close())
	return b.Bytes()
}

// pageOf returns the beginning of a page that is made once and shared.
func pageOf(size int) []byte { return slices.Clip(longPage()[:size]) }

var longPage = sync.OnceValue(func() []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < 3*large; i++ {
		fmt.Fprintf(&b, "http_requests_total{code=\"200\",path=\"/api/v%d\"} %g\n", i*i+1, float64(i*7919)/1000)
	}
	return b.Bytes()
})
