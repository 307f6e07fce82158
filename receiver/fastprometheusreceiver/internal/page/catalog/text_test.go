// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"hash/maphash"
	"testing"

	promconfig "github.com/prometheus/prometheus/config"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/expo"
)

func TestTextsShareTheirPieces(t *testing.T) {
	r := NewRules(Config{Scrape: &promconfig.ScrapeConfig{}})
	r.MostWhole = 0
	var c Catalog
	c.Init(&r, nil, 0)
	cut := func(series string) text {
		var (
			p expo.Parser
			e expo.Entry
		)
		_, err := p.Next([]byte(series+" 1\n"), &e)
		require.NoError(t, err)
		return c.text(c.name(string(e.Metric()), string(e.Metric()), nil), &e)
	}
	pieces := func(x text) (all []string) {
		for _, p := range x.pieces {
			all = append(all, p)
		}
		return all
	}
	for _, k := range []struct {
		series string
		want   []string
	}{
		{`a`, []string{`a`}},
		{`a{}`, []string{`a{}`}},
		{`a{b="c"}`, []string{`a{`, `b="c"}`, ``}},
		{`a{b="c",d="e",f="g"}`, []string{`a{`, `b="c",d="e",f="g"}`, ``}},
		{`a{b="c", d="e\"}" ,f="g",h="",}`, []string{`a{`, `b="c", d="e\"}" ,f="g"`, `,h="",}`}},
		{`a {b="c"}`, []string{`a {b="c"}`}}, // of the texts about a name, most have the same head
		{`{"a b",b="c","d e"="f"}`, []string{`{"a b",`, `b="c","d e"="f"}`, ``}},
		{`a{a="1",b="2",c="3",d="4",e="5",f="6",g="7"}`, []string{`a{`, `a="1",b="2",c="3"`, `,d="4",e="5",f="6",g="7"}`}},
	} {
		series, x := k.series, cut(k.series)
		require.Equal(t, k.want, pieces(x))
		require.Equal(t, series, x.String())
		require.Equal(t, len(series), x.len())
		require.Equal(t, maphash.String(seed, series), x.hash())
		require.True(t, x.Is([]byte(series)))
		require.Equal(t, len(series), x.Match([]byte(series+" 1"), nil))
		for i := range series {
			require.False(t, x.Is([]byte(series[:i])), "a part of it")
			require.Zero(t, x.Match([]byte(series[:i]), nil))
			require.False(t, x.Is([]byte(series[:i]+"~"+series[i+1:])), "another")
		}
		for i, p := range x.pieces {
			require.Equal(t, p, x.piece(i))
		}
	}
	one, other := cut(`x{a="1",b="2",c="3"}`), cut(`y{a="1",b="2",c="3"}`)
	require.Same(t, one.body, other.body)
	x := cut(`x{a="one",b="2",c="3",d="four"}`)
	for value, want := range map[string][2]int{"x": {0, 0}, "one": {1, 3}, "four": {2, 4}, "5": {2, -1}} {
		piece, at := x.find(value)
		require.Equal(t, want, [2]int{piece, at}, value)
	}
}
