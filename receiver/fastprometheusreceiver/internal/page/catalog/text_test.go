// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"hash/maphash"
	"testing"

	"github.com/prometheus/common/model"
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
		return c.text(c.metrics.name(string(e.Metric()), string(e.Metric()), nil), &e, false)
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
		{`a {b="c"}`, []string{`a {b="c"}`}}, // most texts about a name have the same head
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

// A short-lived series has its own text apart from the head, and shares the part that says what it is about.
func TestTextsAloneShareTheirHeads(t *testing.T) {
	r := NewRules(Config{Scrape: &promconfig.ScrapeConfig{}})
	var c Catalog
	c.Init(&r, nil, 0)
	for _, k := range []struct {
		series string
		want   []string
		about  string
	}{
		{`a`, []string{`a`}, `a`},
		{`a{}`, []string{`a{}`}, `a{`},
		{`a{b="c"}`, []string{`a{`, `b="c"}`, ``}, `b="c"`},
		{`a{a="1",b="2",c="3",d="4"}`, []string{`a{`, `a="1",b="2",c="3",d="4"}`, ``}, `a="1",b="2",c="3"`},
		{`a {b="c"}`, []string{`a {b="c"}`}, `b="c"`},
		{`{"a b",b="c","d e"="f"}`, []string{`{"a b",`, `b="c","d e"="f"}`, ``}, `b="c","d e"="f"`},
	} {
		var (
			p expo.Parser
			e expo.Entry
		)
		_, err := p.Next([]byte(k.series+" 1\n"), &e)
		require.NoError(t, err)
		n := c.metrics.name(string(e.Metric()), string(e.Metric()), nil)
		body, tail := c.pieces.alone(n, &e)
		l := &Line{text: text{Name: n, body: body, tail: tail}}
		var pieces []string
		for _, piece := range l.pieces {
			pieces = append(pieces, piece)
		}
		require.Equal(t, k.want, pieces)
		require.Equal(t, k.series, l.String())
		require.Equal(t, maphash.String(seed, k.series), l.hash())
		require.True(t, l.Is([]byte(k.series)))
		require.Equal(t, len(k.series), l.Match([]byte(k.series+" 1"), nil))
		require.False(t, l.Is([]byte(k.series+"~")))
		require.Equal(t, k.about, c.About(l), k.series)
		if k.series != "a" {
			require.Equal(t, LineBytes+PieceBytes+int64(len(l.first())), l.bytes())
		}
	}
}

// The values of a point are found in the text of its line.
func TestPointsOfTextsAloneHaveTheirValues(t *testing.T) {
	r := NewRules(Config{Scrape: &promconfig.ScrapeConfig{MetricNameValidationScheme: model.UTF8Validation}})
	var c Catalog
	c.Init(&r, nil, 0)
	target := &Identity{Catalog: &c}
	for i := range 5 {
		var (
			p expo.Parser
			e expo.Entry
		)
		want := []string{fmt.Sprint("x", i), "y", fmt.Sprint("zz", i), fmt.Sprint("w", i), "v"}
		series := fmt.Sprintf(`m{a=%q,b=%q,c=%q,d=%q,e=%q}`, want[0], want[1], want[2], want[3], want[4])
		_, err := p.Next([]byte(series+" 1\n"), &e)
		require.NoError(t, err)
		l, err := c.Series(target, &e, PlainSetting, true)
		require.NoError(t, err)
		require.Equal(t, series, l.String())
		if i < 2 { // its shape is not known yet
			continue
		}
		require.True(t, l.isAlone())
		at := 0
		for k := range want {
			value, next := l.Point.Value(k, at, target)
			require.Equal(t, want[k], value)
			at = next
		}
		if i == 2 { // what was found is no longer used by one page only
			require.Same(t, l, c.Find(target, []byte(series), AnySetting))
			continue
		}
		held := c.Held()
		require.True(t, c.discard(l))
		require.Equal(t, held-l.bytes(), c.Held())
		require.Nil(t, c.Find(target, []byte(series), AnySetting))
	}
}
