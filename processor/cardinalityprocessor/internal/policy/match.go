// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/plain"
)

// Glob is a pattern in which `*` stands for any run of characters.
type Glob string

// Match reports whether the text matches.
func (g Glob) Match(s string) bool {
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

// Prefixes of a pattern that is not a glob, or that must not match.
const (
	notPrefix   = "not:"
	regexPrefix = "regex:"
)

// pattern is a glob or a regular expression, possibly negated. The zero pattern matches everything.
type pattern struct {
	text string // as it was written, "" for none
	not  bool
	glob Glob
	expr *regexp.Regexp // used instead of the glob
}

// newPattern compiles a validated pattern. An invalid one matches nothing.
func newPattern(text string) pattern {
	p, _ := parsePattern(text)
	return p
}

func parsePattern(text string) (p pattern, err error) {
	p.text = text
	text, p.not = strings.CutPrefix(text, notPrefix)
	expr, ok := strings.CutPrefix(text, regexPrefix)
	if !ok {
		p.glob = Glob(text)
		return p, nil
	}
	if p.expr, err = regexp.Compile("^(?s:" + expr + ")$"); err != nil {
		if _, own := regexp.Compile(expr); own != nil { // quoted as the user wrote it
			err = own
		}
		p.expr, p.not = regexp.MustCompile(`[^\s\S]`), false
	}
	return p, err
}

func (p *pattern) Fits(s string) bool {
	switch {
	case p.text == "":
		return true
	case p.expr != nil:
		return p.expr.MatchString(s) != p.not
	default:
		return p.glob.Match(s) != p.not
	}
}

// wanted is an attribute with the pattern for its value.
type wanted struct {
	key     string
	pattern pattern
}

func newWanted(from map[string]string) []wanted {
	var out []wanted
	for _, key := range slices.Sorted(maps.Keys(from)) {
		w := wanted{key: key, pattern: newPattern(from[key])}
		if from[key] == "" { // an empty value, rather than any
			w.pattern.text = `""`
		}
		out = append(out, w)
	}
	return out
}

// fits reports whether the value matches. A missing attribute matches negated patterns.
func (w *wanted) fits(value pcommon.Value, there bool) bool {
	switch {
	case !there:
		return w.pattern.not
	case w.pattern.expr == nil && w.pattern.glob == "*":
		return !w.pattern.not
	default:
		return w.pattern.Fits(plain.Text(value))
	}
}

// Matcher is a compiled MatchConfig.
type Matcher struct {
	Metric, scope, tenant pattern

	resource   []wanted
	Attributes []wanted
}

// NewMatcher compiles a validated MatchConfig.
func NewMatcher(cfg MatchConfig) Matcher {
	return Matcher{
		Metric: newPattern(cfg.Metric), scope: newPattern(cfg.Scope), tenant: newPattern(cfg.Tenant),
		resource: newWanted(cfg.Resource), Attributes: newWanted(cfg.Attributes),
	}
}

// MatchMetric checks what all points of a metric have in common.
func (m *Matcher) MatchMetric(of *Owner) bool {
	if !m.Metric.Fits(of.Metric) || !m.scope.Fits(of.Scope) || !m.tenant.Fits(of.Tenant) {
		return false
	}
	for i := range m.resource {
		if !m.resource[i].fits(of.Resource.Get(m.resource[i].key)) {
			return false
		}
	}
	return true
}

// MatchPoint checks the rest: attributes of the point, or else of its resource.
func (m *Matcher) MatchPoint(of *Owner, attributes pcommon.Map) bool {
	for i := range m.Attributes {
		w := &m.Attributes[i]
		value, there := attributes.Get(w.key)
		if !there {
			value, there = of.Resource.Get(w.key)
		}
		if !w.fits(value, there) {
			return false
		}
	}
	return true
}

// identity identifies a match. It is what fmt prints of the first three fields, as when there were no others.
func (cfg *MatchConfig) identity() string {
	text := fmt.Sprintf("{%s %v %v {}}", cfg.Metric, cfg.Resource, cfg.Attributes) // fmt sorts maps
	if cfg.Scope != "" || cfg.Tenant != "" {
		text += fmt.Sprintf("%q %q", cfg.Scope, cfg.Tenant)
	}
	return text
}

// validate checks the patterns; name is the key of the match.
func (cfg *MatchConfig) validate(name string, c *Config) error {
	var errs []error
	check := func(key, text string) {
		if _, err := parsePattern(text); err != nil {
			errs = append(errs, fmt.Errorf("`%s::%s` must be a regular expression after %q: %w", name, key, regexPrefix, err))
		}
		if strings.HasPrefix(text, notPrefix+notPrefix) || strings.HasPrefix(text, regexPrefix+notPrefix) {
			errs = append(errs, fmt.Errorf("`%s::%s` must begin with %q once, and before %q, got %q", name, key, notPrefix, regexPrefix, text))
		}
	}
	check("metric", cfg.Metric)
	check("scope", cfg.Scope)
	check("tenant", cfg.Tenant)
	for _, key := range slices.Sorted(maps.Keys(cfg.Resource)) {
		check("resource::"+key, cfg.Resource[key])
	}
	for _, key := range slices.Sorted(maps.Keys(cfg.Attributes)) {
		check("attributes::"+key, cfg.Attributes[key])
	}
	if cfg.Tenant != "" && len(c.Tenant.From) == 0 {
		errs = append(errs, fmt.Errorf("`%s::tenant` needs `tenant::from`, which says where tenants are found", name))
	}
	return errors.Join(errs...)
}

// empty reports whether everything matches.
func (cfg *MatchConfig) empty() bool {
	return cfg.Metric == "" && cfg.Scope == "" && cfg.Tenant == "" && len(cfg.Resource) == 0 && len(cfg.Attributes) == 0
}

// String is the configuration in one line.
func (m *Matcher) String() string {
	parts := []string{cmp.Or(m.Metric.text, "*")}
	for key, p := range map[string]*pattern{"scope": &m.scope, byTenant: &m.tenant} {
		if p.text != "" {
			parts = append(parts, key+"="+p.text)
		}
	}
	slices.Sort(parts[1:])
	for _, w := range slices.Concat(m.resource, m.Attributes) {
		parts = append(parts, w.key+"="+w.pattern.text)
	}
	return strings.Join(parts, " ")
}
