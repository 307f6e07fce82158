// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configcompression"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestModesFallBackOnlyOnUnimplemented(t *testing.T) {
	now := time.Unix(1000, 0)
	m := modes{mode: Auto, reprobe: time.Minute}
	require.True(t, m.stream(now))
	require.True(t, m.refused(now), "at first contact one refusal is enough")
	require.False(t, m.stream(now.Add(59*time.Second)))
	require.True(t, m.stream(now.Add(time.Minute)), "one probe")
	require.False(t, m.stream(now.Add(time.Minute)), "and no more")
	require.False(t, m.refused(now.Add(time.Minute)), "no news")
	m.worked()
	require.True(t, m.streaming())
	for range refusalsToUnary - 1 {
		require.False(t, m.refused(now))
		require.True(t, m.stream(now), "it may be one old server of many")
	}
	m.worked()
	for range refusalsToUnary {
		m.refused(now)
	}
	require.False(t, m.stream(now))

	for _, mode := range []string{Stream, Unary} {
		m := modes{mode: mode}
		require.False(t, m.refused(now))
		require.Equal(t, mode == Stream, m.stream(now))
		require.Equal(t, mode == Stream, m.streaming())
	}
}

func TestComplaintsAreAddedUpUntilTheNextLine(t *testing.T) {
	var c complaints
	now := time.Now()
	is := func(items, requests int, due bool, rejected int, at time.Time) {
		t.Helper()
		gotItems, gotRequests, gotDue := c.due(rejected, at)
		require.Equal(t, []any{items, requests, due}, []any{gotItems, gotRequests, gotDue})
	}
	is(3, 1, true, 3, now)
	is(0, 0, false, 4, now.Add(time.Second))
	is(0, 0, false, 0, now.Add(complaintInterval-1))
	is(9, 3, true, 5, now.Add(complaintInterval))
	is(0, 0, false, 1, now.Add(complaintInterval))
}

// Responses to several requests contain no partial success, and no more items than sent can be refused.

// Of two concurrent requests, the second is refused after the first has been accepted with another compression.
func TestARequestThatWasUnderWayFallsBackToo(t *testing.T) {
	f := newFallback(configcompression.TypeZstd)
	refused := status.Error(codes.InvalidArgument, "400 Bad Request")
	step, ok := f.next(0, refused, false)
	require.True(t, ok)
	require.True(t, f.taken(step))
	other, ok := f.next(0, refused, false)
	require.True(t, ok)
	require.Equal(t, step, other)
	_, ok = f.next(step, refused, false)
	require.False(t, ok, "what is taken from others is not refused for its compression")
}
