// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package buffers

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLargeBuffersAreRefusedByTheirKeys(t *testing.T) {
	require.NoError(t, Check("", 0, Most))
	require.NoError(t, Check("", -1, -1), "the default")
	err := Check("http.", Most+1, math.MaxInt)
	require.ErrorContains(t, err, "`http.read_buffer_size`")
	require.ErrorContains(t, err, "`http.write_buffer_size`")
}
