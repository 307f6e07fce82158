// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTranscriptJoinsWhatWritesCutApart(t *testing.T) {
	tr := newTranscript()
	for _, part := range []string{"one\ntw", "o\n", "\nthr"} {
		fmt.Fprint(tr, part)
	}
	assert.Equal(t, []string{"one", "two", "", "thr"}, tr.lines())
	tr.cut()
	assert.Empty(t, tr.lines())
	fmt.Fprint(tr, "four\n")
	assert.Equal(t, []string{"four"}, tr.lines())
	assert.Equal(t, "one\ntwo\n\nthr\n--- started again ---\nfour\n", tr.String())
}

func TestTranscriptIsBounded(t *testing.T) {
	tr := newTranscript()
	fmt.Fprint(tr, "first\n")
	tr.cut()
	fmt.Fprint(tr, strings.Repeat("x", 3*maxTranscript/2))
	fmt.Fprint(tr, "\nlast\n")
	lines := tr.lines()
	assert.LessOrEqual(t, tr.size, maxTranscript)
	assert.Len(t, lines[0], maxLine, "a line without end is cut")
	assert.Equal(t, "last", lines[len(lines)-1])
	assert.Regexp(t, `^\(\d+ earlier lines dropped\)\nx`, tr.String())
}
