// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package send

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/internal/promwrite"
)

// proxied is a destination behind a proxy that may refuse requests as too large, by their first byte.
type proxied struct {
	*Destination

	mu       sync.Mutex
	refused  func(first byte) bool
	requests map[byte]int
}

// refuses sets what is refused from now on.
func (p *proxied) refuses(what func(first byte) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = what
}

// asked counts a request, and reports whether it is refused.
func (p *proxied) asked(first byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests[first]++
	return p.refused(first)
}

func newProxied(t *testing.T, change func(*Config)) *proxied {
	t.Helper()
	p := &proxied{refused: nothing, requests: map[byte]int{}}
	cfg := Config{
		URL: "http://there.test/", Formats: all[:1], Timeout: time.Minute, Reprobe: time.Hour,
		Retry: Retry{InitialInterval: 500 * time.Millisecond, MaxInterval: 30 * time.Second, Multiplier: 2, RandomizationFactor: 0.5},
		Client: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			if p.asked(body[0]) {
				return &http.Response{StatusCode: http.StatusRequestEntityTooLarge, Header: http.Header{}, Body: http.NoBody}, nil
			}
			return took(), nil
		})},
	}
	if change != nil {
		change(&cfg)
	}
	p.Destination = New(cfg, zap.NewNop(), nobody{})
	t.Cleanup(p.Close)
	return p
}

// send sends a request that is too small to be split, and reports whether it was delivered.
func (p *proxied) send(t *testing.T, first byte) bool {
	t.Helper()
	return p.sendOf(t, "", first)
}

func (p *proxied) sendOf(t *testing.T, tenant string, first byte) bool {
	t.Helper()
	h := block.Header{Version: promwrite.V2, Compression: promwrite.Zstd, Samples: 1, RawSize: 1000, Tenant: tenant}
	lost, err := p.Send(context.Background(), []block.Block{block.New(h, bytes.Repeat([]byte{first}, 100))}, Times{})
	assert.NoError(t, err)
	return lost == nil
}

// sendsAllTheTime sends one request after another.
func (p *proxied) sendsAllTheTime(t *testing.T, tenant string, first byte) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var sends sync.WaitGroup
	sends.Go(func() {
		for ctx.Err() == nil {
			p.sendOf(t, tenant, first)
			time.Sleep(100 * time.Millisecond)
		}
	})
	return func() { cancel(); sends.Wait() }
}

func everything(byte) bool { return true }
func nothing(byte) bool    { return false }

// TestAProxyThatFindsEverythingTooLargeForAWhileCostsNothing, if it accepted requests of that size before.
func TestAProxyThatFindsEverythingTooLargeForAWhileCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProxied(t, nil)
		require.True(t, p.send(t, 'a'))
		p.refuses(everything)
		time.AfterFunc(4*time.Minute, func() { p.refuses(nothing) })
		began := time.Now()
		require.True(t, p.send(t, 'b'))
		assert.Less(t, time.Since(began), 5*time.Minute)
		assert.Less(t, p.requests['b'], 30) // the number varies because pauses are spread
		raw, wire := p.Largest()
		assert.Zero(t, raw+wire)
	})
}

// TestAProxyThatStaysLikeThatIsNotWaitedForLong: not when the last accepted request is long ago.
func TestAProxyThatStaysLikeThatIsNotWaitedForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProxied(t, nil)
		p.refuses(everything)
		require.False(t, p.send(t, 'a'), "it never took anything")
		require.Equal(t, 1, p.requests['a'])
		p.refuses(nothing)
		require.True(t, p.send(t, 'b'))
		p.refuses(everything)
		began := time.Now()
		for range 100 {
			require.False(t, p.send(t, 'c'))
		}
		assert.Greater(t, time.Since(began), smallTime)
		assert.Less(t, time.Since(began), 3*smallTime)
	})
}

// TestWhatIsRefusedForItsContentHoldsUpLittle: five minutes if nothing else is sent meanwhile, half a minute if others
// are accepted, and nothing once that is known.
func TestWhatIsRefusedForItsContentHoldsUpLittle(t *testing.T) {
	for name, others := range map[string]bool{"alone": false, "others are taken": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newProxied(t, nil)
				p.refuses(func(first byte) bool { return first == 'x' })
				require.True(t, p.send(t, 'a'))
				most := smallTime + time.Minute
				if others {
					most = time.Minute
					defer p.sendsAllTheTime(t, "", 'a')()
				}
				began := time.Now()
				for range 100 {
					require.False(t, p.send(t, 'x'))
					require.True(t, p.send(t, 'a'))
				}
				assert.Less(t, time.Since(began), most)
				assert.Less(t, p.requests['x'], 130)
			})
		})
	}
}

func TestSmallRequestsAreRepeatedNoLongerThanOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProxied(t, func(c *Config) { c.Retry.MaxElapsedTime = time.Minute })
		require.True(t, p.send(t, 'a'))
		p.refuses(everything)
		began := time.Now()
		require.False(t, p.send(t, 'b'))
		assert.Less(t, time.Since(began), 2*time.Minute)

		p.refuses(nothing)
		require.True(t, p.send(t, 'a'))
		p.refuses(everything)
		ctx, end := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Second, end)
		b := block.New(block.Header{Version: promwrite.V2, Compression: promwrite.Zstd, Samples: 1, RawSize: 1000}, make([]byte, 100))
		_, err := p.Send(ctx, []block.Block{b}, Times{})
		require.ErrorIs(t, err, context.Canceled)
	})
}

// TestATenantWhoseRequestsAreTooLargeIsNotWaitedForWhileOthersAreServed: it is waited for while none is.
func TestATenantWhoseRequestsAreTooLargeIsNotWaitedForWhileOthersAreServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProxied(t, func(c *Config) { c.Tenants = headers{} })
		require.True(t, p.sendOf(t, "a", 'a'))
		require.True(t, p.sendOf(t, "b", 'b'))
		p.refuses(everything)
		time.AfterFunc(time.Minute, func() { p.refuses(func(first byte) bool { return first == 'b' }) })
		require.True(t, p.sendOf(t, "a", 'a'))
		began := time.Now()
		defer p.sendsAllTheTime(t, "a", 'a')()
		require.False(t, p.sendOf(t, "b", 'b'))
		assert.Less(t, time.Since(began), time.Minute)
	})
}

// TestARefusalIsForgottenWithItsData: refused data may be dropped in the queue, and there may be no data for a while.
// Later data is sent.
func TestARefusalIsForgottenWithItsData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails, requests := true, 0
		d := New(Config{
			URL: "http://there.test/", Formats: all[:1], Timeout: time.Minute, Tenants: headers{},
			Retry: Retry{InitialInterval: time.Second, MaxInterval: time.Second, Multiplier: 1, MaxElapsedTime: 5 * time.Minute},
			Client: &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) {
				if requests++; fails {
					return &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{}, Body: http.NoBody}, nil
				}
				return took(), nil
			})},
		}, zap.NewNop(), nobody{})
		defer d.Close()
		h := block.Header{Version: promwrite.V2, Compression: promwrite.Zstd, Samples: 1, RawSize: 1000, Tenant: "a"}
		send := func() ([]error, error) {
			return d.Send(t.Context(), []block.Block{block.New(h, make([]byte, 100))}, Times{})
		}
		_, err := send()
		later := (*LaterError)(nil)
		require.ErrorAs(t, err, &later)
		fails = false
		time.Sleep(time.Hour)
		lost, err := send()
		require.NoError(t, err)
		assert.Nil(t, lost)
		assert.Equal(t, 2, requests)
	})
}

// TestARefusalIsOfWhatWasThere: data that a tenant sends after a refusal has its own time limit, even if the refused
// data was dropped meanwhile.
func TestARefusalIsOfWhatWasThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := 0
		d := New(Config{
			URL: "http://there.test/", Formats: all[:1], Timeout: time.Minute, Tenants: headers{},
			Retry: Retry{InitialInterval: time.Second, MaxInterval: time.Second, Multiplier: 1, MaxElapsedTime: 5 * time.Minute},
			Client: &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) {
				requests++
				return &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{}, Body: http.NoBody}, nil
			})},
		}, zap.NewNop(), nobody{})
		defer d.Close()
		h := block.Header{Version: promwrite.V2, Compression: promwrite.Zstd, Samples: 1, RawSize: 1000, Tenant: "a"}
		send := func(queued time.Time) ([]error, error) {
			return d.Send(t.Context(), []block.Block{block.New(h, make([]byte, 100))}, Times{Queued: []time.Time{queued}})
		}
		later := (*LaterError)(nil)
		_, err := send(time.Now())
		require.ErrorAs(t, err, &later)
		time.Sleep(6 * time.Minute)
		queued := time.Now()
		for {
			lost, err := send(queued)
			if err == nil {
				require.NotNil(t, lost)
				break
			}
			require.ErrorAs(t, err, &later)
			time.Sleep(later.Wait)
		}
		assert.GreaterOrEqual(t, time.Since(queued), 5*time.Minute)
		assert.Greater(t, requests, 100)
	})
}

// TestEachRequestHasItsTime: of blocks that cannot be sent together, the time limit of the second begins with its own
// first attempt.
func TestEachRequestHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		d := New(Config{
			URL: "http://there.test/", Formats: all[:1], Timeout: time.Minute,
			Retry: Retry{InitialInterval: time.Second, MaxInterval: time.Second, Multiplier: 1, MaxElapsedTime: time.Minute},
			Client: &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) {
				if time.Since(began) < 70*time.Second {
					return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{}, Body: http.NoBody}, nil
				}
				return took(), nil
			})},
		}, zap.NewNop(), nobody{})
		defer d.Close()
		d.all.timely.Store(1) // point per request
		b := block.New(block.Header{Version: promwrite.V2, Compression: promwrite.Zstd, Samples: 1, RawSize: 200}, make([]byte, 100))
		lost, err := d.Send(t.Context(), []block.Block{b, b, b}, Times{})
		require.NoError(t, err)
		require.Error(t, lost[0])
		require.NoError(t, lost[1])
		require.NoError(t, lost[2])
	})
}

type headers struct{}

func (headers) SetHeaders(http.Header, string) error { return nil }
func (headers) Name(tenant string) string            { return tenant }
