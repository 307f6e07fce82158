// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package vmagent

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestArrayValues(t *testing.T) {
	for text, want := range map[string][]string{
		"":              {""},
		"a":             {"a"},
		"a,b":           {"a", "b"},
		",b":            {"", "b"},
		`"a,b",'c,d'`:   {"a,b", "c,d"},
		`{"a":"b,c"},d`: {`{"a":"b,c"}`, "d"},
		`[a,b],(c,d)`:   {"[a,b]", "(c,d)"},
		`'it\'s',b`:     {"it's", "b"},
	} {
		assert.Equal(t, want, arrayValues(text), text)
	}
}

// A flag is where it is in a command that goes on over several lines.
func TestWordsKnowTheirLines(t *testing.T) {
	out, lines := words("a -b='x\ny' \n\n  -c d\n-e")
	assert.Equal(t, []string{"a", "-b=x\ny", "-c", "d", "-e"}, out)
	assert.Equal(t, []int{0, 0, 3, 3, 4}, lines)
}
