// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Pieces of texts that no line uses are removed with the lines.
func TestPiecesAreSwept(t *testing.T) {
	j := newTestJob(t, Config{Scrape: testScrapeConfig()})
	j.rules.MostWhole = 0
	target := testTarget(j, 1)
	for i := range 3000 {
		show(target, start, typeText, fmt.Sprintf("a{b=\"%d\",c=\"d\",e=\"f\",g=\"h\"} 1\n", i), 1<<20)
	}
	require.Less(t, target.cohort.Counts().Pieces, 2000)
	require.Less(t, target.cohort.Counts().Lines, 2000)
	require.Less(t, target.cohort.Counts().Points, 2000)
}

// Lines do not accumulate even for a target that never has a complete page.
func TestFailingPagesAreForgotten(t *testing.T) {
	j := newTestJob(t, Config{Scrape: testScrapeConfig()})
	j.rules.MostWhole = 0
	target := testTarget(j, 1)
	for i := range 3000 {
		page := fmt.Sprintf("a{b=\"%d\"} 1\n", i)
		require.Error(t, show(target, start, typeText, page+"broken{\n", 1<<20).Err)
		require.Error(t, show(target, start, typeText, page+"{c=\"d\"} 1\n", 1<<20).Err)
	}
	require.Less(t, target.cohort.Counts().Pieces, 2000)
	require.Less(t, target.cohort.Counts().Lines, 2000)
}
