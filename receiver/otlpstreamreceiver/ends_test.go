// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

func TestStreamsEndAtTheirLimitsAndNothingIsResent(t *testing.T) {
	limits := map[string]func(*Config){
		"requests": func(cfg *Config) { cfg.Streams.MaxRequests = 10 },
		"age":      func(cfg *Config) { cfg.Streams.MaxAge = 50 * time.Millisecond },
	}
	for name, limit := range limits {
		t.Run(name, func(t *testing.T) {
			bothTransports(t, func(t *testing.T, dial dialer) {
				p := &pipeline{}
				c := dial(t, start(t, p, limit), otlpstream.AllCaps)
				got := map[uint64]bool{}
				id := uint64(0)
				for drain := false; !drain; {
					for range 10 {
						id++
						c.export(id, numbered(id))
					}
					for len(got) < int(id) {
						response := c.answer()
						if response.Drain {
							drain = true
							continue
						}
						for _, id := range append(response.IDs, response.ID) {
							got[id] = true
						}
					}
				}
				id++
				c.export(id, "was on its way")
				require.NoError(t, c.finish())
				st, more := c.end()
				require.Nil(t, st, "the client closed it")
				require.Equal(t, []otlpstream.Response{{ID: id, IDs: more[0].IDs}}, more)
				require.Len(t, p.seen(), int(id))
			})
		})
	}
}

func TestPlainClientsGetAllTheirAcksBeforeTheEnd(t *testing.T) {
	bothTransports(t, func(t *testing.T, dial dialer) {
		release := make(chan struct{})
		p := &pipeline{do: func(context.Context, string) error { <-release; return nil }}
		c := dial(t, start(t, p, func(cfg *Config) { cfg.Streams.MaxRequests = 10 }), 0)
		for id := uint64(1); id <= 10; id++ {
			c.export(id, numbered(id))
		}
		eventually(t, func() bool { return len(p.seen()) == 10 }, "all are in")
		close(release)
		st, answers := c.end()
		require.Equal(t, codes.Unavailable, st.Code())
		acked := map[uint64]bool{}
		for _, a := range answers {
			require.Equal(t, otlpstream.Success, max(a.Code, otlpstream.Success)*otlpstream.ResultCode(min(1, a.ID)))
			if a.ID != 0 {
				acked[a.ID] = true
			}
		}
		require.Len(t, acked, 10)
	})
}

func TestAClientThatDoesNotFinishIsCutOffAfterTheDrainTimeout(t *testing.T) {
	bothTransports(t, func(t *testing.T, dial dialer) {
		c := dial(t, start(t, &pipeline{}, func(cfg *Config) {
			cfg.Streams.MaxRequests = 1
			cfg.DrainTimeout = 50 * time.Millisecond
		}), otlpstream.AllCaps)
		c.export(1, "x")
		st, answers := c.end()
		require.Equal(t, codes.Unavailable, st.Code())
		require.GreaterOrEqual(t, len(answers), 2)
	})
}

func TestServersKeepStreamsLongerThanClients(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	const clientAge, clientRequests = 30 * time.Second, 1000 // the specification's reference
	require.Greater(t, cfg.Streams.MaxAge, clientAge)
	require.True(t, cfg.Streams.MaxRequests == 0 || cfg.Streams.MaxRequests > clientRequests)
}

func TestShutdownFinishesWhatIsIn(t *testing.T) {
	bothTransports(t, func(t *testing.T, dial dialer) {
		gate := make(chan struct{})
		p := &pipeline{do: func(context.Context, string) error { <-gate; return nil }}
		r := start(t, p)
		capable, plain := dial(t, r, otlpstream.AllCaps), dial(t, r, 0)
		capable.export(1, "x")
		plain.export(1, "y")
		eventually(t, func() bool { return len(p.seen()) == 2 }, "both are in")
		stopped := make(chan error)
		go func() { stopped <- r.Shutdown(context.Background()) }()
		require.True(t, capable.answer().Drain)
		require.NoError(t, capable.finish())
		close(gate)
		st, answers := capable.end()
		require.Nil(t, st)
		require.Equal(t, []otlpstream.Response{{ID: 1}}, answers)
		st, answers = plain.end()
		require.Equal(t, codes.Unavailable, st.Code())
		require.Equal(t, uint64(1), answers[0].ID)
		require.NoError(t, <-stopped)
		require.NoError(t, r.Shutdown(context.Background()), "twice")
	})
}

func TestShutdownHasADeadline(t *testing.T) {
	bothTransports(t, func(t *testing.T, dial dialer) {
		p := &pipeline{do: func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }}
		r := start(t, p, func(cfg *Config) { cfg.DrainTimeout = 50 * time.Millisecond })
		c := dial(t, r, otlpstream.AllCaps)
		c.export(1, "x")
		eventually(t, func() bool { return len(p.seen()) == 1 }, "it is in")
		require.NoError(t, r.Shutdown(context.Background()))
	})
}
