// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/consoletest"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/meter"
	"github.com/godwit-otel/godwit/internal/alloctest"
	"github.com/godwit-otel/godwit/internal/inspect"
)

// Sampling without an open page costs next to nothing: a thousandth of a core would be 10 ms of CPU time per interval.
func TestSamplingIsCheap(t *testing.T) {
	s := open(t)
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
		s.RegisterInspection(inspect.Source{Kind: component.KindProcessor, ID: consoletest.ID(name), Flow: func() inspect.Flow { return inspect.Flow{} }})
	}
	allocations := alloctest.PerRun(s.known.sample)
	require.LessOrEqual(t, allocations, 60.0)
	const samples = 100
	began := meter.CPUSeconds()
	for range samples {
		s.known.sample()
	}
	require.Less(t, (meter.CPUSeconds()-began)/samples, 0.010)
}

func BenchmarkSample(b *testing.B) {
	c := newConsole(createDefaultConfig().(*Config), newSettings(), time.Now)
	flow := inspect.Flow{Dropped: map[string]int64{"a": 1}, Targets: map[string]int{inspect.Healthy: 1}}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
		c.RegisterInspection(inspect.Source{Kind: component.KindProcessor, ID: consoletest.ID(name), Flow: func() inspect.Flow { return flow }})
	}
	for b.Loop() {
		c.known.sample()
	}
	require.Equal(b, 1, c.known.meter.Look().Now.Flows[c.known.sources.All()[0]].Targets[inspect.Healthy])
}
