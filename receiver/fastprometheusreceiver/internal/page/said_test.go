// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
)

// Targets with series of their own have plans of their own. The metadata on their pages is stored only once
// nevertheless.
func TestPlansShareWhatPagesSay(t *testing.T) {
	j := newTestJob(t, Config{Scrape: testScrapeConfig()})
	page := func(target, series int, help string) string {
		var b strings.Builder
		fmt.Fprintf(&b, "# HELP m %s\n# TYPE m gauge\n# HELP n It.\n", help)
		for i := range series {
			fmt.Fprintf(&b, "m{pod=\"p%d-%d\"} 1\n", target, i)
		}
		return b.String()
	}
	said := func(t *Target) uintptr { return reflect.ValueOf(t.Said).Pointer() }
	var all []*Target
	for i := range 4 {
		target := testTarget(j, i)
		require.NoError(t, show(target, start, typeText, page(i, 100+i, "It."), 1<<20).Err)
		all = append(all, target)
	}
	for i, target := range all[1:] {
		require.NotSame(t, all[i].Plan, target.Plan)
		require.Equal(t, said(all[0]), said(target))
	}
	require.NoError(t, show(all[1], start, typeText, page(9, 100, "Another."), 1<<20).Err)
	require.NotEqual(t, all[0].Said["m"], all[1].Said["m"])
	require.NoError(t, show(all[1], start, typeText, page(10, 100, "It."), 1<<20).Err)
	require.Equal(t, said(all[0]), said(all[1]))
}

// The metadata of very many pages, or of very large ones, is not kept for other pages.
func TestWhatIsSharedIsBounded(t *testing.T) {
	c := testTarget(newTestJob(t, Config{Scrape: testScrapeConfig()}), 1).cohort
	said := func(name string, n int) map[string]catalog.Metadata {
		all := map[string]catalog.Metadata{}
		for i := range n {
			all[fmt.Sprint(name, i)] = catalog.Metadata{}
		}
		return all
	}
	for i := range 100 {
		c.RememberMetadata(said(fmt.Sprint("page", i), 3))
	}
	require.NotNil(t, c.SharedMetadata(said("page99", 3)))
	require.Nil(t, c.SharedMetadata(said("page1", 3)))
	for _, n := range []int{0, 10_000} {
		c.RememberMetadata(said("m", n))
		require.Nil(t, c.SharedMetadata(said("m", n)))
	}
	require.NotNil(t, c.SharedMetadata(said("page99", 3)))
}
