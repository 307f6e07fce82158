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

	"github.com/godwit-otel/godwit/internal/racetest"
)

// The two bytes of an empty message are decoded to more than a hundred. A request with little else is refused before it
// is decoded.
func TestHollowRequestsAreRefused(t *testing.T) {
	racetest.Sequential(t)
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
		_, _, err := new(pipelines).decodeMetrics(formatProto, body, nil)
		refused(err)
	}
	for _, body := range [][]byte{empty(1), in(empty(2), 2, 1)} {
		_, err := decodeTraces(formatProto, body, nil)
		refused(err)
		_, err = decodeLogs(formatProto, body, nil)
		refused(err)
	}
	_, _, err := new(pipelines).decodeMetrics(formatJSON, []byte(`{"resourceMetrics":`+strings.Repeat("[", 1_000_000)), nil)
	refused(err)
	require.ErrorContains(t, err, "nested deeper than")
}

// pdata decodes nested values by recursion, and a stack overflow ends the process: such requests are refused.
func TestRequestsThatAreNestedTooDeepAreRefused(t *testing.T) {
	value := []byte{}
	in := func(body []byte, numbers ...protowire.Number) []byte {
		for _, number := range numbers {
			body = protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), body)
		}
		return body
	}
	nested := func(depth int) []byte {
		for range depth {
			value = in(value, 1, 5) // a list with one element
		}
		return in(append(in([]byte("k"), 1), in(value, 2)...), 1, 1, 1) // an attribute of a resource
	}
	for depth, isRefused := range map[int]bool{50: false, 2000: true} {
		value = value[:0]
		body := nested(depth)
		for _, decodes := range []func() error{
			func() error { _, _, err := new(pipelines).decodeMetrics(formatProto, body, nil); return err },
			func() error { _, err := decodeTraces(formatProto, body, nil); return err },
			func() error { _, err := decodeLogs(formatProto, body, nil); return err },
		} {
			err := decodes()
			if !isRefused {
				require.NoError(t, err)
				continue
			}
			require.Equal(t, codes.InvalidArgument, status.Code(err))
			require.ErrorContains(t, err, "nested deeper than")
		}
	}
}
