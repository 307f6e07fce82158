// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnOutboxKeepsTheOrderAndForgetsNothing(t *testing.T) {
	const each, senders = 1000, 4
	o := newOutbox()
	var sending sync.WaitGroup
	for sender := range uint64(senders) {
		sending.Go(func() {
			for i := range uint64(each) {
				o.put(answer{id: sender<<32 | i})
			}
		})
	}
	var next [senders]uint64
	for taken := 0; taken < each*senders; {
		<-o.some // there is a token whenever there may be a response
		a, ok := o.take()
		if !ok {
			continue
		}
		taken++
		sender := a.id >> 32
		require.Equal(t, next[sender], a.id&(1<<32-1), "those of one come in order")
		next[sender]++
	}
	sending.Wait()
	_, ok := o.take()
	require.False(t, ok)
}

func TestAnOutboxThatIsEmptyTakesLittle(t *testing.T) {
	o := newOutbox()
	for round := range 3 {
		for range 10_000 {
			o.put(answer{})
		}
		for range 10_000 {
			_, ok := o.take()
			require.True(t, ok)
		}
		require.LessOrEqual(t, cap(o.answers), 16, "round %d", round)
	}
}
