// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/internal/slab"
	"github.com/godwit-otel/godwit/receiver/remotewritereceiver/internal/admission"
)

// field encodes a bytes field whose length takes one byte.
func field(number byte, text string) string {
	return string([]byte{number<<3 | 2, byte(len(text))}) + text
}

// strangers returns 1.0 series that have little in common, with one sample each.
func strangers(n int, names, jobs bool) (body []byte) {
	for i := range n {
		name, job := "x", "x"
		if names {
			name = strconv.Itoa(i)
		}
		if jobs {
			job = strconv.Itoa(i)
		}
		body = append(body, field(1, field(1, field(1, "__name__")+field(2, name))+field(1, field(1, "job")+field(2, job))+field(2, "\x10\x01"))...)
	}
	return body
}

// TestStrangersTakeTheMemoryThatTheyNeed: if each series has another metric or another target, these take more memory
// than their points.
func TestStrangersTakeTheMemoryThatTheyNeed(t *testing.T) {
	racetest.Sequential(t)
	const series = 20_000
	for _, reused := range []bool{false, slab.Places()} {
		for _, kind := range [][2]bool{{true, false}, {false, true}, {true, true}} {
			t.Run(fmt.Sprintf("reused=%v/names=%v/jobs=%v", reused, kind[0], kind[1]), func(t *testing.T) {
				body := strangers(series, kind[0], kind[1])
				work := func(m *admission.Memory) (held admission.Hold, w *worker, b batch, err error) {
					w, err = newWorker(sized(2*len(body)), newKnown(1<<20, reused))
					require.NoError(t, err)
					held = m.Held()
					b, err = w.work(t.Context(), promwrite.V1, promwrite.Identity, body, &held, nil, newTree(reused))
					return held, w, b, err
				}
				live := func() int64 {
					var m runtime.MemStats
					runtime.GC()
					runtime.ReadMemStats(&m)
					return int64(m.HeapAlloc)
				}
				enough, before := admission.New(1<<30), live()
				held, w, b, err := work(enough)
				require.NoError(t, err)
				require.Equal(t, series, b.written.Samples)
				held.Translated()
				assert.Less(t, live()-before, int64(enough.Usage().Metrics), "what its metrics take is counted")
				runtime.KeepAlive(w)
				runtime.KeepAlive(b)
				held.Done()
				require.Zero(t, enough.Usage())

				little := admission.New(24 << 20) // enough for points
				held, _, _, err = work(little)
				held.Done()
				require.ErrorIs(t, err, promwrite.ErrTooLarge)
				require.Zero(t, little.Usage())
			})
		}
	}
}

// TestStrangersComeAgainWhereMemoryIsShort: others have the memory that they would need.
func TestStrangersComeAgainWhereMemoryIsShort(t *testing.T) {
	const size = 64 << 20
	m := admission.New(size)
	others := m.Held()
	require.NoError(t, others.ForMetrics(t.Context(), 0, &promwrite.Size{Samples: size / 8 * 3 / 216}))
	body := strangers(20_000, true, true)
	w, err := newWorker(sized(2*len(body)), newKnown(1<<20, false))
	require.NoError(t, err)
	held := m.Held()
	_, err = w.work(t.Context(), promwrite.V1, promwrite.Identity, body, &held, nil, newTree(false))
	held.Done()
	require.ErrorIs(t, err, admission.ErrBusy)
	require.Equal(t, 503, decodeCode(err))
	others.Done()
	held = m.Held()
	_, err = w.work(t.Context(), promwrite.V1, promwrite.Identity, body, &held, nil, newTree(false))
	require.NoError(t, err)
	held.Done()
	require.Zero(t, m.Usage())
}
