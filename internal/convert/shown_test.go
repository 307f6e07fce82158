// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPrintedConfigurationHasNoSecrets(t *testing.T) {
	const in = `exporters:
    otlp_http:
        endpoint: https://me:hidden@host/?key=hidden
        queue: 10
receivers:
    fastprometheus:
        config:
            scrape_configs:
                - params:
                    token:
                        - hidden

`
	want := strings.NewReplacer("me:hidden@host/?key=hidden", "[REDACTED]@host/?key=[REDACTED]", "- hidden", "- '[REDACTED]'").Replace(in)
	f := func(in, want string, args ...string) {
		t.Helper()
		var out strings.Builder
		n, err := Shown(&out, args).Write([]byte(in))
		require.NoError(t, err)
		require.Equal(t, len(in), n)
		require.Equal(t, want, out.String())
	}
	f(in, want, "print-config", "--config", "x.yaml")
	f(in, in, "print-config", "--mode=unredacted")
	f(in, in, "print-config", "--mode", "unredacted")
	f(in, in, "components")
	f("{\n  \"a\": \"http://me:hidden@host\",\n  \"b\": 1\n}\n", "{\n  \"a\": \"http://[REDACTED]@host\",\n  \"b\": 1\n}\n", "print-config", "--format=json")
	f("password=hidden", "password=[REDACTED]", "print-config")
}

func TestErrorsHaveNoSecrets(t *testing.T) {
	require.Equal(t, "Error: exporters::otlp: cannot use https://[REDACTED]@host:1\n", plainly("Error: exporters::otlp: cannot use https://me:hidden@host:1\n"))
}
