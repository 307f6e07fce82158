// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/plain"
)

// glob is a pattern in which `*` stands for any run of characters.
type glob string

func (g glob) match(s string) bool {
	pattern := string(g)
	star := strings.IndexByte(pattern, '*')
	if star < 0 {
		return pattern == s
	}
	if !strings.HasPrefix(s, pattern[:star]) {
		return false
	}
	s, pattern = s[star:], pattern[star+1:]
	for {
		star = strings.IndexByte(pattern, '*')
		if star < 0 {
			return strings.HasSuffix(s, pattern)
		}
		// The first place where the piece fits is the best: it leaves most for the rest.
		at := strings.Index(s, pattern[:star])
		if at < 0 {
			return false
		}
		s, pattern = s[at+star:], pattern[star+1:]
	}
}

// matcher is a compiled MatchConfig.
type matcher struct {
	metric     glob // "" matches all
	resource   []wanted
	attributes []wanted
}

type wanted struct {
	key   string
	value glob
}

func newMatcher(cfg MatchConfig) matcher {
	return matcher{metric: glob(cfg.Metric), resource: newWanted(cfg.Resource), attributes: newWanted(cfg.Attributes)}
}

func newWanted(from map[string]string) []wanted {
	var out []wanted
	for _, key := range slices.Sorted(maps.Keys(from)) {
		out = append(out, wanted{key: key, value: glob(from[key])})
	}
	return out
}

// matchMetric looks at what all points of a metric have in common.
func (m *matcher) matchMetric(name string, resource pcommon.Map) bool {
	return (m.metric == "" || m.metric.match(name)) && matchAll(m.resource, resource)
}

// matchPoint looks at the rest.
func (m *matcher) matchPoint(attributes pcommon.Map) bool {
	return matchAll(m.attributes, attributes)
}

func matchAll(all []wanted, attributes pcommon.Map) bool {
	for _, w := range all {
		value, ok := attributes.Get(w.key)
		if !ok || w.value != "*" && !w.value.match(plain.Text(value)) {
			return false
		}
	}
	return true
}
