// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
)

// Two bytes of an empty message become a hundred and more. A request that has little else is refused before it is decoded.
func TestHollowRequestsAreRefused(t *testing.T) {
	in := func(body []byte, numbers ...protowire.Number) []byte {
		for _, number := range numbers {
			body = protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), body)
		}
		return body
	}
	empty := func(number protowire.Number) []byte { return bytes.Repeat(in(nil, number), 1_000_000) }
	refused := func(err error) {
		t.Helper()
		require.Equal(t, codes.InvalidArgument, status.Code(err), "%v", err)
	}
	for _, body := range [][]byte{empty(1), in(empty(2), 1), in(empty(2), 2, 1), in(empty(1), 5, 2, 2, 1), in(empty(1), 10, 2, 2, 1), in(empty(7), 1, 5, 2, 2, 1)} {
		_, err := decodeMetrics(formatProto, body)
		refused(err)
	}
	for _, body := range [][]byte{empty(1), in(empty(2), 2, 1)} {
		_, err := decodeTraces(formatProto, body)
		refused(err)
		_, err = decodeLogs(formatProto, body)
		refused(err)
	}
	_, err := decodeMetrics(formatJSON, []byte(`{"resourceMetrics":`+strings.Repeat("[", 1_000_000)))
	refused(err)
	require.ErrorContains(t, err, "nested deeper than")
}
