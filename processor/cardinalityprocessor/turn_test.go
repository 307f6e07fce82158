// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/aggregate"
)

// A flush reads the epoch before anything else, and the next epoch may begin meanwhile: series that are seen then have
// a later epoch, and must not count as silent for four thousand million epochs.

func TestAFeederOfALaterEpochIsNotForgotten(t *testing.T) {
	r := newRig(t, aggregating(AggregateConfig{By: []string{"service"}}))
	begin := r.clock
	r.epochs(1)
	epoch := r.Limiter.Now().Epoch()
	r.consume(r.timed(pod(cumulative, "a", "/"), begin, r.at(1), 7))
	r.epochs(1)
	r.consume(r.timed(pod(cumulative, "a", "/"), begin, r.at(2), 10))
	r.Aggregator.Flush(epoch, nil, nil, func([]*aggregate.Pouring) {})
	r.consume(r.timed(pod(cumulative, "a", "/"), begin, r.at(3), 12))
	require.Equal(t, []string{"hits{service:s} 12"}, told(r.poured(10*time.Second)))
}

func TestAMemberOfALaterEpochIsPartOfItsOutput(t *testing.T) {
	a := newAbsent(t, upDown)
	epoch := a.Limiter.Now().Epoch()
	a.epochs(1)
	a.say(130)
	a.stay(100)
	all := a.Overflow.Flush(epoch, a.clock)
	require.Len(t, all, 1)
	n, _ := reading(all[0].Md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0), 0)
	require.Equal(t, int64(230), n)
	require.Equal(t, int64(2), a.gauge("overflow_members", ""))
}
