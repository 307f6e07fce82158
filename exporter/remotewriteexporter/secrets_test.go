// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEndpointsAreShownWithoutSecrets(t *testing.T) {
	cfg := NewFactory().CreateDefaultConfig().(*Config)
	cfg.Endpoint = "https://me:covert/word@host/api/v1/write?key=covert"
	err := cfg.Validate()
	require.ErrorContains(t, err, `got "https://[REDACTED]@host/api/v1/write?key=[REDACTED]"`)
	require.NotContains(t, err.Error(), "covert")
}
