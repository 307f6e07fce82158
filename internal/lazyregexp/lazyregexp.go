// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package lazyregexp compiles regular expressions at their first use: most processes never convert anything.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New compiles an expression when it is first used.
func New(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
