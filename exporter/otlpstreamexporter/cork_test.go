// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// writes is a connection that notes the size of each write.
type writes struct {
	net.Conn

	sizes []int
}

func (w *writes) Write(p []byte) (int, error) {
	w.sizes = append(w.sizes, len(p))
	return len(p), nil
}

func TestWhatIsHeldBackIsWrittenInLargePieces(t *testing.T) {
	w := &writes{}
	c := &cork{Conn: w}
	write := func(n int) {
		_, err := c.Write(make([]byte, n))
		require.NoError(t, err)
	}
	write(10)
	require.Equal(t, []int{10}, w.sizes, "nothing is held back")
	c.hold()
	for range 20 {
		write(4 << 10)
	}
	require.Equal(t, []int{10, corkSize}, w.sizes)
	require.NoError(t, c.release())
	require.Equal(t, []int{10, corkSize, 20*4<<10 - corkSize}, w.sizes)
	require.NoError(t, c.release(), "nothing is held")
	write(1)
	require.Len(t, w.sizes, 4)
	require.NoError(t, (*cork)(nil).release(), "not a connection of ours")
}
