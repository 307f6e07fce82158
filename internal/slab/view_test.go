// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !purego

package slab

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

func TestAttributesAreSeenAsTheyAre(t *testing.T) {
	m := pcommon.NewMap()
	m.PutStr("text", "value")
	m.PutStr("", "")
	m.PutInt("integer", -7)
	m.PutDouble("double", 0.5)
	m.PutBool("true", true)
	m.PutBool("false", false)
	m.PutEmpty("empty")
	m.PutEmptyMap("map")
	m.PutEmptySlice("slice")
	m.PutEmptyBytes("bytes")
	all := Attributes(m)
	require.Len(t, all, m.Len())
	i := 0
	for key, value := range m.All() {
		a := &all[i]
		i++
		got, ok := a.Key()
		require.True(t, ok)
		require.Equal(t, key, got)
		text, isText := a.Str()
		require.Equal(t, value.Type() == pcommon.ValueTypeStr, isText)
		require.Equal(t, value.Str(), text)
		bits, kind := a.Scalar()
		switch value.Type() {
		case pcommon.ValueTypeInt:
			require.Equal(t, Int, kind)
			require.Equal(t, value.Int(), int64(bits))
		case pcommon.ValueTypeDouble:
			require.Equal(t, Double, kind)
			require.Equal(t, value.Double(), math.Float64frombits(bits)) //nolint:testifylint // bit by bit
		case pcommon.ValueTypeBool:
			require.Equal(t, Bool, kind)
			require.Equal(t, value.Bool(), bits == 1)
		default:
			require.Equal(t, NoScalar, kind)
		}
	}
	require.Empty(t, Attributes(pcommon.NewMap()))

	require.True(t, Alike(Attributes(pcommon.NewMap()), nil))

	unknown := []keyValue{{key: "key", keyStrindex: 1}}
	_, ok := (*Attribute)(&unknown[0]).Key()
	require.False(t, ok, "its name is in a table")
}

func TestTextsAreSharedUntilTheyAreSet(t *testing.T) {
	var slabs Slabs
	text := NewText("value")
	one, other := pcommon.NewMap(), pcommon.NewMap()
	slabs.PutText(one, "a", text)
	slabs.PutText(one, "b", text)
	slabs.PutText(other, "c", text)
	one.PutStr("d", "value")
	one.PutInt("e", 1)
	spots := map[Spot]int{}
	for _, m := range []pcommon.Map{one, other} {
		all := Attributes(m)
		for i := range all {
			spots[all[i].Spot()]++
		}
	}
	shared := Attributes(one)[0].Spot()
	require.Equal(t, map[Spot]int{shared: 3, Attributes(one)[2].Spot(): 1, {}: 1}, spots)
	require.Equal(t, "value", shared.Str())
	require.True(t, Same("value", text.String()))
	require.False(t, Same("value", "other"))
	set, _ := one.Get("a")
	set.SetStr("changed")
	one.CopyTo(other) // into a map with shared ones
	other.PutStr("b", "changed")
	require.Equal(t, map[string]any{"a": "changed", "b": "value", "d": "value", "e": int64(1)}, one.AsRaw())
	require.Equal(t, "value", text.String())
}

func TestNumbersAreSeenAsTheyAre(t *testing.T) {
	points := pmetric.NewNumberDataPointSlice()
	points.AppendEmpty().SetIntValue(-3)
	points.AppendEmpty().SetDoubleValue(0.25)
	points.AppendEmpty()
	for i, p := range points.All() {
		p.SetTimestamp(pcommon.Timestamp(10 + i))
		p.SetStartTimestamp(pcommon.Timestamp(20 + i))
		p.SetFlags(pmetric.DataPointFlags(30 + i))
		for range i {
			p.Exemplars().AppendEmpty()
			p.Attributes().PutStr(string(rune('a'+p.Attributes().Len())), "v")
		}
	}
	all := Numbers(points)
	require.Len(t, all, 3)
	for i, p := range all {
		at, start := p.Times()
		require.Equal(t, []uint64{uint64(10 + i), uint64(20 + i)}, []uint64{at, start})
		require.Equal(t, uint32(30+i), p.Flags())
		require.Equal(t, i, p.Exemplars())
		require.Len(t, p.Attributes(), i)
		bits, kind, ok := p.Value()
		require.True(t, ok)
		require.Equal(t, []Scalar{Int, Double, NoScalar}[i], kind)
		minusThree := int64(-3)
		require.Equal(t, []uint64{uint64(minusThree), math.Float64bits(0.25), 0}[i], bits)
		bits, ok = p.Double()
		require.Equal(t, i == 1, ok)
		require.Equal(t, []uint64{0, math.Float64bits(0.25), 0}[i], bits)
	}
	require.Empty(t, Numbers(pmetric.NewNumberDataPointSlice()))
	strange := numberDataPoint{value: new(string)}
	_, kind, ok := (*Number)(&strange).Value()
	require.False(t, ok)
	require.Equal(t, NoScalar, kind)
}

// Lists are alike if their texts and numbers are, whether or not they are the same memory; what may change in place is
// never alike.
func TestListsThatAreAlike(t *testing.T) {
	list := func(change func(pcommon.Map)) []Attribute {
		m := pcommon.NewMap()
		m.PutStr("text", strings.Clone("value"))
		m.PutInt("integer", 1)
		m.PutBool("bool", true)
		m.PutDouble("double", 1)
		change(m)
		return Attributes(m)
	}
	leave := func(pcommon.Map) {}
	one := list(leave)
	require.True(t, Alike(one, one))
	require.True(t, Alike(one, list(leave)))
	for name, change := range map[string]func(pcommon.Map){
		"one more":      func(m pcommon.Map) { m.PutStr("more", "") },
		"one fewer":     func(m pcommon.Map) { m.Remove("double") },
		"another order": func(m pcommon.Map) { m.Remove("text"); m.PutStr("text", "value") },
		"another name":  func(m pcommon.Map) { m.Remove("double"); m.PutDouble("twofold", 1) },
		"another text":  func(m pcommon.Map) { m.PutStr("text", "other") },
		"a number":      func(m pcommon.Map) { m.PutInt("integer", 2) },
		"a type":        func(m pcommon.Map) { m.PutDouble("integer", math.Float64frombits(1)) },
		"no text":       func(m pcommon.Map) { m.PutInt("text", 1) },
		"a text":        func(m pcommon.Map) { m.PutStr("integer", "1") },
		"a bool":        func(m pcommon.Map) { m.PutBool("bool", false) },
		"nothing":       func(m pcommon.Map) { m.PutEmpty("text") },
	} {
		require.False(t, Alike(one, list(change)), name)
		require.False(t, Alike(list(change), one), name)
	}
	for _, change := range []func(pcommon.Map){
		func(m pcommon.Map) { m.PutEmptyMap("map").PutStr("a", "b") },
		func(m pcommon.Map) { m.PutEmptySlice("slice") },
		func(m pcommon.Map) { m.PutEmptyBytes("bytes") },
	} {
		other := list(change)
		require.False(t, Alike(other, other))
	}
}
