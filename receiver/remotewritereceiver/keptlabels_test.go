// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

// Texts of any length are equal if all of their bytes are, whatever is before and after them.
func TestTextsAreAlikeUpToTheLastByte(t *testing.T) {
	const longest = 100
	text := strings.Repeat("abcdefghijklmnopqrstuvwxyz", 5)
	for n := range longest + 1 {
		for at := -1; at <= n; at++ {
			other := []byte("<<<" + text[1:])
			if at >= 0 {
				other[3+at] ^= 1 << (at % 8) // the byte after them is not part of them
			}
			require.Equal(t, at < 0 || at == n, alike(text, 1, string(other), 3, n), "%d bytes, another at %d", n, at)
		}
	}
}

// Labels in 1.0 are compared up to their last byte, however long the parts before and after those of the target are.
func TestLabelsAreComparedUpToTheLastByte(t *testing.T) {
	needRuns(t)
	const all = 8
	cfg := sized(1 << 20)
	for _, c := range []struct{ head, tail int }{{0, 0}, {1, 1}, {7, 30}, {20, 8}, {40, 64}} {
		req := newV2()
		for i := range all {
			labels := []string{"__name__", "metric", "code", fmt.Sprint(i), "instance", "host", "job", "node"}
			if c.head > 0 {
				labels = slices.Insert(labels, 4, "head", strings.Repeat("h", c.head))
			}
			if c.tail > 0 {
				labels = append(labels, "tail", strings.Repeat("t", c.tail))
			}
			req.series(sample(float64(i), 1_700_000_000_000, 0), counter, "Help.", "seconds", labels...)
		}
		body := bodyOf(promwrite.V1, &req.Request)
		var w *worker
		var tree *tree
		byRuns := 0
		send := func(body []byte) (ok bool) {
			want, got, err := twin(w, cfg, promwrite.V1, slices.Clone(body), tree)
			if err == nil {
				require.Equal(t, said(want), said(got))
				for _, p := range tree.placed {
					byRuns += p.part.Len()
				}
			}
			tree.takeBack()
			return err == nil
		}
		learn := func() {
			var err error
			tree = newTree(true)
			w, err = newWorker(cfg, newKnown(1<<20, true))
			require.NoError(t, err)
			for range 3 {
				require.True(t, send(body))
			}
		}
		learn()
		require.Equal(t, all, byRuns)
		taken := 0
		for at := bytes.LastIndex(body, []byte("__name__")); at < len(body); at++ {
			other := slices.Clone(body)
			other[at] ^= 1 << (at % 8)
			if send(other) {
				taken++
			}
			learn() // so that the previous result is not known, too
		}
		require.Greater(t, taken, 30)
	}
}
