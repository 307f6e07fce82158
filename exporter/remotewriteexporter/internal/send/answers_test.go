// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package send

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/internal/promwrite"
)

// counter counts the results of samples.
type counter struct {
	nobody

	mu                       sync.Mutex
	delivered, lost, dropped int
}

func (c *counter) Delivered(h block.Header, losses []Loss) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range losses {
		h.Samples -= l.Samples
		c.lost += l.Samples
	}
	c.delivered += h.Samples
}

func (c *counter) Dropped(h block.Header, _ string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropped += h.Samples
}

// moody responds at random until a given time, and normally from then on in the formats that it knows.
type moody struct {
	mu    sync.Mutex
	rng   *rand.Rand
	until time.Time
	knows func(h http.Header) bool
	well  bool // it has accepted something since then
}

func (m *moody) isWell() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.well
}

func (m *moody) RoundTrip(r *http.Request) (*http.Response, error) {
	_, err := io.Copy(io.Discard, r.Body)
	if err = errors.Join(err, r.Body.Close()); err != nil {
		return nil, err
	}
	code, header := m.choose(r.Header)
	switch code {
	case 0:
		return nil, errors.New("connection refused")
	case 1:
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	text := "an answer"
	if header.Get("X-Page") != "" {
		text = aPage
	}
	return &http.Response{StatusCode: code, Header: header, Body: io.NopCloser(strings.NewReader(text))}, nil
}

var moods = []int{0, 0, 1, 204, 204, 204, 301, 400, 400, 400, 401, 404, 405, 406, 407, 408, 409, 413, 415, 421, 422, 429, 429, 500, 502, 503, 503, 504}

func (m *moody) choose(of http.Header) (code int, h http.Header) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h = http.Header{}
	if time.Now().After(m.until) {
		if !m.knows(of) {
			return http.StatusUnsupportedMediaType, h
		}
		m.well = true
		h.Set(promwrite.HeaderSamplesWritten, "1000") // all of them
		return http.StatusNoContent, h
	}
	code = moods[m.rng.IntN(len(moods))]
	if m.rng.IntN(3) > 0 {
		h.Set(promwrite.HeaderSamplesWritten, strconv.Itoa(m.rng.IntN(3)))
	}
	if code/100 > 3 && m.rng.IntN(3) == 0 {
		h.Set("Retry-After", strconv.Itoa(m.rng.IntN(20)))
	}
	if code/100 > 2 && m.rng.IntN(3) == 0 {
		h.Set("X-Page", "yes")
	}
	return code, h
}

// plain are formats to use instead of all: decoders of zstd cannot move between tests with a synctest bubble of their
// own.
var plain = []block.Format{
	{Version: promwrite.V2, Compression: promwrite.Identity},
	{Version: promwrite.V2, Compression: promwrite.Snappy},
	{Version: promwrite.V1, Compression: promwrite.Identity},
	{Version: promwrite.V1, Compression: promwrite.Snappy},
}

// requestOf returns a request of 2.0 with the given number of samples of a series.
func requestOf(tb testing.TB, tenant string, samples int) block.Block {
	tb.Helper()
	ts := writev2.TimeSeries{LabelsRefs: []uint32{1, 2}}
	for i := range samples {
		ts.Samples = append(ts.Samples, writev2.Sample{Value: float64(i), Timestamp: int64(i + 1)})
	}
	r := writev2.Request{Symbols: []string{"", "__name__", "up"}, Timeseries: []writev2.TimeSeries{ts}}
	raw, err := r.Marshal()
	require.NoError(tb, err)
	body, err := block.Compress(nil, plain[0], raw)
	require.NoError(tb, err)
	return block.New(block.Header{Version: promwrite.V2, Compression: promwrite.Identity, Samples: samples, RawSize: len(raw), Tenant: tenant}, body)
}

// TestWhateverIsAnsweredAllIsDoneInTheEnd: a destination may respond with anything for some minutes. Once it responds
// normally, everything is delivered or dropped, and each sample counts once.
func TestWhateverIsAnsweredAllIsDoneInTheEnd(t *testing.T) {
	for seed := range uint64(150) {
		synctest.Test(t, func(t *testing.T) { answerAtRandom(t, seed) })
		if t.Failed() {
			t.Logf("by seed %d", seed)
			return
		}
	}
}

func answerAtRandom(t *testing.T, seed uint64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	known := []func(h http.Header) bool{
		func(http.Header) bool { return true },
		func(h http.Header) bool { return h.Get("Content-Encoding") == "snappy" },
		func(h http.Header) bool { return h.Get(promwrite.HeaderVersion) != "2.0.0" },
	}
	server := &moody{rng: rand.New(rand.NewPCG(seed, 2)), until: time.Now().Add(time.Duration(1+rng.IntN(10)) * time.Minute), knows: known[rng.IntN(len(known))]}
	count := &counter{}
	cfg := Config{
		URL: "http://there.test/", Formats: plain[rng.IntN(2)*2:], Timeout: 30 * time.Second, Reprobe: time.Hour, Client: &http.Client{Transport: server},
		Retry: Retry{
			InitialInterval: 500 * time.Millisecond, MaxInterval: 30 * time.Second, Multiplier: 2, RandomizationFactor: 0.5, MaxRetryAfter: 5 * time.Minute,
			MaxElapsedTime: time.Duration(rng.IntN(2)) * time.Minute, StatusCodes: []int{401, 403, 404, 405, 407, 421},
		},
		Breaker: Breaker{Failures: rng.IntN(6), OpenFor: 10 * time.Second},
	}
	tenants := []string{""}
	if rng.IntN(2) == 0 {
		cfg.Tenants, tenants = headers{}, []string{"", "a", "b"}
	}
	d := New(cfg, zap.NewNop(), count)
	defer d.Close()

	var senders sync.WaitGroup
	all := 0
	for range 4 {
		var leases [][]block.Block
		for range 6 {
			tenant := tenants[rng.IntN(len(tenants))]
			var blocks []block.Block
			for range 1 + rng.IntN(4) {
				samples := 1 + rng.IntN(5)
				all += samples
				b := requestOf(t, tenant, samples)
				if cfg.Formats[0].Version == promwrite.V1 { // as it is encoded for such a destination
					var err error
					b, err = block.Transcode(b, cfg.Formats[0])
					require.NoError(t, err)
				}
				blocks = append(blocks, b)
			}
			leases = append(leases, blocks)
		}
		senders.Go(func() {
			for blocks := range slices.Values(leases) {
				for len(blocks) > 0 {
					_, err := d.Send(context.Background(), blocks, Times{})
					later := (*LaterError)(nil)
					if err == nil {
						break
					}
					if !errors.As(err, &later) {
						t.Error(err)
						return
					}
					blocks = blocks[later.Done:]
					time.Sleep(later.Wait)
				}
			}
		})
	}
	senders.Wait()
	assert.Less(t, time.Since(server.until), time.Hour)
	assert.Equal(t, all, count.delivered+count.lost+count.dropped)
	if server.isWell() {
		assert.False(t, d.BreakerOpen())
	}
}
