// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReferenceIsWhatTheSourcesSay(t *testing.T) {
	pages, err := reference()
	require.NoError(t, err)
	for name, want := range pages {
		got, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		require.NoError(t, err, "run `make generate`")
		assert.Equal(t, want, string(got), "%s is not what the sources say: run `make generate`", name)
	}
}

func TestEveryKeyIsDescribed(t *testing.T) {
	components := all()
	for i := range components {
		d := &components[i]
		if d.title() == dropIn {
			continue // it has contrib's keys
		}
		r := &reader{comments: &comments{dir: "."}}
		n := r.component(d.factory)
		require.NoError(t, r.comments.err)
		require.NotEmpty(t, n.keys, d.title())
		allDescribed(t, d.title(), n)
	}
}

func allDescribed(t *testing.T, path string, n *node) {
	t.Helper()
	for i := range n.keys {
		k := &n.keys[i]
		if !k.inlined {
			assert.NotEmpty(t, k.about, "%s::%s: the field in Config needs a comment", path, k.name)
		}
		of := k.of
		for of.elem != nil {
			of = of.elem
		}
		if of.shared == "" {
			allDescribed(t, path+"::"+k.name, of)
		}
	}
}

type sample struct {
	Max         int    `mapstructure:"max"`
	MaxSeries   int    `mapstructure:"max_series"`
	MinSeries   int    `mapstructure:"min_series"`
	Compression string `mapstructure:"compression"`
}

func TestCommentsSpeakOfKeys(t *testing.T) {
	f := func(subject, comment, want string) {
		t.Helper()
		assert.Equal(t, want, inWordsOfKeys(comment, subject, reflect.TypeFor[sample]()))
	}
	f("Max", "Max is the most there can be.", "The most there can be.")
	f("Max", "Max bounds what MinSeries does not.", "Bounds what `min_series` does not.")
	f("MinSeries", "MinSeries and MaxSeries bound it.", "`min_series` and `max_series` bound it.")
	f("Compression", "Compression is auto, zstd or snappy.", "auto, zstd or snappy.")
	f("Max", "Something else.", "Something else.")
}

func TestNamesAreMentionedWhole(t *testing.T) {
	assert.True(t, mentions("Size, OnFull and MaxAge are in place of the exporter's.", "OnFull"))
	assert.True(t, mentions("Min and Max bound it", "Max"))
	assert.False(t, mentions("MaxAge bounds it", "Max"))
}

func TestDefaultsAreTakenFromTheComponent(t *testing.T) {
	f := func(about, value, wantAbout, wantValue string) {
		t.Helper()
		gotAbout, gotValue := defaultOf(&key{about: about, of: &node{value: value}})
		assert.Equal(t, wantAbout, gotAbout)
		assert.Equal(t, wantValue, gotValue)
	}
	f("How long. Default 10s.", "10s", "How long.", "`10s`")
	f("How many. Default 2,000,000.", "2000000", "How many.", "`2000000`")
	f("How large. Default 4 MiB.", "4194304", "How large.", "4 MiB")
	f("How large. Default 4 MiB.", "1", "How large. Default 4 MiB.", "`1`") // the comment is wrong, so it is shown
	f("How long. Default 0: for ever.", "0s", "How long. Default 0: for ever.", "`0s`")
	f("Which. Default none.", "", "Which.", "none")
	f("Which.", "", "Which.", "")
}
