// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package delta

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/fleettest"
)

// target is a node exporter whose scrapes are encoded.
type target struct{ *fleettest.Target }

func newTarget(tb testing.TB, number int, share float64) *target {
	text, err := os.ReadFile("../../../testdata/pages/node.txt")
	require.NoError(tb, err)
	return &target{fleettest.New(string(text), number, share)}
}

// scrape advances the target, and returns the payload of the next scrape.
func (t *target) scrape(at pcommon.Timestamp) []byte {
	b, _ := (&pmetric.ProtoMarshaler{}).MarshalMetrics(t.Scrape(at))
	return b
}

// scrapes returns those of the given number of targets, in order of time.
func scrapes(tb testing.TB, targets, times int, share float64) (payloads [][]byte, points int) {
	fleet := make([]*target, targets)
	for i := range fleet {
		fleet[i] = newTarget(tb, i, share)
	}
	for n := range times {
		for i, t := range fleet {
			payloads = append(payloads, t.scrape(pcommon.Timestamp(1_700_000_000_000_000_000+n*10_000_000_000+i*37_123_456)))
			points += t.Points()
		}
	}
	return payloads, points
}
