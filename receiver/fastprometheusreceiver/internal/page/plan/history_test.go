// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
)

// Metadata are read into a map that has grown with the largest page. What is kept of a small page is small.
func TestWhatASmallPageSaysIsSmall(t *testing.T) {
	said := map[string]catalog.Metadata{}
	for i := range 20_000 {
		said[fmt.Sprint(i)] = catalog.Metadata{}
	}
	clear(said)
	said["one"] = catalog.Metadata{}
	var before, after runtime.MemStats
	var h History
	runtime.ReadMemStats(&before)
	require.True(t, h.Learn(said, nil))
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(100_000), "the large one has a megabyte")
	require.Equal(t, said, h.Said)
	said["two"] = catalog.Metadata{}
	require.Len(t, h.Said, 1)
}
