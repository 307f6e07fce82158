// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"

	"github.com/godwit-otel/godwit/internal/alloctest"
)

const benchSamples = 500

// nodePage resembles a host exporter's page.
func nodePage() []byte {
	var out bytes.Buffer
	for family := range benchSamples / 10 {
		fmt.Fprintf(&out, "# HELP node_family_%d_total What it counts.\n# TYPE node_family_%d_total counter\n", family, family)
		for i := range 10 {
			fmt.Fprintf(&out, "node_family_%d_total{cpu=\"%d\",mode=\"idle\",device=\"sda%d\"} %d.25\n", family, i, i, 1000*family+i)
		}
	}
	return out.Bytes()
}

// canned serves the same response to every request, without allocations.
func canned(tb testing.TB, encoding string, body []byte) string {
	tb.Helper()
	listener, err := net.Listen("tcp", "localhost:0")
	require.NoError(tb, err)
	tb.Cleanup(func() { listener.Close() })
	response := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n%sContent-Length: %d\r\n\r\n%s", encoding, len(body), body)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				request := make([]byte, 4096)
				for {
					for n := 0; !bytes.HasSuffix(request[:n], []byte("\r\n\r\n")); {
						more, err := conn.Read(request[n:])
						if err != nil {
							return
						}
						n += more
					}
					if _, err := conn.Write(response); err != nil {
						return
					}
				}
			}()
		}
	}()
	return listener.Addr().String()
}

// still returns the only target of a receiver that does not scrape by itself.
func still(tb testing.TB, options, address string) *target {
	tb.Helper()
	r := run(tb, options+fmt.Sprintf(`
initial_scrape_offset: 1h
config:
  scrape_configs:
    - job_name: test
      static_configs: [{targets: [%q]}]
`, address), withConsumer(consumertest.NewNop()))
	require.Eventually(tb, func() bool { return r.census()[stateUnknown] == 1 }, patience, glance)
	return r.onlyTarget(tb)
}

func packed(tb testing.TB) []byte {
	tb.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(nodePage())
	require.NoError(tb, err)
	require.NoError(tb, w.Close())
	return out.Bytes()
}

// BenchmarkScrape measures a whole scrape, including the kernel's sockets and the target's side.
func BenchmarkScrape(b *testing.B) {
	for name, page := range map[string]struct {
		encoding string
		body     []byte
	}{
		"identity": {"", nodePage()},
		"gzip":     {"Content-Encoding: gzip\r\n", packed(b)},
	} {
		for _, reuse := range []string{"never", "always"} {
			b.Run(name+"/reuse="+reuse, func(b *testing.B) {
				target := still(b, "reuse: "+reuse, canned(b, page.encoding, page.body))
				at := time.Now()
				target.scrape(at)
				b.ReportAllocs()
				for b.Loop() {
					at = at.Add(time.Second)
					target.scrape(at)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchSamples, "ns/sample")
				require.Equal(b, stateHealthy, target.snapshot().State)
			})
		}
	}
}

// A scrape of a known page has few allocations for the exchange, and none for its samples.
func TestScrapeAllocations(t *testing.T) {
	target := still(t, "reuse: always", canned(t, "", nodePage()))
	at := time.Now()
	scrape := func() {
		at = at.Add(time.Second)
		target.scrape(at)
	}
	for range 10 {
		scrape()
	}
	require.Equal(t, stateHealthy, target.snapshot().State)
	require.Equal(t, benchSamples, target.snapshot().Samples)
	assert.LessOrEqual(t, alloctest.PerRun(scrape), 40.0)
}

// Idle targets have no goroutines.
func TestManyTargets(t *testing.T) {
	address := canned(t, "", []byte("a 1\n"))
	const targets = 2000
	var list strings.Builder
	for i := range targets {
		fmt.Fprintf(&list, "        - {targets: [%q], labels: {n: \"%d\"}}\n", address, i)
	}
	before := runtime.NumGoroutine()
	r := run(t, `
initial_scrape_offset: 1h
config:
  scrape_configs:
    - job_name: test
      static_configs:
`+list.String())
	require.Eventually(t, func() bool { return r.census()[stateUnknown] == targets }, patience, glance)
	assert.Less(t, runtime.NumGoroutine(), before+50)
}
