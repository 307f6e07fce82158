// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/names"
)

func rule(action relabel.Action, change func(*relabel.Config)) relabel.Config {
	c := relabel.DefaultRelabelConfig
	c.Action = action
	change(&c)
	return c
}

func TestWhatRulesMayDependOn(t *testing.T) {
	type says struct{ read, set, remove bool }
	f := func(c relabel.Config, name string, want says) {
		t.Helper()
		r, err := New([]relabel.Config{c}, true)
		require.NoError(t, err)
		require.Equal(t, want, says{r.Read(name), r.Set(name), r.Remove(name)})
	}
	replace := rule(relabel.Replace, func(c *relabel.Config) {
		c.SourceLabels, c.TargetLabel = model.LabelNames{"a"}, "to_${1}_x"
	})
	f(replace, "a", says{read: true})
	f(replace, "b", says{})
	f(replace, "to_b_x", says{set: true})
	f(replace, "to_b_y", says{})
	drop := rule(relabel.LabelDrop, func(c *relabel.Config) { c.Regex = relabel.MustNewRegexp("a.*") })
	f(drop, "ab", says{remove: true})
	f(drop, "b", says{})
	keep := rule(relabel.LabelKeep, func(c *relabel.Config) { c.Regex = relabel.MustNewRegexp("a.*") })
	f(keep, "ab", says{})
	f(keep, "b", says{remove: true})
	lower := rule(relabel.Lowercase, func(c *relabel.Config) { c.SourceLabels, c.TargetLabel = model.LabelNames{"a"}, "b" })
	f(lower, "a", says{read: true})
	f(lower, "b", says{set: true})
	mapped := rule(relabel.LabelMap, func(c *relabel.Config) { c.Regex, c.Replacement = relabel.MustNewRegexp("a(.*)"), "b$1" })
	f(mapped, "ax", says{read: true})
	f(mapped, "bx", says{set: true})
	equal := rule(relabel.KeepEqual, func(c *relabel.Config) { c.SourceLabels, c.TargetLabel = model.LabelNames{"a"}, "b" })
	f(equal, "a", says{read: true})
	f(equal, "b", says{read: true})
}

func TestRulesAreApplied(t *testing.T) {
	r, err := New([]relabel.Config{
		rule(relabel.Drop, func(c *relabel.Config) {
			c.SourceLabels, c.Regex = model.LabelNames{"a"}, relabel.MustNewRegexp("gone")
		}),
		rule(relabel.LabelDrop, func(c *relabel.Config) { c.Regex = relabel.MustNewRegexp("b|nameless") }),
	}, true)
	require.NoError(t, err)
	before, after, keep := r.Apply([]names.Label{{Name: "b", Value: "2"}, {Name: "a", Value: "1"}, {Name: names.NameLabel, Value: "m"}})
	require.True(t, keep)
	require.Equal(t, labels.FromStrings("__name__", "m", "a", "1", "b", "2"), before)
	require.Equal(t, labels.FromStrings("__name__", "m", "a", "1"), after)
	require.True(t, r.Valid(after))
	require.False(t, r.Valid(labels.FromStrings("a", "1")), "it has no name")
	require.False(t, r.Valid(labels.FromStrings("__name__", "m", "a.b", "1")), "the name of a label is escaped nowhere")
	_, _, keep = r.Apply([]names.Label{{Name: "a", Value: "gone"}})
	require.False(t, keep)
}

func TestRulesThatCannotBe(t *testing.T) {
	none, err := New(nil, true)
	require.NoError(t, err)
	require.Nil(t, none)
	_, err = New([]relabel.Config{rule(relabel.LabelDrop, func(*relabel.Config) {}), rule(relabel.Replace, func(c *relabel.Config) { c.TargetLabel = "" })}, true)
	require.ErrorContains(t, err, "cannot use rule 1")
}
