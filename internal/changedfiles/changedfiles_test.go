// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package changedfiles_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/changedfiles"
)

func TestAChangeIsToldOnce(t *testing.T) {
	one, two := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "two")
	write := func(name, text string) { require.NoError(t, os.WriteFile(name, []byte(text), 0o600)) }
	write(one, "1")
	f := changedfiles.New("", one, two)
	require.False(t, f.None())
	require.False(t, f.Changed())
	for _, change := range []func(){
		func() { write(one, "22") },
		func() { write(two, "1") }, // which was not there
		func() { require.NoError(t, os.Remove(one)) },
	} {
		change()
		require.True(t, f.Changed())
		require.False(t, f.Changed())
	}
	require.True(t, changedfiles.New("", "").None())
}
