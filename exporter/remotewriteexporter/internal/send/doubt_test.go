// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package send

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/internal/promwrite"
)

// TestWhatIsRefusedAfterAnOutageHoldsNothingUp: the first answer of a server that is back may be that a block is bad, as when it is too old by
// then. In a format that is not the last, that block is tried in the last, too; what comes next is not to wait for the end of that for ever.
func TestWhatIsRefusedAfterAnOutageHoldsNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		code := http.StatusNoContent
		formats := all[2:]
		d := New(Config{
			URL: "http://there.test/", Formats: formats, Timeout: time.Minute, Reprobe: time.Hour,
			Retry:   Retry{InitialInterval: time.Second, MaxInterval: time.Second, Multiplier: 1},
			Breaker: Breaker{Failures: 5, OpenFor: 10 * time.Second},
			Client: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: code, Header: http.Header{}, Body: http.NoBody}, r.Body.Close()
			})},
		}, zap.NewNop(), nobody{})
		defer d.Close()
		raw := []byte("as it was encoded")
		body, err := block.Compress(nil, formats[0], raw)
		require.NoError(t, err)
		b := block.New(block.Header{Version: promwrite.V1, Compression: promwrite.Zstd, Samples: 1, RawSize: len(raw)}, body)
		send := func() []error {
			lost, err := d.Send(t.Context(), []block.Block{b}, Times{})
			require.NoError(t, err)
			return lost
		}
		require.Nil(t, send())

		code = http.StatusServiceUnavailable
		time.AfterFunc(time.Minute, func() { code = http.StatusBadRequest })
		require.NotNil(t, send(), "it is refused")
		require.False(t, d.BreakerOpen())
		code = http.StatusNoContent
		require.Nil(t, send())
	})
}
