// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// masked returns a client's WebSocket frame, with a mask of zeros.
func masked(message []byte) []byte {
	const final, binaryFrame, mask, length16 = 0x80, 2, 0x80, 126
	frame := binary.BigEndian.AppendUint16([]byte{final | binaryFrame, mask | length16}, uint16(len(message)))
	return append(append(frame, 0, 0, 0, 0), message...)
}

var handshake = "GET " + otlpstream.Traces.WebSocketPath() + " HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"

func TestRequestsMayComeWithTheHandshake(t *testing.T) {
	p := &pipeline{}
	r := start(t, p)
	c, err := net.Dial("tcp", r.httpAddr)
	require.NoError(t, err)
	defer c.Close()
	deadline, ok := testContext(t).Deadline()
	require.True(t, ok)
	require.NoError(t, c.SetDeadline(deadline))

	// More than the server reads at once, so that a part of it is read before the connection is hijacked and the rest
	// after.
	names := []string{"small", strings.Repeat("l", 20_000), strings.Repeat("m", 60_000)}
	message := []byte(handshake)
	for i, name := range names {
		request := otlpstream.Request{ID: uint64(i + 1), Items: 1, Data: payload(t, name)}
		message = append(message, masked(append(request.AppendHeader([]byte{0}), request.Data...))...)
	}
	_, err = c.Write(message)
	require.NoError(t, err)

	answers := bufio.NewReader(c)
	response, err := http.ReadResponse(answers, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, response.StatusCode)
	acked := map[uint64]bool{}
	for len(acked) < len(names) {
		var header [2]byte
		_, err := io.ReadFull(answers, header[:])
		require.NoError(t, err)
		frame := make([]byte, header[1])
		_, err = io.ReadFull(answers, frame)
		require.NoError(t, err)
		var response otlpstream.Response
		require.NoError(t, response.Parse(frame[1:]))
		require.Equal(t, otlpstream.Success, response.Code)
		acked[response.ID] = true
	}
	require.ElementsMatch(t, names, p.seen())
}

// A client that disappears without closing its connection, as with a network failure, occupies a place no longer than a
// ping takes.
func TestAClientThatIsGoneIsAskedAndLeft(t *testing.T) {
	r := prepare(t, &pipeline{})
	r.pingEvery, r.pingPatience = 10*time.Millisecond, 10*time.Millisecond
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	defer func() { require.NoError(t, r.Shutdown(context.Background())) }()
	c, err := net.Dial("tcp", r.httpAddr)
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Write([]byte(handshake))
	require.NoError(t, err)
	_, err = http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	eventually(t, func() bool { return len(r.places.slots) == 0 }, "its place is free")
}
