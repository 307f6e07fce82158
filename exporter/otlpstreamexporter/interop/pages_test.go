// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/godwit-otel/godwit/internal/fleettest"
)

// scrapes returns scrapes of the given number of node exporters, one batch per target and scrape. All have the same
// series, half of which change.
func scrapes(tb testing.TB, targets, times int) (batches []pmetric.Metrics, points int) {
	page, err := os.ReadFile("../../../testdata/pages/node.txt")
	require.NoError(tb, err)
	fleet := make([]*fleettest.Target, targets)
	for i := range fleet {
		fleet[i] = fleettest.New(string(page), i, 0.5)
	}
	for scrape := range times {
		for i, target := range fleet {
			md := pmetric.NewMetrics()
			target.Scrape(pcommon.NewTimestampFromTime(time.Unix(1_700_000_000+int64(scrape)*10, int64(i)*37_000_000))).CopyTo(md)
			batches, points = append(batches, md), points+target.Points()
		}
	}
	return batches, points
}

// requests returns n batches of spans with four attributes each.
func requests(n, spans int) (batches []ptrace.Traces, count int) {
	random := rand.New(rand.NewPCG(3, 4))
	for i := range n {
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", "checkout")
		rs.Resource().Attributes().PutStr("host.name", "web-17")
		ss := rs.ScopeSpans().AppendEmpty()
		ss.Scope().SetName("io.opentelemetry.http")
		for j := range spans {
			span := ss.Spans().AppendEmpty()
			id := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, random.Uint64()), random.Uint64())
			span.SetTraceID([16]byte(id))
			span.SetSpanID([8]byte(binary.LittleEndian.AppendUint64(nil, random.Uint64())))
			span.SetName([]string{"GET /cart", "POST /order", "SELECT items", "redis.get"}[random.IntN(4)])
			span.SetKind(ptrace.SpanKindClient)
			begin := time.Unix(1_700_000_000+int64(i), random.Int64N(1_000_000_000))
			span.SetStartTimestamp(pcommon.NewTimestampFromTime(begin))
			span.SetEndTimestamp(pcommon.NewTimestampFromTime(begin.Add(time.Duration(random.IntN(100_000_000)))))
			span.Attributes().PutInt("sequence", int64(i*spans+j))
			span.Attributes().PutStr("http.request.method", "GET")
			span.Attributes().PutStr("http.route", fmt.Sprintf("/item/%d", random.IntN(1000)))
			span.Attributes().PutStr("server.address", fmt.Sprintf("shop-%d", random.IntN(20)))
		}
		batches = append(batches, td)
	}
	return batches, spans * n
}
