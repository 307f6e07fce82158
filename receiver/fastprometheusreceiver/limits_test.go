// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/fetch"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page"
)

// Limits that are not set follow the available memory, and are reported.
func TestLimitsFollowTheMemory(t *testing.T) {
	f := func(memory, body, page, bodies int64) limits {
		t.Helper()
		l := newLimits(&Config{}, memory)
		require.Equal(t, []int64{body, page, bodies}, []int64{l.body, l.page, l.bodies})
		require.Equal(t, []int64{body, page}, []int64{l.applied(&Config{}).MaxBodySize, l.applied(&Config{}).MaxPageMemory})
		return l
	}
	const mib = 1 << 20
	f(0, 256*mib, 2048*mib, 128*mib) // unknown memory
	f(64<<30, 256*mib, 2048*mib, 128*mib)
	f(24*mib, 32*mib, 16*mib, 8*mib) // of a container with 60 MiB
	l := f(512*mib, 128*mib, 256*mib, 64*mib)

	tooLarge := fmt.Errorf("%w: more than it may", fetch.ErrBodySize)
	require.EqualError(t, l.explain(tooLarge, l.body),
		"body size limit exceeded: the page is larger than 128MiB, a quarter of the memory there is (512MiB): "+
			"set `body_size_limit` of its job, or `max_body_size`, to allow more")
	require.ErrorIs(t, l.explain(tooLarge, l.body), fetch.ErrBodySize)
	require.EqualError(t, l.explain(tooLarge, 1000),
		"body size limit exceeded: the page is larger than 1000 bytes: raise `body_size_limit` of its job to allow more")
	tooMuch := page.MemoryError(l.page)
	require.ErrorContains(t, l.explain(tooMuch, 0), "`max_page_memory` allows (268435456 bytes), which is half of the memory there is (512MiB): set it to allow more")
	require.ErrorIs(t, l.explain(tooMuch, 0), page.ErrMemory)
	require.Equal(t, l.explain(tooMuch, 0), l.explain(l.explain(tooMuch, 0), 0))
	require.NoError(t, l.explain(nil, 0))

	set := newLimits(&Config{MaxBodySize: 1 * mib, MaxPageMemory: 2 * mib}, 512*mib)
	require.EqualError(t, set.explain(tooLarge, set.body),
		"body size limit exceeded: the page is larger than 1MiB: set `body_size_limit` of its job, or `max_body_size`, to allow more")
	require.Equal(t, page.MemoryError(2*mib), set.explain(page.MemoryError(2*mib), 0))
}
