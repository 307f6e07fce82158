// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package typo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUnknownKeysComeWithTheirPlace(t *testing.T) {
	name := filepath.Join(t.TempDir(), "config.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(name, []byte(text), 0o600)) }
	LookIn(name, name+".missing", t.TempDir())
	defer LookIn()
	write("# a comment\na:\n  - {b: 1, endpont: http://a}\n")
	require.Equal(t, " ("+name+":3)", Place("endpont"))
	write("a: {endpont: }\nb: {endpont: }\n")
	require.Equal(t, " ("+name+":1 or "+name+":2)", Place("endpont"))
	write("a: endpont\n")
	require.Empty(t, Place("endpont"), "a value is no key")
	write(strings.Repeat("- {endpont: }\n", maxPlaces+1))
	require.Empty(t, Place("endpont"), "too many to be of use")
	write("a: {\n")
	require.Empty(t, Place("endpont"))
}
