// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A page of the same samples again and again fails before it takes memory; one that has as many others does not, nor one
// whose samples have times of their own.
func TestPagesThatRepeatThemselves(t *testing.T) {
	const n = 1 << 14
	f := func(repeats bool, piece func(i int) string) {
		t.Helper()
		target := testTarget(newTestJob(t, Config{Scrape: testScrapeConfig()}), 1)
		for range 2 {
			s, err := target.Begin(time.Now(), "text/plain")
			require.NoError(t, err)
			lines := 0
			for i := 0; err == nil && lines < manyLines+2*n; i++ {
				chunk := piece(i)
				lines += strings.Count(chunk, "\n")
				err = s.Feed([]byte(chunk))
			}
			result := s.End(Report{Err: err})
			result.Release()
			if repeats {
				require.ErrorIs(t, err, ErrMemory)
				require.ErrorContains(t, err, "the same few again and again")
				require.LessOrEqual(t, lines, manyLines+n)
			} else {
				require.NoError(t, err)
			}
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
