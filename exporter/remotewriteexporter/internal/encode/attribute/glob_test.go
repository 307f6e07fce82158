// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package attribute

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestGlob(t *testing.T) {
	f := func(pattern, name string, want bool) {
		t.Helper()
		assert.Equal(t, want, glob(pattern, name))
	}
	f("", "", true)
	f("", "a", false)
	f("*", "", true)
	f("*", "k8s.io/x", true)
	f("a*b*c", "a-b-b-c", true)
	f("a*b*c", "a-c", false)
	f("a?c", "abc", true)
	f("a?c", "ac", false)
	f("a**", "a", true)
	f("abc", "abcd", false)
}
