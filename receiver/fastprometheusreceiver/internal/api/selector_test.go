// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var selectors = []string{
	`up`, `a:b`, `{job="node"}`, `up{job="node"}`, ` up { job = "node" , } `, `{job='node', instance=~"a.*|b"}`,
	"{job=`raw\\n`}", `{"dotted.label"="x"}`, `{"dotted.metric"}`, `{"dotted.metric", a!="b"}`, `{a!~"b.+", c="d"}`,
	`{a="\"\\\n\x41\u00e9\377"}`, `{a='it\'s'}`,
	``, `{`, `}`, `{}`, `{a}`, `{a=}`, `{a="}`, `{a="b"`, `{a="b",,}`, `{,}`, `{a="b"}x`, `{a=~"("}`, `{a=""}`, `{a=~".*"}`,
	`{a:b="c"}`, `{1a="b"}`, `1`, `up{`, "{a=\"b\nc\"}", `{a=="b"}`, `{a="\q"}`, `{a='b"}`,
}

// Selectors have the same meaning as in Prometheus, or both reject them.
func TestSelectors(t *testing.T) {
	for _, text := range selectors {
		compare(t, text)
	}
}

func compare(t *testing.T, text string) {
	t.Helper()
	want, wantErr := parser.NewParser(parser.Options{}).ParseMetricSelector(text)
	got, err := parseSelector(text)
	if wantErr != nil {
		assert.Error(t, err, text)
		return
	}
	require.NoError(t, err, text)
	var a, b []string
	for _, m := range want {
		a = append(a, m.String())
	}
	for _, m := range got {
		b = append(b, m.String())
	}
	assert.ElementsMatch(t, a, b, text)
}

func FuzzSelector(f *testing.F) {
	for _, text := range selectors {
		f.Add(text)
	}
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = parseSelector(text) // returns for any input
	})
}
