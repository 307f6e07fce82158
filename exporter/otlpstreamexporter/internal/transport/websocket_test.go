// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// A transport whose certificates have been renewed is closed when its last stream ends, whose reader may be at work.
func TestAnswersAreDecodedWhileATransportCloses(t *testing.T) {
	w, err := newWebSocket(t.Context(), &Settings{Signal: otlpstream.Traces}, componenttest.NewNopHost())
	require.NoError(t, err)
	require.NoError(t, w.Close())
	answer := strings.Repeat("answer", 1000)
	frame, err := otlpstream.Zstd.AppendFrame(nil, []byte(answer))
	require.NoError(t, err)
	message, err := w.frames.Message(nil, frame)
	require.NoError(t, err)
	require.Equal(t, answer, string(message))
}
