// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package websocket

import (
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhoAwaitsAMessageHasItToRead(t *testing.T) {
	c, s := pair(t)
	begun := make(chan error, 1)
	go func() { begun <- s.Await() }()
	pong := make(chan error, 1)
	go func() { _, _, err := c.Read(nil); pong <- err }()
	require.NoError(t, c.Ping())
	eventually(t, func() bool { return c.Received() > 0 }, "pings are answered meanwhile")
	require.Empty(t, begun, "a ping is no message")

	large := message(3 * mostBuffer)
	wrote := make(chan error, 1)
	go func() { wrote <- errors.Join(c.Write([]byte("one")), c.Write(nil), c.Write(large), c.Flush()) }()
	require.NoError(t, <-begun)
	require.NoError(t, s.Await(), "it may be awaited again")
	for _, want := range []string{"one", "", string(large)} {
		require.NoError(t, s.Await())
		got, _, err := s.Read(nil)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	require.NoError(t, <-wrote)
	go c.Close(StatusNormalClosure, "")
	var closed CloseError
	require.ErrorAs(t, s.Await(), &closed)
	require.Error(t, s.Await(), "it is over")
	require.Error(t, <-pong)
}

// A connection is closed properly even after the beginning of a message that is not read.
func TestAMessageThatIsAwaitedAndNotReadIsPassedOver(t *testing.T) {
	c, s := pair(t)
	wrote := make(chan error, 1)
	go func() { wrote <- errors.Join(c.Write(message(3*mostBuffer)), c.Write(message(10)), c.Flush()) }()
	require.NoError(t, s.Await())
	ended := make(chan error, 1)
	go func() { _, _, err := c.Read(nil); ended <- err }()
	s.Close(StatusTryAgainLater, "")
	var closed CloseError
	require.ErrorAs(t, <-ended, &closed)
	require.Equal(t, StatusTryAgainLater, closed.Code)
	if err := <-wrote; err != nil { // the connection was closed meanwhile
		require.ErrorIs(t, err, net.ErrClosed)
	}
}
