// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package gates_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/featuregate"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/godwit-otel/godwit/internal/gates"
)

func TestGatesAreKnownOnce(t *testing.T) {
	registry := featuregate.GlobalRegistry()
	theirs := registry.MustRegister("test.theirs", featuregate.StageAlpha)
	known := gates.Register(
		gates.Gate{ID: "test.theirs", Stage: featuregate.StageAlpha, Changed: "it is theirs"},
		gates.Gate{ID: "test.ours", Stage: featuregate.StageBeta, Changed: "it is always so"},
		gates.Gate{ID: "test.silent", Stage: featuregate.StageAlpha},
	)
	warnings := func() (texts []string) {
		core, logs := observer.New(zap.InfoLevel)
		known.Warn(zap.New(core))
		for _, entry := range logs.All() {
			texts = append(texts, entry.Message)
		}
		return texts
	}
	require.Empty(t, warnings(), "all are as they are by default")

	require.NoError(t, registry.Set("test.theirs", true))
	require.NoError(t, registry.Set("test.ours", false))
	require.NoError(t, registry.Set("test.silent", true))
	require.True(t, theirs.IsEnabled())
	require.True(t, gates.Enabled("test.silent"))
	require.False(t, gates.Enabled("test.unknown"))
	require.Equal(t, []string{"feature gate has no effect: it is theirs", "feature gate has no effect: it is always so"}, warnings())
}
