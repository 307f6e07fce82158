// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

	"github.com/godwit-otel/godwit/internal/inspect"
)

func TestInspection(t *testing.T) {
	quietEnv(t)
	t.Setenv("GOGC", "60")
	defer debug.SetGCPercent(debug.SetGCPercent(60))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(noLimit))
	s := newSubject(&Config{Profile: ProfileMinimal}, treeV2("1073741824\n"))
	s.start(t)
	source := s.inspection()
	require.Equal(t, component.KindExtension, source.Kind)
	require.Equal(t, inspect.Runtime{
		Profile: "minimal", GOGC: 60, MemoryLimit: percentOf(1<<30, 60), MemoryBudget: 1 << 30, Cgroup: true, FromEnv: []string{"GOGC"},
	}, source.Runtime())
	s.shutdown(t)
	require.Zero(t, source.Runtime().MemoryLimit, "none is 0")
}
