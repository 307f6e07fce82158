// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package send

import (
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/internal/promwrite"
)

// TestWhatIsRefusedAfterAnOutageHoldsNothingUp: the first response of a server that is back may be that a block is bad,
// for example too old by then. If its format is not the last one, the block is tried in the last, too; the next blocks
// must not wait for that for ever.
func TestWhatIsRefusedAfterAnOutageHoldsNothingUp(t *testing.T) {
	formats, raw := all[2:], []byte("as it was encoded")
	// Encoders and decoders are reused, and must not belong to the bubble.
	body, err := block.Compress(nil, formats[0], raw)
	require.NoError(t, err)
	b := block.New(block.Header{Version: promwrite.V1, Compression: promwrite.Zstd, Samples: 1, RawSize: len(raw)}, body)
	_, err = b.Raw()
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		var code atomic.Int32
		code.Store(http.StatusNoContent)
		d := New(Config{
			URL: "http://there.test/", Formats: formats, Timeout: time.Minute, Reprobe: time.Hour,
			Retry:   Retry{InitialInterval: time.Second, MaxInterval: time.Second, Multiplier: 1},
			Breaker: Breaker{Failures: 5, OpenFor: 10 * time.Second},
			Client: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: int(code.Load()), Header: http.Header{}, Body: http.NoBody}, r.Body.Close()
			})},
		}, zap.NewNop(), nobody{})
		defer d.Close()
		send := func() []error {
			lost, err := d.Send(t.Context(), []block.Block{b}, Times{})
			require.NoError(t, err)
			return lost
		}
		require.Nil(t, send())

		code.Store(http.StatusServiceUnavailable)
		time.AfterFunc(time.Minute, func() { code.Store(http.StatusBadRequest) })
		require.NotNil(t, send(), "it is refused")
		require.False(t, d.BreakerOpen())
		code.Store(http.StatusNoContent)
		require.Nil(t, send())
	})
}
