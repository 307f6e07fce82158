// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package typo

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMeant(t *testing.T) {
	known := []string{"endpoint", "timeout"}
	require.Equal(t, ": did you mean `endpoint`?", Meant("endpont", known))
	require.Empty(t, Meant("plumage", known))
	require.Empty(t, Meant("endpont", nil))
}

func TestChanges(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"regex", "regex", 0}, {"regxe", "regex", 1}, {"job", "jobs", 1}, {"abc", "xyz", 3}} {
		require.Equal(t, test.want, changes(test.a, test.b), "%s %s", test.a, test.b)
		require.Equal(t, test.want, changes(test.b, test.a))
	}
}
