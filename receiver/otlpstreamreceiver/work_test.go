// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// slow runs a receiver whose pipeline blocks until released, and which soon sends working notices.
func slow(t *testing.T) (r *sharedReceiver, release func()) {
	gate := make(chan struct{})
	p := &pipeline{do: func(context.Context, string) error { <-gate; return nil }}
	r = prepare(t, p)
	r.noticeInterval = 10 * time.Millisecond
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	once := sync.OnceFunc(func() { close(gate) })
	t.Cleanup(func() {
		once()
		require.NoError(t, r.Shutdown(context.Background()))
	})
	return r, once
}

func TestAClientHearsOfRequestsThatAreInWork(t *testing.T) {
	bothTransports(t, func(t *testing.T, dial dialer) {
		r, release := slow(t)
		c := dial(t, r, otlpstream.AllCaps)
		c.export(1, "a")
		c.export(2, "b")
		for {
			notice := c.next()
			require.True(t, notice.Working)
			require.Zero(t, notice.ID)
			require.Subset(t, []uint64{1, 2}, notice.IDs)
			if len(notice.IDs) == 2 {
				break
			}
		}
		release()
		require.Len(t, c.answers(2), 2, "the answers come all the same, once")
	})
}

func TestAClientThatDoesNotKnowNoticesGetsNone(t *testing.T) {
	bothTransports(t, func(t *testing.T, dial dialer) {
		r, release := slow(t)
		c := dial(t, r, otlpstream.AllCaps&^otlpstream.CapWorking)
		other := dial(t, r, otlpstream.AllCaps)
		c.export(1, "a")
		other.export(1, "b")
		for range 3 {
			require.True(t, other.next().Working, "time passes")
		}
		release()
		require.Equal(t, otlpstream.Response{ID: 1}, c.next())
	})
}

func TestWhileAStreamDrainsItSaysWhatIsInWork(t *testing.T) {
	bothTransports(t, func(t *testing.T, dial dialer) {
		r, release := slow(t)
		c := dial(t, r, otlpstream.AllCaps)
		c.export(1, "a")
		require.NoError(t, c.finish())
		for range 3 {
			require.True(t, c.next().Working)
		}
		release()
		require.Equal(t, uint64(1), c.answer().ID)
		st, _ := c.end()
		require.Nil(t, st)
	})
}

// A client of another version may have its data in a field that this one does not read. It must not get a success.
func TestARequestThatLacksTheDataItCountsIsRefused(t *testing.T) {
	bothTransports(t, func(t *testing.T, dial dialer) {
		p := &pipeline{}
		c := dial(t, start(t, p), otlpstream.AllCaps)
		data := payload(t, "a")
		unchanged, err := otlpstream.InOTLPForm(data) // field 1 is the ID of a request, not data
		require.NoError(t, err)
		require.NoError(t, c.send(&otlpstream.Request{ID: 1, Items: 1, Data: unchanged}))
		response := c.answer()
		require.Equal(t, otlpstream.FailedNoneRetryable, response.Code)
		require.Contains(t, response.Message, "it says that it has 1 items, and has none")
		c.export(2, "b")
		require.Equal(t, otlpstream.Response{ID: 2}, c.answer(), "the stream goes on")
		require.Equal(t, []string{"b"}, p.seen())
	})
}
