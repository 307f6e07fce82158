// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package promconfig

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDollarsOfALabel(t *testing.T) {
	f := func(prometheus, want string) {
		t.Helper()
		assert.Equal(t, want, environment(strings.ReplaceAll(prometheus, "$", "$$")))
	}
	f("$A-${B}", "${env:A}-${env:B}")
	f("5 $ and 100$", "5 $$ and 100$$")
	f("$$A", "$$A")
}

func TestBucketsWithoutTheirCount(t *testing.T) {
	for regex, want := range map[string][]string{
		"a_bucket": {"a_bucket"}, "(a_bucket|b_total)": {"a_bucket"}, "a_bucket|a_count": nil, ".+_bucket": {".+_bucket"},
		"a_(bucket|count)": nil, "a_.*": nil, "a_bucket(": nil, "": nil,
	} {
		assert.Equal(t, want, loneBuckets(regex), regex)
	}
}
