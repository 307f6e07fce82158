// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !purego

package slab

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/alloctest"
)

// TestLayoutIsKnown fails when an update of pdata has changed its types. Everything works then, but slower.
func TestLayoutIsKnown(t *testing.T) { require.True(t, known) }

func TestKeptSlabsAllocateLess(t *testing.T) {
	s := Kept()
	kept := func() {
		script(s, 7, 200)
		s.Again()
	}
	fresh := func() { script(new(Slabs), 7, 200) }
	require.Less(t, alloctest.PerRun(kept), alloctest.PerRun(fresh))
}

func TestWhatDiffersIsNotAlike(t *testing.T) {
	type other struct {
		Key   string
		Value struct{ Value any }
		Index int32
	}
	for name, theirs := range map[string]any{
		"other names": struct {
			Value       struct{ Value any }
			Name        string
			KeyStrindex int32
		}{},
		"another order": struct {
			Key         string
			Value       struct{ Value any }
			KeyStrindex int32
		}{},
		"another type": struct {
			Value       struct{ Value any }
			Key         [2]uintptr
			KeyStrindex int32
		}{},
		"another interface": struct {
			Value       struct{ Value error }
			Key         string
			KeyStrindex int32
		}{},
		"a field more": struct {
			Value       struct{ Value any }
			Key         string
			KeyStrindex int32
			More        int32
		}{},
		"another size": struct {
			Value       struct{ Value any }
			Key         string
			KeyStrindex int64
		}{},
		"pointers to it": []*keyValue{},
		"others":         []other{},
	} {
		t.Run(name, func(t *testing.T) {
			require.False(t, alike(reflect.TypeFor[keyValue](), reflect.TypeOf(theirs)))
			require.False(t, alike(reflect.TypeFor[[]keyValue](), reflect.TypeOf(theirs)))
		})
	}
	kind := kinds.str
	require.False(t, kindOf[stringValue](nil, &kind))
	require.False(t, kindOf[stringValue]("a string", &kind))
	require.False(t, kindOf[stringValue](&intValue{}, &kind))
}

// TestUnknownLayout: if pdata's types have changed, its API does everything.
func TestUnknownLayout(t *testing.T) {
	known = false
	defer func() { known = true }()
	TestSlabsHoldWhatPdataHolds(t)
	TestChangesValuesInPlace(t)
}

func TestChangesAllocateNothing(t *testing.T) {
	p := pmetric.NewNumberDataPoint()
	p.SetDoubleValue(1)
	p.Attributes().PutStr("key", "before")
	v, _ := p.Attributes().Get("key")
	require.Zero(t, alloctest.PerRun(func() {
		ChangeDouble(p, 2)
		ChangeStr(v, "after")
	}))
}

// TestSlabsAllocateSeldom: pdata's API needs five allocations for each of these points.
func TestSlabsAllocateSeldom(t *testing.T) {
	var s Slabs
	require.Less(t, alloctest.PerRun(func() {
		points := pmetric.NewNumberDataPointSlice()
		points.EnsureCapacity(size)
		for range size {
			p := s.AppendNumber(points)
			s.SetInt(p, 1)
			s.Reserve(p.Attributes(), 2)
			s.PutStr(p.Attributes(), "key", "value")
			s.PutInt(p.Attributes(), "number", 1)
		}
	}), size/4.)
}

// TestSlicesAreKnown fails when an update of pdata has changed its slices.
func TestSlicesAreKnown(t *testing.T) {
	require.True(t, hidesRaw)
	require.False(t, areElements(reflect.TypeFor[pmetric.Metric]()))
}
