// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"

	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/fetch"
)

// A bomb is a response that repeats until the scraper closes the connection.
type bomb struct {
	name        string
	contentType string
	encoding    string
	begin       []byte
	again       []byte
	keys        string
	reason      string
}

// gzipBomb returns the gzip of an endless text.
func gzipBomb(t *testing.T, begin, again string) (head, tail []byte) {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	for range 2 { // the second copy has everything that it may refer to
		head = bytes.Clone(out.Bytes())
		_, err := w.Write([]byte(begin + strings.Repeat(again, (1<<20)/len(again))))
		require.NoError(t, err)
		require.NoError(t, w.Flush())
		begin = ""
	}
	return head, out.Bytes()[len(head):]
}

func bombs(t *testing.T) []bomb {
	t.Helper()
	var all []bomb
	add := func(name, begin, again, contentType string) {
		head, tail := gzipBomb(t, begin, again)
		all = append(all,
			bomb{name + " in gzip", contentType, "gzip", head, tail, "", fetch.ReasonBodySize},
			bomb{name, contentType, "", []byte(begin), []byte(strings.Repeat(again, 64<<10/len(again))), "", fetch.ReasonBodySize})
	}
	add("zeros", "", "\x00", typeText)
	add("one line", "", "a", typeText)
	add("one comment", "# ", "a", typeText)
	add("one label value", "a{b=\"", "c", typeText)
	add("one label value of many lines", "a{b=\"", "c\n", typeText)
	add("comments", "", "# a comment of which there are a great many\n", typeText)
	add("one type", "", "# TYPE a gauge\n", typeText)
	add("one series", "", "a 1\n", typeText)
	add("a few series", "", "a 1\nb 1\nc{d=\"e\"} 1\n", typeText)
	add("empty lines", "", "\n", typeText)

	split := len(all)
	add("families without a name", "", "\x00", typeProtobuf)
	add("a family that does not end", "\xff\xff\xff\xff\x0f", "a", typeProtobuf)
	for i := split; i < len(all); i++ {
		all[i].keys = "body_size_limit: 10MB" // a page in protobuf is held as a whole
	}

	var member bytes.Buffer
	w := gzip.NewWriter(&member)
	_, err := w.Write(make([]byte, 1<<20))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	all = append(all, bomb{"gzip of many members", typeText, "gzip", nil, member.Bytes(), "", fetch.ReasonBodySize})
	noise := make([]byte, 1<<20)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range noise {
		noise[i] = byte(r.Uint32()) | 1 // no line feeds
	}
	all = append(all, bomb{"a gzip header", typeText, "gzip", []byte{0x1f, 0x8b, 8, 1 << 3, 0, 0, 0, 0, 0, 0}, bytes.Repeat([]byte("n"), 64<<10), "", "encoding"})
	encoder, err := zstd.NewWriter(nil, zstd.WithWindowSize(8<<20))
	require.NoError(t, err)
	all = append(all,
		bomb{"zstd of a large window", typeText, "zstd", nil, encoder.EncodeAll(make([]byte, 16<<20), nil), "", fetch.ReasonBodySize},
		bomb{"zstd that does not compress", typeText, "zstd", nil, encoder.EncodeAll(noise, nil), "", fetch.ReasonBodySize},
		bomb{"zstd of a window of 3.75 TiB", typeText, "zstd", []byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0xff}, noise, "body_size_limit: 1MB", fetch.ReasonBodySize})
	return all
}

// Whatever a target sends, and however much of it, a scrape takes no more memory than for a large page.
func TestBombs(t *testing.T) {
	racetest.Sequential(t)
	const most = 64 << 20 // the limit of allocations in a scrape, including garbage and the target's side
	all := bombs(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		if err != nil {
			return
		}
		one := all[i]
		w.Header().Set("Content-Type", one.contentType)
		if one.encoding != "" {
			w.Header().Set("Content-Encoding", one.encoding)
		}
		_, err = w.Write(one.begin)
		for err == nil {
			_, err = w.Write(one.again)
		}
	}))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	var config strings.Builder
	config.WriteString("initial_scrape_offset: 1h\nmax_body_size: 100000000\nmax_page_memory: 67108864\nconfig:\n  global: {scrape_interval: 1m, scrape_timeout: 1m}\n  scrape_configs:\n")
	for i, one := range all {
		fmt.Fprintf(&config, "    - job_name: job%d\n      metrics_path: /%d\n      static_configs: [{targets: [%q]}]\n      %s\n", i, i, address, one.keys)
	}
	r := run(t, config.String(), withConsumer(consumertest.NewNop()), withoutTraces)
	require.Eventually(t, func() bool { return r.census()[stateUnknown] == len(all) }, patience, glance)
	before := heap()
	for i, one := range all {
		target := r.targetOf(fmt.Sprint("job", i))
		for n := range 2 {
			allocated := totalAlloc()
			began := time.Now()
			target.scrape(time.Now())
			allocated = totalAlloc() - allocated
			t.Logf("%s: %d MiB, %v, %v", one.name, allocated>>20, time.Since(began), target.status.err)
			assert.Equal(t, one.reason, target.status.reason, "%s: %v", one.name, target.status.err)
			assert.LessOrEqual(t, allocated, uint64(most), "%s, scrape %d", one.name, n)
		}
	}
	assert.Zero(t, r.buffers.held())
	assert.LessOrEqual(t, heap()-before, int64(16<<20))
}

// Targets that stop responding, even in the middle of their pages, hold no more memory than what they have sent. Other
// targets are unaffected.
func TestMemoryWhileTargetsHang(t *testing.T) {
	const n, size = 200, 1_500_000
	whole := []byte("a 1\n" + strings.Repeat("# "+strings.Repeat("x", 998)+"\n", size/1000))
	for name, c := range map[string]struct {
		sent int // bytes of the page; if negative, not even the head is sent
		most int // the limit of heap for each of them, for both sides of the connection
	}{
		"before they answer":   {-1, 96 << 10},
		"after the head":       {0, 96 << 10},
		"after the first line": {4, 96 << 10},
		"in the middle":        {size / 2, 300 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			var hang atomic.Bool
			var hanging atomic.Int64
			release := make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", typeText)
				w.Header().Set("Content-Length", strconv.Itoa(len(whole)))
				if !hang.Load() {
					_, _ = w.Write(whole)
					return
				}
				if c.sent >= 0 {
					w.WriteHeader(http.StatusOK)
					_, _ = w.Write(whole[:c.sent])
					_ = http.NewResponseController(w).Flush()
				}
				hanging.Add(1)
				select {
				case <-release:
				case <-r.Context().Done():
				}
			}))
			defer server.Close()
			defer close(release)
			good := newEndpoint(t, "requests 42\n")
			var config strings.Builder
			config.WriteString("initial_scrape_offset: 1h\nconfig:\n  global: {scrape_interval: 10m, scrape_timeout: 10m}\n  scrape_configs:\n")
			fmt.Fprintf(&config, "    - {job_name: good, static_configs: [{targets: [%q]}]}\n    - job_name: bad\n      static_configs:\n", good.address())
			for i := range n {
				fmt.Fprintf(&config, "        - {targets: [%q], labels: {instance: \"t%d\"}}\n", strings.TrimPrefix(server.URL, "http://"), i)
			}
			r := run(t, config.String(), withConsumer(consumertest.NewNop()), withoutTraces)
			require.Eventually(t, func() bool { return r.census()[stateUnknown] == n+1 }, patience, glance)
			var bad []*target
			for _, j := range r.allJobs() {
				if j.name == "bad" {
					bad = j.all()
				}
			}
			for _, one := range bad {
				one.scrape(time.Now())
				require.NoError(t, one.status.err)
			}
			before := heap()
			hang.Store(true)
			var scrapes sync.WaitGroup
			for _, one := range bad {
				scrapes.Go(func() { one.scrape(time.Now()) })
			}
			defer scrapes.Wait()
			defer r.stop()
			require.Eventually(t, func() bool { return hanging.Load() == n }, patience, glance)
			if c.sent > 0 {
				time.Sleep(100 * time.Millisecond) // the last bytes may be in flight, and nothing tells when they have been read
			}
			taken := heap() - before
			t.Logf("%d KiB for each of them", taken/n>>10)
			require.LessOrEqual(t, taken, int64(n*c.most))
			require.LessOrEqual(t, r.buffers.held(), r.limits.bodies)
			one := r.targetOf("good")
			one.scrape(time.Now())
			require.NoError(t, one.status.err)
			require.Equal(t, 1, one.status.samples)
		})
	}
}

// A page that comes byte by byte ends with its timeout. Meanwhile it holds neither a slot nor a large buffer.
func TestDrips(t *testing.T) {
	for _, encoding := range []string{"identity", "gzip", "zstd"} {
		t.Run(encoding, func(t *testing.T) {
			var once sync.Once
			dripping := make(chan struct{})
			drip := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Encoding", encoding)
				w.Header().Set("Content-Type", typeText)
				for i := 0; r.Context().Err() == nil; i++ {
					_, _ = w.Write([]byte("#"))
					_ = http.NewResponseController(w).Flush()
					if i == 10 {
						once.Do(func() { close(dripping) })
					}
					time.Sleep(5 * time.Millisecond)
				}
			}))
			defer drip.Close()
			good := newEndpoint(t, "requests 42\n")
			r := run(t, fmt.Sprintf(`
initial_scrape_offset: 1h
max_body_size: 1000000000
config:
  global: {scrape_interval: 10m}
  scrape_configs:
    - {job_name: bad, scrape_timeout: 1s, static_configs: [{targets: [%q]}]}
    - {job_name: good, static_configs: [{targets: [%q]}]}
`, strings.TrimPrefix(drip.URL, "http://"), good.address()), withConsumer(consumertest.NewNop()), withoutTraces)
			require.Eventually(t, func() bool { return r.census()[stateUnknown] == 2 }, patience, glance)
			bad, one := r.targetOf("bad"), r.targetOf("good")
			var scrape sync.WaitGroup
			scrape.Go(func() { bad.scrape(time.Now()) })
			<-dripping
			require.Zero(t, r.buffers.held())
			one.scrape(time.Now())
			require.NoError(t, one.status.err)
			scrape.Wait()
			require.Equal(t, fetch.ReasonTimeout, bad.status.reason, "%v", bad.status.err)
			require.Zero(t, r.buffers.held())
		})
	}
}
