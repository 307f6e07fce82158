// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/racetest"
)

// A page that repeats the same samples fails before it takes memory; a page with as many different samples does not,
// nor one whose samples have timestamps.
func TestPagesThatRepeatThemselves(t *testing.T) {
	racetest.Sequential(t)
	const n = 1 << 14
	f := func(repeats bool, piece func(i int) string) {
		t.Helper()
		target := testTarget(newTestJob(t, Config{Scrape: testScrapeConfig()}), 1)
		for range 2 {
			s, err := target.Begin(time.Now(), "text/plain")
			require.NoError(t, err)
			lines := 0
			for i := 0; err == nil && repeats && lines < 8*manyLines || lines < manyLines+2*n; i++ {
				chunk := piece(i)
				lines += strings.Count(chunk, "\n")
				err = s.Feed([]byte(chunk))
			}
			require.NoError(t, err)
			require.LessOrEqual(t, len(s.lines), manyLines+2*n)
			result := s.End(Report{})
			if repeats {
				require.ErrorIs(t, result.Err, ErrMemory)
				require.ErrorContains(t, result.Err, "the same few again and again")
			} else {
				require.NoError(t, result.Err)
			}
			result.Release()
		}
	}
	same := strings.Repeat("a 1\n", n)
	f(true, func(int) string { return same })
	var few strings.Builder
	for i := range n {
		fmt.Fprintf(&few, "a{b=\"%d\"} 1\n", i%100)
	}
	f(true, func(int) string { return few.String() })
	f(true, func(int) string { return strings.Repeat("# TYPE a gauge\n", n) })
	f(true, func(int) string { return strings.Repeat("a 1 1000\n", n) })
	f(false, func(i int) string {
		var out strings.Builder
		for k := range n {
			fmt.Fprintf(&out, "a{b=\"%d\"} 1\n", i*n+k)
		}
		return out.String()
	})
	f(false, func(i int) string {
		var out strings.Builder
		for k := range n {
			fmt.Fprintf(&out, "a 1 %d\n", 1_700_000_000_000+i*n+k)
		}
		return out.String()
	})
}

// A line without an end is not held, and fails its page when the end of the page has come.
func TestLinesWithoutAnEnd(t *testing.T) {
	target := testTarget(newTestJob(t, Config{Scrape: testScrapeConfig()}), 1)
	s, err := target.Begin(time.Now(), "text/plain")
	require.NoError(t, err)
	chunk := []byte(strings.Repeat("a", 1<<20))
	for range 32 {
		require.NoError(t, s.Feed(chunk))
		require.LessOrEqual(t, len(s.carry), maxLine)
	}
	require.NoError(t, s.Feed([]byte("a 1\nb 1\n")))
	result := s.End(Report{})
	require.ErrorIs(t, result.Err, ErrMemory)
	require.ErrorContains(t, result.Err, "a line of more than 8388608 bytes")
	require.Zero(t, result.Samples)
	result.Release()
}
