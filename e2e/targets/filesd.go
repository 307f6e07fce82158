// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// WriteFileSD writes a file_sd file with these targets. It replaces the file by a rename, as Prometheus' documentation
// asks of writers. Its name should end in .json.
func WriteFileSD(t testing.TB, path string, labels map[string]string, targets ...*Target) {
	t.Helper()
	type group struct {
		Targets []string          `json:"targets"`
		Labels  map[string]string `json:"labels,omitempty"`
	}
	g := group{Targets: []string{}, Labels: labels}
	for _, target := range targets {
		g.Targets = append(g.Targets, target.Addr())
	}
	b, err := json.Marshal([]group{g})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path+".tmp", b, 0o600))
	require.NoError(t, os.Rename(path+".tmp", path))
}
