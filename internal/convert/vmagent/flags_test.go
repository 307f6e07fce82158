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

// A flag has its line in a command that spans several lines.
func TestWordsKnowTheirLines(t *testing.T) {
	out, lines := words("a -b='x\ny' \n\n  -c d\n-e")
	assert.Equal(t, []string{"a", "-b=x\ny", "-c", "d", "-e"}, out)
	assert.Equal(t, []int{0, 0, 3, 3, 4}, lines)
}

// Between double quotes a backslash is literal unless it precedes a character that it can escape; outside of quotes it
// is never literal.
func TestWordsAreThoseOfAShell(t *testing.T) {
	f := func(text string, want ...string) {
		t.Helper()
		out, _ := words(text)
		assert.Equal(t, want, out)
	}
	f(`-p="a\d\\b\"c\$e"`, `-p=a\d\b"c$e`)
	f(`-p='a\d'`, `-p=a\d`)
	f(`-p=a\ b\d`, `-p=a bd`)
	f("-a \\\n  -b", "-a", "-b")
	f("-a=1\\\n2", "-a=12")
}

// Variables of a shell are not expanded in single quotes, or after a backslash.
func TestVariablesOfAShell(t *testing.T) {
	for text, want := range map[string]string{
		`-a=$B -c="${D}x"`:              `-a=%{B} -c="%{D}x"`,
		`-a='p$B' -c="it's $D"`:         `-a='p$B' -c="it's %{D}"`,
		`-a=p\$B\\$C \`:                 `-a=p\$B\\%{C} \`,
		`-a=${B:-http://b} '$C`:         `-a=%{B:-http://b} '%{C}`,
		"-a=$B \\\n -c='$D' \\\n -e=$F": "-a=%{B} \\\n -c='$D' \\\n -e=%{F}",
	} {
		assert.Equal(t, want, shellValue(text), text)
	}
	assert.Equal(t, []string{"-a", "b"}, untilOperator([]string{"-a", "b", "2>&1", "|", "tee", "-a"}))
}

func TestSizesBeyondAllBounds(t *testing.T) {
	for _, text := range []string{"1e30", "NaN", "-Inf", "10000000TiB"} {
		_, err := bytesOf(text)
		assert.ErrorContains(t, err, "too large", text)
	}
}
