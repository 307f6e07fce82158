// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/repository"
	"github.com/godwit-otel/godwit/internal/fleettest"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

const manyServer = `
receivers: {otlpstream: {protocols: {grpc: {endpoint: %s}}, streams: {max: %d}}}
exporters: {nop: }
service: {pipelines: {metrics: {receivers: [otlpstream], exporters: [nop]}}}
`

// manyStreams is the number of streams that a gateway must serve within manyMemory bytes; the short form opens a tenth.
const manyStreams, manyMemory = 10_000, 1 << 30

// Ten thousand open streams that have sent metrics fit into a GiB, whether they share few connections or have one each.
// All of them stay in use, so that their delta state is kept.
func TestTenThousandStreamsFitIntoAGiB(t *testing.T) {
	t.Parallel()
	streams := manyStreams / 10
	if os.Getenv(soakVariable) != "" {
		streams = manyStreams
	}
	for name, each := range map[string]int{"a connection for 200 streams": 200, "a connection for each stream": 1} {
		t.Run(name, func(t *testing.T) {
			addr := freeport.Addr(t)
			server := startUnder(t, []string{"env", fmt.Sprintf("GOMEMLIMIT=%d", manyMemory*9/10)}, "godwit-gateway", fmt.Sprintf(manyServer, addr, streams))
			before := server.Usage().PeakRSS
			m := &manyClients{t: t, addr: addr, each: each, scrapes: manyScrapes(t)}
			for i := range streams {
				m.open(i)
			}
			for i := range streams {
				m.send(i, 1)
			}
			assert.InDelta(t, streams, server.metric(t, "otelcol_receiver_otlpstream_streams"), 0, "all of them are open")
			assert.InDelta(t, m.points, server.metric(t, "otelcol_receiver_accepted_metric_points"), 0)
			usage := server.Usage()
			limit := before + (manyMemory-before)/manyStreams*int64(streams)
			assert.Less(t, usage.PeakRSS, limit)
			t.Logf("%d streams: %.0f MiB at most, %.0f before them; %d of %d requests were deltas", streams, mib(usage.PeakRSS), mib(before), m.deltas, m.requests)
		})
	}
}

// manyScrapes returns two scrapes each of some targets, in the format of streams.
func manyScrapes(t *testing.T) (scrapes [20][2][]byte) {
	t.Helper()
	page := repository.Read(t, "testdata/pages/node.txt")
	for i := range scrapes {
		target := fleettest.New(page, i, 0.3)
		for n := range scrapes[i] {
			data, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(target.Scrape(pcommon.Timestamp(1_700_000_000_000_000_000 + n)))
			require.NoError(t, err)
			require.NoError(t, otlpstream.ToStream(data))
			scrapes[i][n] = data
		}
	}
	return scrapes
}

// manyClients have one stream each, on which they send one scrape, and another one later.
type manyClients struct {
	t       *testing.T
	addr    string
	each    int // streams per connection
	conn    *grpc.ClientConn
	scrapes [20][2][]byte
	streams []manyClient

	requests, deltas, points int
}

type manyClient struct {
	grpc.ClientStream

	packer *otlpstream.Packer
}

func (m *manyClients) open(i int) {
	m.t.Helper()
	if i%m.each == 0 {
		m.conn = dial(m.t, m.addr)
	}
	ctx := metadata.AppendToOutgoingContext(m.t.Context(), otlpstream.HeaderCaps, otlpstream.AllCaps.String())
	stream, err := m.conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, otlpstream.Metrics.StreamMethod(), grpc.ForceCodecV2(otlpstream.Codec()))
	require.NoError(m.t, err)
	md, err := stream.Header()
	require.NoError(m.t, err)
	c := manyClient{ClientStream: stream}
	limits, caps := otlpstream.ParseGreeting(func(name string) string { return strings.Join(md.Get(name), "") })
	if caps&otlpstream.CapWindow != 0 {
		c.packer = limits.Keep.NewPacker()
	}
	m.streams = append(m.streams, c)
	m.send(i, 0)
}

// send sends the nth scrape on a stream.
func (m *manyClients) send(i, n int) {
	m.t.Helper()
	c := &m.streams[i]
	request := otlpstream.Request{ID: uint64(n + 1), Items: 507, Data: m.scrapes[i%len(m.scrapes)][n]}
	if c.packer != nil {
		c.packer.Pack(&request)
	}
	if m.requests++; request.Delta > 0 {
		m.deltas++
	}
	m.points += 507
	require.NoError(m.t, c.SendMsg(&request))
	var response otlpstream.Response
	require.NoError(m.t, c.RecvMsg(&response))
	require.Equal(m.t, otlpstream.Success, response.Code)
}
