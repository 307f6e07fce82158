// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/repository"
)

// A new key must get values in the table of options, so that it is tested.
func TestNoKeyIsForgotten(t *testing.T) {
	for _, c := range Components {
		keys, err := Keys(repository.Root(t), c.Folder)
		require.NoError(t, err)
		for _, key := range keys {
			_, apart := c.Apart[key.Path]
			assert.True(t, apart || tried(c, keys, key), "%s %s has no values for the key `%s`: add them to options.go", c.Role, c.ID, key.Path)
		}
		for _, option := range c.Options {
			assert.True(t, slices.ContainsFunc(keys, func(k Key) bool { return covers(k, option.Key) || k.Squashed }),
				"%s %s has no key `%s`: remove it from options.go", c.Role, c.ID, option.Key)
			assert.NotEmpty(t, option.Values, option.Key)
		}
	}
}

// tried reports whether the table has values for a key, or for keys squashed into it.
func tried(c Component, keys []Key, key Key) bool {
	return slices.ContainsFunc(c.Options, func(o Option) bool {
		if !key.Squashed {
			return covers(key, o.Key)
		}
		own := slices.ContainsFunc(keys, func(k Key) bool { return !k.Squashed && covers(k, o.Key) })
		return !own && strings.HasPrefix(o.Key, strings.TrimSuffix(key.Path, "::"+each))
	})
}

func covers(key Key, option string) bool {
	return option == key.Path || strings.HasPrefix(option, key.Path+"::") && key.Path != ""
}

func TestKeysOfAPackage(t *testing.T) {
	keys, err := Keys(repository.Root(t), "processor/cardinalityprocessor")
	require.NoError(t, err)
	for _, want := range []string{"mode", "memory::max_series", "rules::*::adaptive::priority::by", "defaults::on_exceed", "tenant::from"} {
		assert.Contains(t, keys, Key{Path: want})
	}
	_, err = Keys(repository.Root(t), "docs")
	require.Error(t, err)
}

func TestSinglesHaveEveryValue(t *testing.T) {
	want, got := 0, 0
	for c := range Components {
		want += len(Components[c].all())
	}
	for _, run := range Singles() {
		got += len(run.Choices)
		seen := map[*Component]bool{}
		for _, c := range run.Choices {
			assert.False(t, seen[c.Component], "two options of one component in %v", run)
			seen[c.Component] = true
		}
	}
	require.Equal(t, want, got)
}

func TestRunsDependOnTheirSeedAlone(t *testing.T) {
	first, again := Random(7), Random(7)
	assert.Equal(t, first.String(), again.String())
	assert.NotEqual(t, first.String(), Random(8).String())
}

func TestTextsAreFilledIn(t *testing.T) {
	for seed := range uint64(200) {
		texts, err := Random(seed).Texts(map[string]string{
			"DIR": "d", "FAST": "f", "agent/HEALTH": "a", "gateway/HEALTH": "g", "WRITE": "w",
		})
		require.NoError(t, err)
		assert.Contains(t, texts[Agent], "endpoint: a\n")
		assert.Contains(t, texts[Gateway], "endpoint: g\n")
		assert.NotContains(t, texts[Agent], "$DIR")
	}
}
