// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package vmagent

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/convert/document"
)

// fits reports whether a value matches a pattern of an attribute, as the documentation of the cardinality processor
// says.
func fits(pattern, value string, there bool) bool {
	text, not := strings.CutPrefix(pattern, "not:")
	switch {
	case pattern == "":
		return true
	case !there:
		return not
	}
	expr, ok := strings.CutPrefix(text, "regex:")
	if !ok {
		expr = strings.ReplaceAll(regexp.QuoteMeta(text), `\*`, ".*")
	}
	return regexp.MustCompile("^(?s:"+expr+")$").MatchString(value) != not
}

// A converted pattern matches the same as the selector, with any label, and without one.
func TestPatternsMatchWhatSelectorsDo(t *testing.T) {
	t.Parallel()
	exprs := []string{
		"", "a", "b", "ab", "a.b", "a|b", ".*", ".+", "a.*", "a.+", ".*b", ".+b", "a.*b", "a.+b", "(a|b)+", "a?", "a|", "[ab]", `a\.b`, `a\*b`, "not:a", "regex:a", `\$`, "(?i)AB", "a\nb", "not:.*",
	}
	values := []string{"", "a", "b", "ab", "a.b", "axb", "a*b", "ba", "aa", "not:a", "regex:a", "$", "a\nb", "AB", "not:"}
	said := 0
	for _, expr := range exprs {
		for _, op := range []string{"=", "!=", "=~", "!~"} {
			if strings.HasSuffix(op, "=") && strings.ContainsAny(expr, `\`) {
				continue // they would be texts of two characters
			}
			sides, ok := parseSelector(fmt.Sprintf("{l%s%q}", op, expr))
			require.True(t, ok)
			pattern, ok := patternOf(sides[0][0])
			if !ok {
				continue
			}
			said++
			for _, value := range values {
				want := vmMatch{"l", op, expr}.holds(map[string]string{"l": value})
				if strings.HasSuffix(op, "~") { // a dot is any character, in vmagent and in Prometheus
					want = vmMatch{"l", op, "(?s:" + expr + ")"}.holds(map[string]string{"l": value})
				}
				assert.Equal(t, want, fits(pattern, value, value != ""), "l%s%q is %q, of %q", op, expr, pattern, value)
			}
		}
	}
	assert.Greater(t, said, 80)
}

func TestPatternsOfNames(t *testing.T) {
	t.Parallel()
	for selector, want := range map[string]string{
		`up`:                                 "up",
		`{__name__!="up"}`:                   "not:up",
		`{__name__=~"http_.*"}`:              "http_*",
		`{__name__=~"http_.+"}`:              "regex:http_.+",
		`{__name__=~"a|b"}`:                  "regex:a|b",
		`queue_count`:                        "regex:queue(_count)?",
		`{__name__=~"(http|grpc)_bucket"}`:   "regex:(http|grpc)(_bucket)?",
		`{__name__=~"http_.+_bucket"}`:       "", // anything with that prefix
		`{__name__=~"(http_.*|a)_bucket"}`:   "",
		`{__name__=~"a_(sum|count)"}`:        "", // a part in the middle of the expression
		`{__name__=~"a_bucket_.*"}`:          "a_bucket_*",
		`{__name__=~"a_sum.*"}`:              "",
		`{__name__!="a_sum"}`:                "", // other parts of the histogram are selected
		`{__name__=~"a_bucket|b_count"}`:     "",
		`{__name__=~".*"}`:                   "any",
		`{__name__=~"a_bucket_total"}`:       "a_bucket_total",
		`{__name__="a_bucket_total"}`:        "a_bucket_total",
		`{__name__=~"a_counter_[a-z]+_sec"}`: "regex:a_counter_[a-z]+_sec",
	} {
		sides, ok := parseSelector(selector)
		require.True(t, ok, selector)
		pattern, ok := namePatternOf(sides[0][0])
		assert.Equal(t, want != "", ok, "%s is %q", selector, pattern)
		if ok && want != "any" {
			assert.Equal(t, want, pattern, selector)
		}
	}
}

func TestSelectorsOfNamesAreOneRule(t *testing.T) {
	t.Parallel()
	name := func(pattern string) document.Table { return document.NewTable().Set("metric", pattern) }
	more := name("b").Set("attributes", document.NewTable().Set("c", "d"))
	metrics := func(all ...document.Table) []string {
		var names []string
		for _, match := range oneOfNames(all) {
			metric := ""
			if of := document.Find(match.Node, "metric"); of != nil {
				metric = of.Value
			}
			names = append(names, metric)
		}
		return names
	}
	assert.Equal(t, []string{"a"}, metrics(name("a")))
	assert.Equal(t, []string{"a"}, metrics(name("a"), name("a")))
	assert.Equal(t, []string{"regex:a|b.*|c|d"}, metrics(name("a"), name("b*"), name("regex:c|d"), name("a")))
	assert.Equal(t, []string{`regex:a\.b|c`}, metrics(name("a.b"), name("c")))
	assert.Equal(t, []string{"a", "not:b"}, metrics(name("a"), name("not:b")))
	assert.Equal(t, []string{"${env:B}", "a"}, metrics(name("${env:B}"), name("a")))
	assert.Equal(t, []string{"b", "regex:a|c"}, metrics(more, name("a"), name("c")))
	assert.Equal(t, []string{"a", ""}, metrics(name("a"), document.NewTable()))
}
