// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
)

func TestInspection(t *testing.T) {
	bothTransports(t, func(t *testing.T, dial dialer) {
		r := start(t, &pipeline{})
		c := dial(t, r, 0)
		c.export(1, numbered(1))
		c.answer()
		source := r.inspection()
		require.Equal(t, component.KindReceiver, source.Kind)
		in := source.Intake()
		require.Equal(t, 1, in.Streams)
		require.Equal(t, r.cfg.Streams.Max, in.MaxStreams)
		require.Equal(t, int64(r.cfg.InFlight.Bytes), in.MaxInFlight)
		require.NotEmpty(t, in.Addresses)
		require.Len(t, in.Requests, 1)
		for _, n := range in.Requests {
			require.Equal(t, int64(1), n)
		}
	})
}
