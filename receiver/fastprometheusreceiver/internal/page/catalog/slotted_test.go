// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	promconfig "github.com/prometheus/prometheus/config"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/expo"
)

// ownLabels are the labels for which targets have values of their own in the tests below.
var ownLabels = []string{"pod", "node"}

// ownTarget returns a target with values of its own.
func ownTarget(c *Catalog, values ...string) *Identity {
	for _, name := range ownLabels {
		c.Own.nth(name, 0)
	}
	return &Identity{Catalog: c, Own: values}
}

func entryOf(t *testing.T, series string) *expo.Entry {
	t.Helper()
	var (
		p expo.Parser
		e expo.Entry
	)
	_, err := p.Next([]byte(series+" 1\n"), &e)
	require.NoError(t, err)
	return &e
}

// A text with slots, however it is split, reads as the series of each target with its values, and is found again.
func TestTextsWithSlotsInPieces(t *testing.T) {
	for _, most := range []int{0, MostWhole} {
		t.Run(fmt.Sprint("whole up to ", most), func(t *testing.T) {
			r := NewRules(Config{Scrape: &promconfig.ScrapeConfig{MetricNameValidationScheme: model.UTF8Validation}})
			r.MostWhole = most
			var c Catalog
			c.Init(&r, nil, 0)
			one, other := ownTarget(&c, "p1", "n1"), ownTarget(&c, "another pod", "n2")
			for _, series := range []string{
				`a{pod="p1"}`,
				`a{pod="p1",x="1",y="2",z="3",node="n1"}`,
				`a{x="1",y="2",pod="p1"}`,
				`a{x="1",y="2",z="3",pod="p1",node="n1",v="4"}`,
				`a{x="1",y="2",z="3",pod="p1",le="4"}`,
				`a{x="1",y="2",z="3",w="p1",v="n1",u="pod",pod="p1"}`,
				`a{node="n1",y="2",z="3",w="` + strings.Repeat("long", 100) + `",pod="p1",le="+Inf"}`,
				`a{node="n1",y="2",z="3",w="` + strings.Repeat("long", 100) + `",pod="p1",le="0.1", }`,
				`a {pod="p1"}`, // the head of texts about the name is another one
				`a {x="1",y="2",z="3",pod="p1"}`,
				`{"a b","pod"="p1","x"="1"}`,
				`{"a b","x"="1","y"="2","z"="3","pod"="p1","le"="1"}`,
			} {
				at := strings.NewReplacer(`pod="p1"`, `pod="another pod"`, `pod"="p1"`, `pod"="another pod"`, `node="n1"`, `node="n2"`).Replace(series)
				l, err := c.Series(one, entryOf(t, series), PlainSetting, false)
				require.NoError(t, err, series)
				require.True(t, l.IsSlotted(), series)
				require.Equal(t, series, string(l.AppendSpelled(nil, one.Own)))
				require.Equal(t, at, string(l.AppendSpelled(nil, other.Own)))
				again, err := c.Series(other, entryOf(t, at), PlainSetting, true)
				require.NoError(t, err)
				require.Same(t, l, again, series)

				template := c.Own.template.write(&c.Own.slots, one, entryOf(t, series))
				require.Equal(t, maphash.Bytes(seed, template), l.hash())
				require.True(t, l.isOf(template))
				require.False(t, l.isOf(template[:len(template)-1]))
				require.False(t, l.isOf(append(slices.Clone(template), ' ')))
				for i := range template {
					spoiled := slices.Clone(template)
					spoiled[i]++
					require.False(t, l.isOf(spoiled), "%q", spoiled)
				}

				require.Equal(t, len(series), l.Match([]byte(series+" 1"), one.Own))
				require.Equal(t, len(at), l.Match([]byte(at+" 1"), other.Own))
				require.Zero(t, l.Match([]byte(series), other.Own))
				require.Zero(t, l.Match([]byte(series), nil))
				for i := range series {
					require.Zero(t, l.Match([]byte(series[:i]), one.Own))
					require.Zero(t, l.Match([]byte(series[:i]+"~"+series[i+1:]), one.Own))
				}
				require.False(t, l.Is([]byte(series)), "it is no text without slots")
				require.NotEmpty(t, c.About(l))
			}
		})
	}
}

// Lines about the same thing share its text, even if it contains the target's own values.
func TestTextsWithSlotsShareTheirPieces(t *testing.T) {
	r := NewRules(Config{Scrape: &promconfig.ScrapeConfig{MetricNameValidationScheme: model.UTF8Validation}})
	var c Catalog
	c.Init(&r, nil, 0)
	target := ownTarget(&c, "p1", "n1")
	about := `x="1",y="` + strings.Repeat("long", 100) + `",pod="p1",z="3"`
	line := func(series string) *Line {
		l, err := c.Series(target, entryOf(t, series), histogramSetting, false)
		require.NoError(t, err)
		return l
	}
	one := line(`one_bucket{` + about + `,le="1"}`)
	for _, series := range []string{`one_bucket{` + about + `,le="2"}`, `other_bucket{` + about + `,le="1"}`} {
		require.Same(t, one.body, line(series).body)
	}
	require.Same(t, one.tail, line(`other_bucket{`+about+`,le="1"}`).tail)
	require.Less(t, one.bytes(), int64(2*LineBytes))
}

// The values of a point are found in a text with slots, however it is split, for each target.
func TestPointsOfTextsWithSlotsHaveTheirValues(t *testing.T) {
	for _, most := range []int{0, MostWhole} {
		for _, isWhole := range []bool{false, true} {
			r := NewRules(Config{Scrape: &promconfig.ScrapeConfig{MetricNameValidationScheme: model.UTF8Validation}})
			r.MostWhole = most
			var c Catalog
			c.Init(&r, nil, 0)
			target := ownTarget(&c, "p1", "n1")
			for i := range 5 {
				want := []string{fmt.Sprint("x", i), strings.Repeat("y", 50*i+1), "n1", fmt.Sprint("zz", i), "p1", fmt.Sprint("w", i)}
				series := fmt.Sprintf(`m{a=%q,b=%q,node=%q,o=%q,pod=%q,z=%q}`, want[0], want[1], want[2], want[3], want[4], want[5])
				l, err := c.Series(target, entryOf(t, series), PlainSetting, isWhole)
				require.NoError(t, err)
				if i < 2 { // its shape is not known yet
					continue
				}
				require.True(t, l.IsSlotted())
				at := 0
				for k := range want {
					value, next := l.Point.Value(k, at, target)
					require.Equal(t, want[k], value)
					at = next
				}
				if l.isShared() {
					continue
				}
				held := c.Held()
				require.True(t, c.discard(l))
				require.Equal(t, held-l.bytes(), c.Held())
			}
		}
	}
}
