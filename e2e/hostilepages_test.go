// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/godwit-otel/godwit/e2e/targets"
)

const (
	protoType = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
	openType  = "application/openmetrics-text; version=1.0.0; charset=utf-8"
)

// family returns a delimited family of the protobuf exposition format.
func family(name string, kind uint64, all ...[]byte) []byte {
	body := cat(text(1, name), varint(3, kind))
	for _, m := range all {
		body = append(body, field(4, m)...)
	}
	return protowire.AppendBytes(nil, body)
}

const (
	protoGauge, protoHistogram = 1, 4
	manyGauges                 = 17_000
)

// gauges returns series without number skip. Number odd has the NaN that stands for a missing value; -1 means none.
func gauges(skip, odd int) string {
	var all [][]byte
	for i := range manyGauges {
		v := math.Float64bits(float64(i))
		if i == odd {
			v = absent
		}
		if i != skip {
			all = append(all, cat(field(1, cat(text(1, "id"), text(2, fmt.Sprint(i)))), field(2, fixed(1, v))))
		}
	}
	return string(family("g", protoGauge, all...))
}

func listed(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

func plain(body string) func(int) targets.Page {
	return func(int) targets.Page { return targets.Page{Body: body} }
}

func encoded(body, encodings string) func(int) targets.Page {
	return func(int) targets.Page {
		return targets.Page{Body: body, Encodings: []string{}, Header: http.Header{"Content-Encoding": {encodings}}}
	}
}

func typed(contentType string, bodies ...string) func(int) targets.Page {
	return func(scrape int) targets.Page {
		return targets.Page{Body: bodies[min(scrape, len(bodies)-1)], ContentType: contentType}
	}
}

// hostilePages are malicious responses of targets. targets is the number of targets with such a page, by default two.
var hostilePages = []struct {
	name    string
	targets int
	keys    string
	page    func() func(scrape int) targets.Page
}{
	{name: "60,000 labels on a line", page: func() func(int) targets.Page {
		return plain("m{" + strings.TrimSuffix(listed(60_000, "label_%d=\"v\","), ",") + "} 1\n")
	}},
	{name: "60,000 labels, others each time", page: func() func(int) targets.Page {
		labels := strings.TrimSuffix(listed(60_000, "label_%d=\"v\","), ",")
		return func(scrape int) targets.Page {
			return targets.Page{Body: fmt.Sprintf("m_%d{%s} 1\n", scrape, labels)}
		}
	}},
	{name: "a label 60,000 times", page: func() func(int) targets.Page {
		return plain("m{" + strings.TrimSuffix(strings.Repeat("a=\"v\",", 60_000), ",") + "} 1\n")
	}},
	{name: "odd NaN", page: func() func(int) targets.Page {
		return typed(protoType, gauges(-1, -1), gauges(5, -1), gauges(5, 7))
	}},
	{name: "many NaN", page: func() func(int) targets.Page {
		return func(scrape int) targets.Page {
			return targets.Page{Body: listed(5000, "m{id=\"%d\"} NaN\n") + strings.Repeat("n NaN\n", scrape%3)}
		}
	}},
	{name: "gzip bomb", page: func() func(int) targets.Page { page := bomb(); return func(int) targets.Page { return page } }},
	{name: "zstd bomb", page: func() func(int) targets.Page { page := zstdBomb(); return func(int) targets.Page { return page } }},
	{name: "gzip in gzip", page: func() func(int) targets.Page {
		inner := pack("gzip", []byte(strings.Repeat(goodPage, 1000)), 100)
		return encoded(string(pack("gzip", inner, 1)), "gzip, gzip")
	}},
	{name: "gzip in many parts", page: func() func(int) targets.Page {
		return encoded(strings.Repeat(string(pack("gzip", []byte("# \n"), 1)), 20_000), "gzip")
	}},
	{name: "truncated gzip", page: func() func(int) targets.Page {
		body := pack("gzip", []byte(goodPage), 100)
		return encoded(string(body[:len(body)-9]), "gzip")
	}},
	{name: "hanging", targets: hostileCrowd, page: func() func(int) targets.Page {
		return func(int) targets.Page { return targets.Page{Fault: targets.Hang} }
	}},
	{name: "large, then hanging", targets: hostileCrowd, page: func() func(int) targets.Page {
		body := listed(20_000, "metric_of_some_length{id=\"%d\"} 1\n")
		return func(scrape int) targets.Page {
			if scrape > 0 {
				return targets.Page{Fault: targets.Hang}
			}
			return targets.Page{Body: body}
		}
	}},
	{name: "dripping", targets: 50, page: func() func(int) targets.Page {
		return func(int) targets.Page {
			return targets.Page{Body: strings.Repeat(goodPage, 100), Drip: 1, DripPause: 20 * time.Millisecond}
		}
	}},
	{name: "endless", page: func() func(int) targets.Page {
		return func(int) targets.Page {
			return targets.Page{Body: strings.Repeat(goodPage, 1000), Fault: targets.Endless}
		}
	}},
	{name: "endless line", page: func() func(int) targets.Page {
		return func(int) targets.Page {
			return targets.Page{Body: strings.Repeat("g", 1<<16), Fault: targets.Endless}
		}
	}},
	{name: "endless comment", page: func() func(int) targets.Page {
		return func(int) targets.Page {
			return targets.Page{Body: "# " + strings.Repeat("g", 1<<16), Fault: targets.Endless}
		}
	}},
	{name: "redirects", page: func() func(int) targets.Page {
		return func(scrape int) targets.Page {
			return targets.Page{Status: http.StatusFound, Header: http.Header{"Location": {fmt.Sprintf("/metrics?%d", scrape)}}}
		}
	}},
	{name: "a thousand timestamps", page: func() func(int) targets.Page {
		return func(int) targets.Page {
			var b strings.Builder
			now := time.Now().UnixMilli()
			for i := range 1000 {
				fmt.Fprintf(&b, "m 1 %d\n", now-int64(i))
			}
			return targets.Page{Body: b.String()}
		}
	}},
	{name: "another type each time", page: func() func(int) targets.Page {
		kinds := []string{"counter", "gauge", "histogram", "summary", "untyped", "nothing"}
		return func(scrape int) targets.Page {
			return targets.Page{Body: fmt.Sprintf("# TYPE m %s\nm 1\nm_bucket{le=\"1\"} 1\nm_bucket{le=\"+Inf\"} 2\nm_sum 1\nm_count 2\nm{quantile=\"0.5\"} 1\n", kinds[scrape%len(kinds)])}
		}
	}},
	{name: "types after samples", page: func() func(int) targets.Page {
		return plain("m_total 1\n# TYPE m_total counter\nm_total 2\n# TYPE m_total gauge\n# TYPE m_total gauge\nm_total{a=\"b\"} 3\n")
	}},
	{name: "other series each time", page: func() func(int) targets.Page {
		return func(int) targets.Page {
			first := newName.Add(2000)
			var b strings.Builder
			for i := range int64(2000) {
				fmt.Fprintf(&b, "churning{id=\"%d\"} 1\n", first+i)
			}
			return targets.Page{Body: b.String()}
		}
	}},
	{name: "wide lines", page: func() func(int) targets.Page {
		return plain(listed(20, "m{id=\"%d\",v=\""+strings.Repeat("\\\\", 100_000)+"\"} 1\n"))
	}},
	{name: "histograms of 20,000 buckets", page: func() func(int) targets.Page {
		return plain("# TYPE h histogram\n" + listed(20_000, "h_bucket{le=\"%d\"} 1\n") + "h_bucket{le=\"+Inf\"} 1\nh_sum 1\nh_count 1\n")
	}},
	{name: "histograms in disorder", page: func() func(int) targets.Page {
		return plain("# TYPE h histogram\nh_bucket{le=\"+Inf\"} 1\nh_bucket{le=\"1\"} NaN\nh_bucket{le=\"1\"} -5\nh_bucket{le=\"x\"} 1\nh_bucket 3\nh_count -1\nh_sum NaN\nh_bucket{le=\"1\"} 1e308\n")
	}},
	{name: "OpenMetrics without end", page: func() func(int) targets.Page { return typed(openType, "# TYPE m gauge\nm 1\n") }},
	{name: "OpenMetrics after the end", page: func() func(int) targets.Page {
		return typed(openType, "# TYPE m counter\nm_total 1 # {"+strings.Repeat("a=\"b\",", 10_000)+"c=\"d\"} 1\n# EOF\nm_total 2\n# EOF\n")
	}},
	{name: "numbers that are none", page: func() func(int) targets.Page {
		return plain("a 1e999999999\nb 0x1p-99999\nc " + strings.Repeat("9", 100_000) + "\nd +-1\ne 1 99999999999999999999\nf 1 -9223372036854775808\n")
	}},
	{name: "garbage", page: func() func(int) targets.Page { return plain(string(noise(1 << 20))) }},
	{name: "garbage in protobuf", page: func() func(int) targets.Page { return typed(protoType, string(noise(1<<20))) }},
	{name: "protobuf of 2^63 bytes", page: func() func(int) targets.Page {
		return typed(protoType, string(binary.AppendUvarint(nil, math.MaxInt64))+"abc")
	}},
	{name: "protobuf, truncated", page: func() func(int) targets.Page { return typed(protoType, gauges(-1, -1)[:100_000]) }},
	{name: "protobuf, nothing but metrics", page: func() func(int) targets.Page {
		return typed(protoType, string(protowire.AppendBytes(nil, cat(text(1, "m"), varint(3, protoGauge), nothings(4, 500_000)))))
	}},
	{name: "protobuf, nothing but labels", page: func() func(int) targets.Page {
		return typed(protoType, string(family("m", protoGauge, cat(nothings(1, 500_000), field(2, fixed(1, 0))))))
	}},
	{name: "protobuf, spans without end", keys: ", scrape_native_histograms: true", page: func() func(int) targets.Page {
		span := field(12, cat(varint(1, protowire.EncodeZigZag(math.MaxInt32)), varint(2, math.MaxUint32)))
		h := cat(varint(1, 1), fixed(2, 0), varint(5, protowire.EncodeZigZag(3)), fixed(6, 0), varint(7, 0), span, span, varint(13, 2))
		return typed(protoType, string(family("h", protoHistogram, field(7, h))))
	}},
	{name: "protobuf, groups in groups", page: func() func(int) targets.Page {
		return typed(protoType, string(protowire.AppendBytes(nil, cat(text(1, "m"), []byte(strings.Repeat("\x5b", 500_000))))))
	}},
}

// Malicious pages do not affect the scrapes of other targets.
func TestHostileTargets(t *testing.T) {
	t.Parallel()
	for i, h := range hostilePages {
		if !tried(i, h.name) {
			continue
		}
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			var attacking atomic.Bool
			page := h.page()
			n := h.targets
			if n == 0 {
				n = 2
			}
			var addrs []string
			for range n {
				first := atomic.Int64{}
				addrs = append(addrs, targets.NewFunc(t, func(scrape int) targets.Page {
					if !attacking.Load() {
						first.Store(int64(scrape) + 1)
						return targets.Page{Body: "m 1\n"}
					}
					return page(scrape - int(first.Load()))
				}).Addr())
			}
			s := besiegeAgent(t, "", fmt.Sprintf("        - {job_name: bad, static_configs: [{targets: ['%s']}]%s}\n", strings.Join(addrs, "', '"), h.keys))
			s.withstand(func(ctx context.Context) {
				attacking.Store(true)
				<-ctx.Done()
				attacking.Store(false)
			})
		})
	}
}

// rawTargets respond with what no HTTP server would send.
var rawTargets = []struct {
	name string
	say  func(ctx context.Context, conn net.Conn)
}{
	{"silence", func(ctx context.Context, _ net.Conn) { <-ctx.Done() }},
	{"garbage", func(_ context.Context, conn net.Conn) { _, _ = conn.Write(noise(1 << 20)) }},
	{"slow status", func(ctx context.Context, conn net.Conn) { drip(ctx, conn, "H") }},
	{"slow headers", func(ctx context.Context, conn net.Conn) {
		_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\n"))
		drip(ctx, conn, "X: y\r\n")
	}},
	{"endless headers", func(ctx context.Context, conn net.Conn) {
		_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\n"))
		for ctx.Err() == nil {
			if _, err := conn.Write([]byte(strings.Repeat("X: "+strings.Repeat("y", 1000)+"\r\n", 100))); err != nil {
				return
			}
		}
	}},
	{"endless continue", func(ctx context.Context, conn net.Conn) {
		for ctx.Err() == nil {
			if _, err := conn.Write([]byte(strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 1000))); err != nil {
				return
			}
		}
	}},
	{"two lengths", func(_ context.Context, conn net.Conn) {
		_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 99999999999\r\nTransfer-Encoding: chunked\r\n\r\nm 1\n"))
	}},
	{"a length of 2^63", func(ctx context.Context, conn net.Conn) {
		_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\nm 1\n"))
		<-ctx.Done()
	}},
	{"a length of 1 GB that stops", func(ctx context.Context, conn net.Conn) {
		_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 200000000\r\n\r\nm 1\n"))
		<-ctx.Done()
	}},
	{"huge chunks", func(ctx context.Context, conn net.Conn) {
		_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\nm 1\n"))
		<-ctx.Done()
	}},
	{"chunks of one byte", func(ctx context.Context, conn net.Conn) {
		_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"))
		chunks := []byte(strings.Repeat("1;"+strings.Repeat("x", 100)+"\r\n#\r\n", 1000))
		for ctx.Err() == nil {
			if _, err := conn.Write(chunks); err != nil {
				return
			}
		}
	}},
	{"more than asked for", func(_ context.Context, conn net.Conn) {
		_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nm 1\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nn 2\n" + string(noise(1000))))
	}},
}

// Malicious HTTP responses do not affect the scrapes of other targets.
func TestHostileTargetServers(t *testing.T) {
	t.Parallel()
	for i, h := range rawTargets {
		if !tried(i, h.name) {
			continue
		}
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			addr := serveRaw(t, h.say)
			s := besiegeAgent(t, "", fmt.Sprintf("        - {job_name: bad, static_configs: [{targets: [%q]}]}\n", addr))
			s.withstand(func(ctx context.Context) { <-ctx.Done() })
		})
	}
}

// serveRaw answers each request on each connection with say until the test ends.
func serveRaw(t *testing.T, say func(ctx context.Context, conn net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { // it ends with its connection, which ends with ctx
				defer conn.Close()
				defer context.AfterFunc(ctx, func() { conn.Close() })()
				request := make([]byte, 4096)
				for {
					if _, err := conn.Read(request); err != nil {
						return
					}
					say(ctx, conn)
				}
			}()
		}
	}()
	t.Cleanup(func() {
		cancel()
		l.Close()
		<-done
	})
	return l.Addr().String()
}

// answer serves a response of an allocator.
func answer(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write([]byte(body))
	}
}

func withoutEnd(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write([]byte(text)); err != nil {
				return
			}
		}
	}
}
