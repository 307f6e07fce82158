// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/godwit-otel/godwit/internal/fleettest"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// Ten thousand streams, each of which has sent metrics and is open, fit into a GiB and a half with their clients in the same
// process. It takes minutes with the race detector, so it is run when asked for.
func TestTenThousandStreamsAndTheirClientsFitIntoAGiBAndAHalf(t *testing.T) {
	const variable, streams, connections, targets = "GODWIT_LONG", 10_000, 50, 20
	if os.Getenv(variable) == "" {
		t.Skipf("it takes a while: set %s=1", variable)
	}
	page, err := os.ReadFile("../../testdata/pages/node.txt")
	require.NoError(t, err)
	var scrapes [targets][2][]byte
	for i := range scrapes {
		target := fleettest.New(string(page), i, 0.3)
		for n := range scrapes[i] {
			data, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(target.Scrape(pcommon.Timestamp(1_700_000_000_000_000_000 + n)))
			require.NoError(t, err)
			require.NoError(t, otlpstream.ToStream(data))
			scrapes[i][n] = data
		}
	}
	r := start(t, &pipeline{}, func(cfg *Config) { cfg.Streams.Max = streams })
	var ccs [connections]*grpc.ClientConn
	for i := range ccs {
		ccs[i] = grpcClient(t, r)
	}
	const limit = 3 << 29
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(limit * 9 / 10)) // as operators set it
	ctx := metadata.AppendToOutgoingContext(t.Context(), otlpstream.HeaderCaps, otlpstream.AllCaps.String())
	packed, learned := 0, 0
	grown := growth(func() {
		for i := range streams {
			stream, err := ccs[i%connections].NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true},
				otlpstream.Metrics.StreamMethod(), grpc.ForceCodecV2(otlpstream.Codec()))
			require.NoError(t, err)
			md, err := stream.Header()
			require.NoError(t, err)
			limits, caps := otlpstream.ParseGreeting(func(name string) string { return strings.Join(md.Get(name), "") })
			packer := limits.Keep.NewPacker()
			for n, data := range scrapes[i%targets] {
				request := otlpstream.Request{ID: uint64(n + 1), Items: 507, Data: data}
				if caps&otlpstream.CapWindow != 0 {
					packer.Pack(&request)
					packed++
				}
				if request.Delta > 0 {
					learned++
				}
				require.NoError(t, stream.SendMsg(&request))
				var response otlpstream.Response
				require.NoError(t, stream.RecvMsg(&response))
				require.Equal(t, otlpstream.Success, response.Code)
			}
		}
	})
	require.Len(t, r.slots, streams, "all are open")
	t.Logf("%d MiB at most, %d MiB granted; of %d requests %d were packed, %d of them deltas", grown>>20, r.memory.inUse()>>20, 2*streams, packed, learned)
	require.Less(t, grown, int64(limit))
	require.LessOrEqual(t, r.memory.inUse(), 256<<20)
}
