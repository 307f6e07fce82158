// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

// The stored encoding of 2.0 series is compared up to its last byte, however long its parts are, and stale markers do
// not count as numbers of a run.
func TestEncodingsAreComparedUpToTheLastByte(t *testing.T) {
	needRuns(t)
	const all = 12
	cfg := sized(1 << 20)
	var known *known
	var w *worker
	var tree *tree
	request := func(stale int) []byte {
		req := newV2()
		for i := range 200 {
			req.symbols.Symbolize(fmt.Sprint("so that references take two bytes ", i))
		}
		for i := range all {
			s := sample(float64(i), 1_700_000_000_000, 0)
			if i == stale {
				s = sample(math.Float64frombits(promwrite.StaleNaN), 1_700_000_000_000, 0)
			}
			req.series(s, counter, "Help.", "seconds", "__name__", fmt.Sprintf("metric_%d", i/5), "a", "1", "b", "2", "c", "3", "code", fmt.Sprint(i),
				"instance", "host", "job", "node", "x", "4", "y", "5", "z", "6")
		}
		return bodyOf(promwrite.V2, &req.Request)
	}
	// send reports whether the request is valid, and how many of its points were found by runs.
	send := func(body []byte) (ok bool, byRuns int) {
		want, got, err := twin(w, cfg, promwrite.V2, slices.Clone(body), tree)
		if err == nil {
			require.Equal(t, said(want), said(got))
			for _, p := range tree.placed {
				byRuns += p.part.Len()
			}
		}
		tree.takeBack()
		return err == nil, byRuns
	}
	// learn starts from scratch, and sends a request until a run knows how it is encoded.
	learn := func() {
		var err error
		known, tree = newKnown(1<<20, true), newTree(true)
		w, err = newWorker(cfg, known)
		require.NoError(t, err)
		byRuns := 0
		for range 3 + fewForeign {
			_, byRuns = send(request(-1))
		}
		require.GreaterOrEqual(t, byRuns, all-2) // the hash decides which few belong to no run
		require.True(t, slices.ContainsFunc(known.runs.all, func(r *run) bool { return r.said.Load() != nil }))
	}
	for i := range all {
		learn()
		ok, byRuns := send(request(i))
		require.True(t, ok)
		require.Less(t, byRuns, all, "the marker of series %d", i)
	}
	body := request(-1)
	taken := 0
	for at := bytes.LastIndex(body, []byte("seconds")); at < len(body); at += 3 {
		learn()
		other := slices.Clone(body)
		other[at] ^= 1 << (at % 8)
		if ok, _ := send(other); ok {
			taken++
		}
	}
	require.Greater(t, taken, 50)
}
