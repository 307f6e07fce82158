// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/internal/slab"
	"github.com/godwit-otel/godwit/receiver/remotewritereceiver/internal/admission"
)

// running is like start, but also returns the receiver.
func running(t *testing.T, next consumer.Metrics, change func(*Config)) (*remoteWriteReceiver, string) {
	cfg := createDefaultConfig().(*Config)
	cfg.HTTP.NetAddr.Endpoint = "localhost:0"
	change(cfg)
	r, err := newReceiver(cfg, settings(), next)
	require.NoError(t, err)
	require.NoError(t, r.Start(context.Background(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, r.Shutdown(context.Background())) })
	return r, "http://" + r.address.String() + cfg.Path
}

// bomb returns a request of size bytes that consists of head and then, in one message of the field, the same bytes
// repeatedly.
func bomb(size int, head string, field byte, again string) []byte {
	body := []byte(head)
	n := (size - len(head) - 8) / len(again)
	if field != 0 {
		body = append(body, field)
		body = binary.AppendUvarint(body, uint64(n*len(again)))
	}
	return append(body, bytes.Repeat([]byte(again), n)...)
}

// nested returns again, repeated as often as possible, in a message of the inner field, in one of the outer field.
func nested(size int, head string, outer, inner byte, again string) []byte {
	in := bomb(size-len(head)-16, "", inner, again)
	body := append([]byte(head), outer)
	return append(binary.AppendUvarint(body, uint64(len(in))), in...)
}

func symbol(text string) string {
	return "\x22" + string(binary.AppendUvarint(nil, uint64(len(text)))) + text
}

// bombs are requests of the given size that would be decoded to as much as possible.
func bombs(size int) map[string][]byte {
	const symbols = "\x22\x00\x22\x08__name__\x22\x01x"
	// Symbols 3 to 5; the last two are long, and differ at their end. There is room for few series that refer to them.
	long := symbols + "\x22\x03job" + symbol(strings.Repeat("l", size*15/32)+"a") + symbol(strings.Repeat("l", size*15/32)+"b")
	return map[string][]byte{
		"1.0 samples":        bomb(size, "", 0x0a, "\x12\x00"),
		"1.0 labels":         bomb(size, "", 0x0a, "\x0a\x00"),
		"1.0 exemplars":      bomb(size, "", 0x0a, "\x1a\x00"),
		"1.0 histograms":     bomb(size, "", 0x0a, "\x22\x00"),
		"1.0 series":         bomb(size, "", 0, "\x0a\x00"),
		"1.0 metadata":       bomb(size, "", 0, "\x1a\x00"),
		"1.0 buckets":        nested(size, "", 0x0a, 0x22, "\x60\x02"),
		"1.0 spans":          nested(size, "", 0x0a, 0x22, "\x5a\x00"),
		"1.0 points":         bomb(size, "", 0, "\x0a\x1c\x0a\x0d\x0a\x08__name__\x12\x01x\x12\x0b\x09\x00\x00\x00\x00\x00\x00\x00\x00\x10\x01"),
		"2.0 symbols":        bomb(size, "\x22\x00", 0, "\x22\x00"),
		"2.0 series":         bomb(size, symbols, 0, "\x2a\x00"),
		"2.0 samples":        bomb(size, symbols, 0x2a, "\x12\x00"),
		"2.0 exemplars":      bomb(size, symbols, 0x2a, "\x22\x00"),
		"2.0 histograms":     bomb(size, symbols, 0x2a, "\x1a\x00"),
		"2.0 references":     nested(size, symbols, 0x2a, 0x0a, "\x01\x02"),
		"2.0 wide samples":   bomb(size, symbols+"\x2a\x92\x80\x02\x0a\x88\x04"+strings.Repeat("\x01\x02", 260), 0, "\x12\x00"),
		"2.0 no protobuf":    bytes.Repeat([]byte("\xff"), size),
		"2.0 thin samples":   bomb(size, symbols, 0, "\x2a\x0a\x0a\x02\x01\x02\x12\x02\x10\x01\x12\x00"),
		"2.0 long labels":    bomb(size, long, 0, "\x2a\x0a\x0a\x04\x01\x02\x04\x04\x12\x02\x10\x01"),
		"2.0 long names":     bomb(size, long, 0, "\x2a\x08\x0a\x02\x01\x04\x12\x02\x10\x01"),
		"2.0 long keys":      bomb(size, long, 0, "\x2a\x0a\x0a\x04\x01\x02\x04\x04\x22\x02\x18\x01"),
		"2.0 long exemplars": bomb(size, long, 0, "\x2a\x10\x0a\x02\x01\x02\x12\x02\x10\x01\x22\x06\x0a\x02\x04\x04\x18\x01"),
		"2.0 long help":      bomb(size, long, 0, "\x2a\x0c\x0a\x02\x01\x02\x12\x02\x10\x01\x2a\x02\x18\x04"),
		"2.0 long jobs": bomb(size, long, 0, "\x2a\x0a\x0a\x04\x01\x02\x03\x04\x12\x02\x10\x01"+
			"\x2a\x0a\x0a\x04\x01\x02\x03\x05\x12\x02\x10\x01"),
		"2.0 thin elements": bomb(size, symbols, 0, "\x2a\x08\x0a\x02\x01\x02\x1a\x02\x78\x01"),
	}
}

// peakHeap returns the maximum growth of the heap, including garbage, while f ran.
func peakHeap(f func()) uint64 {
	runtime.GC()
	var peak atomic.Uint64
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak.Store(max(peak.Load(), m.HeapAlloc))
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	f()
	close(stop)
	<-done
	return max(peak.Load(), before.HeapAlloc) - before.HeapAlloc
}

// TestHostileClients: for any input, memory stays near its limit and is given back completely, and requests like those
// of agents are served meanwhile.
func TestHostileClients(t *testing.T) {
	const size, limit = 2 << 20, 16 << 20
	var points atomic.Int64
	next, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		points.Add(int64(md.DataPointCount()))
		return nil
	})
	require.NoError(t, err)
	r, address := running(t, next, func(c *Config) { c.MaxDecodedBodySize, c.MaxMemory = size, limit })
	healthy, err := nodes(2, 500).Marshal()
	require.NoError(t, err)
	healthy = compress(t, promwrite.Snappy, healthy)

	type attack struct {
		contentType, encoding string
		body                  []byte
	}
	var attacks []attack
	for name, plain := range bombs(size) {
		a := attack{contentType: promwrite.ContentTypeV1}
		if name[0] == '2' {
			a.contentType = promwrite.ContentTypeV2
		}
		encoding := promwrite.Zstd
		if len(name)%2 == 0 {
			encoding = promwrite.Snappy
		}
		a.encoding, a.body = encoding.String(), compress(t, encoding, plain)
		attacks = append(attacks, a)
	}

	codes := map[int]int{}
	peak := peakHeap(func() {
		var attackers sync.WaitGroup
		var mu sync.Mutex
		over := make(chan struct{})
		for _, a := range attacks {
			attackers.Go(func() {
				for range 2 {
					got := post(t, address, a.contentType, a.encoding, a.body)
					mu.Lock()
					codes[got.code]++
					mu.Unlock()
				}
			})
		}
		go func() { attackers.Wait(); close(over) }()
		served := 0
		for attacked := true; attacked || served < 3; {
			got := post(t, address, promwrite.ContentTypeV2, "snappy", healthy)
			if got.code == 503 { // retried, as requested
				require.Equal(t, "1", got.header.Get("Retry-After"))
			} else {
				require.Equal(t, 204, got.code, got.body)
				served++
			}
			select {
			case <-over:
				attacked = false
			default:
			}
		}
		require.GreaterOrEqual(t, points.Load(), int64(served*1000))
	})
	assert.Positive(t, codes[413], codes)
	assert.Positive(t, codes[400], codes)
	for code := range codes {
		assert.Contains(t, []int{204, 400, 413, 503}, code)
	}
	assert.Less(t, peak, uint64(4*limit), "%d MiB, of which what is not collected yet may be half", peak>>20)
	requireAllGivenBack(t, r)
}

func requireAllGivenBack(t *testing.T, r *remoteWriteReceiver) {
	t.Helper()
	require.Eventually(t, func() bool { return r.memory.Usage() == admission.Usage{} }, 30*time.Second, time.Millisecond)
}

// TestEachBombIsRefusedBeforeItIsDecoded: a request that is refused because of its size only costs its own bytes.
func TestEachBombIsRefusedBeforeItIsDecoded(t *testing.T) {
	racetest.Sequential(t)
	t.Run("reused=false", func(t *testing.T) { refuseBombs(t, false) })
	t.Run("reused=true", func(t *testing.T) {
		if !slab.Places() {
			t.Skip("nothing is used again in this build")
		}
		refuseBombs(t, true)
	})
}

func refuseBombs(t *testing.T, reused bool) {
	const size = 2 << 20
	for name, plain := range bombs(size) {
		w, err := newWorker(sized(size), newKnown(1<<20, reused))
		require.NoError(t, err)
		m := admission.New(32 << 20)
		held := m.Held()
		version := promwrite.V1
		if name[0] == '2' {
			version = promwrite.V2
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = w.work(t.Context(), version, promwrite.Identity, plain, &held, nil, newTree(reused))
		runtime.ReadMemStats(&after)
		held.Done()
		assert.Zero(t, m.Usage(), name)
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(32<<20/8*5+3*size), "%s: no more than metrics may have", name)
		if strings.Contains(name, "long") {
			assert.ErrorIs(t, err, promwrite.ErrTooLarge, name)
		}
		if err == nil {
			continue
		}
		assert.Contains(t, []int{400, 413}, decodeCode(err), name)
	}
}

// open establishes a connection that announces a body and sends a part of it.
func open(t *testing.T, address string, announced int, some []byte) net.Conn {
	u, err := url.Parse(address)
	require.NoError(t, err)
	conn, err := net.Dial("tcp", u.Host)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Encoding: snappy\r\nContent-Length: %d\r\n\r\n",
		u.Path, promwrite.ContentTypeV1, announced)
	require.NoError(t, err)
	_, err = conn.Write(some)
	require.NoError(t, err)
	return conn
}

// TestSlowSendersMakeRoom: clients that send a part of a body and wait do not hold memory that others need.
func TestSlowSendersMakeRoom(t *testing.T) {
	var points atomic.Int64
	next, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		points.Add(int64(md.DataPointCount()))
		return nil
	})
	require.NoError(t, err)
	r, address := running(t, next, func(c *Config) { c.MaxMemory = 16 << 20 })
	var conns []net.Conn
	for range 5 {
		conns = append(conns, open(t, address, 900<<10, make([]byte, 400<<10)))
	}
	waiting := func() bool { return r.memory.Usage().Waiting > 0 }
	require.Eventually(t, waiting, 10*time.Second, time.Millisecond, "memory for bodies has run out")
	body, err := nodes(2, 500).Marshal()
	require.NoError(t, err)
	got := post(t, address, promwrite.ContentTypeV2, "identity", body)
	for got.code == 503 {
		got = post(t, address, promwrite.ContentTypeV2, "identity", body)
	}
	require.Equal(t, 204, got.code, got.body)
	require.Equal(t, int64(1000), points.Load())
	for _, c := range conns {
		require.NoError(t, c.Close())
	}
	requireAllGivenBack(t, r)
}

// TestBodiesHaveATime: a sender that stops halfway gets a retryable error.
func TestBodiesHaveATime(t *testing.T) {
	defaults := createDefaultConfig().(*Config).HTTP
	for _, d := range []time.Duration{defaults.ReadHeaderTimeout, defaults.ReadTimeout, defaults.WriteTimeout, defaults.IdleTimeout} {
		require.Positive(t, d)
	}
	require.Greater(t, defaults.WriteTimeout, defaults.ReadTimeout)
	next, err := consumer.NewMetrics(func(context.Context, pmetric.Metrics) error { return nil })
	require.NoError(t, err)
	_, address := running(t, next, func(c *Config) { c.HTTP.ReadTimeout = 100 * time.Millisecond })
	conn := open(t, address, 1000, []byte("half"))
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, 503, answer.StatusCode)
	require.Equal(t, "1", answer.Header.Get("Retry-After"))
	_, err = io.Copy(io.Discard, answer.Body)
	require.NoError(t, err)
}

// TestWorkersLetGo: a worker that has grown for one request is not kept for small ones.
func TestWorkersLetGo(t *testing.T) {
	w, err := newWorker(sized(32<<20), newKnown(1<<20, false))
	require.NoError(t, err)
	work := func(targets int) {
		body, err := nodes(targets, 500).Marshal()
		require.NoError(t, err)
		held := admission.New(512 << 20).Held()
		_, err = w.work(t.Context(), promwrite.V2, promwrite.Snappy, compress(t, promwrite.Snappy, body), &held, nil, newTree(false))
		require.NoError(t, err)
	}
	held := admission.New(512 << 20).Held()
	_, err = w.work(t.Context(), promwrite.V1, promwrite.Zstd, compress(t, promwrite.Zstd, make([]byte, 32<<20)), &held, nil, newTree(false))
	require.Error(t, err)
	require.True(t, w.oversized(), "what was refused is no measure")
	w, err = newWorker(sized(32<<20), newKnown(1<<20, false))
	require.NoError(t, err)
	work(40)
	require.False(t, w.oversized(), "it may be asked for as much again")
	needed := 0
	for !w.oversized() {
		work(1)
		needed++
	}
	require.Less(t, needed, 100)
}

// TestSurprises sends random changes of valid requests.
func TestSurprises(t *testing.T) {
	body, err := nodes(2, 20).Marshal()
	require.NoError(t, err)
	w, err := newWorker(sized(1<<20), newKnown(1<<20, false))
	require.NoError(t, err)
	m := admission.New(32 << 20)
	random := rand.New(rand.NewPCG(1, 1))
	refused := 0
	for range 3000 {
		changed := bytes.Clone(body)
		for range 1 + random.IntN(4) {
			changed[random.IntN(len(changed))] = byte(random.Uint32())
		}
		held := m.Held()
		if _, err := w.work(t.Context(), promwrite.V2, promwrite.Identity, changed, &held, nil, newTree(false)); err != nil {
			refused++
		}
		held.Done()
	}
	require.Positive(t, refused)
	require.Zero(t, m.Usage())
}

// TestStreamedBodiesTakeWhatTheyNeed: bodies that were compressed as a stream do not contain their size. They take no
// more memory than others.
func TestStreamedBodiesTakeWhatTheyNeed(t *testing.T) {
	_, url := running(t, new(consumertest.MetricsSink), func(c *Config) { c.MaxMemory = minMemory })
	var body bytes.Buffer
	encoder, err := zstd.NewWriter(&body)
	require.NoError(t, err)
	plain := v1(t, []string{"__name__", "up"})
	for _, half := range [][]byte{plain[:len(plain)/2], plain[len(plain)/2:]} {
		_, err = encoder.Write(half)
		require.NoError(t, err)
		require.NoError(t, encoder.Flush())
	}
	require.NoError(t, encoder.Close())
	got := post(t, url, promwrite.ContentTypeV1, "zstd", body.Bytes())
	require.Equal(t, http.StatusNoContent, got.code, got.body)
}
