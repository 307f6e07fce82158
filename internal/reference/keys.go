// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver"
)

// A kind is the form of a value in YAML.
type kind string

const (
	object   kind = "object"
	list     kind = "list"
	table    kind = "map" // with names that users choose
	text     kind = "text"
	integer  kind = "integer"
	number   kind = "number"
	boolean  kind = "true or false"
	duration kind = "duration"
	anything kind = "any"
	scraping kind = "Prometheus' configuration"
	// labels are a map, or a list of names and values.
	labels kind = "map or list"
)

// A node is the type of a value with its default.
type node struct {
	kind kind
	// shared is the Go type of an object from another module: a block that several components have.
	shared string
	// keys are the keys of an object.
	keys []key
	// elem is the type of the elements of a list or a map.
	elem *node
	// value is the default in YAML, "" if there is none.
	value string
}

// A key is a key of an object.
type key struct {
	name, about string
	of          *node
	// inlined is set for a shared block whose keys are at this level.
	inlined bool
}

// A reader makes nodes from Go types.
type reader struct {
	comments *comments
	within   []reflect.Type
}

const own = "github.com/godwit-otel/godwit/"

var (
	textType       = reflect.TypeFor[encoding.TextUnmarshaler]()
	durationType   = reflect.TypeFor[time.Duration]()
	prometheusType = reflect.TypeFor[fastprometheusreceiver.Prometheus]()
	noValue        reflect.Value
)

// component returns the configuration of a component.
func (r *reader) component(f component.Factory) *node {
	v := reflect.ValueOf(f.CreateDefaultConfig())
	return r.node(v.Type(), v)
}

// node returns the node of a type. v is the default, which is not valid if there is none.
func (r *reader) node(t reflect.Type, v reflect.Value) *node {
	switch {
	case t == durationType:
		n := &node{kind: duration}
		if v.IsValid() {
			n.value = shortDuration(time.Duration(v.Int()))
		}
		return n
	case t == prometheusType:
		return &node{kind: scraping}
	case t.PkgPath() == "go.opentelemetry.io/collector/config/configoptional":
		return r.optional(t, v)
	case t.Kind() == reflect.Pointer:
		if v.IsValid() {
			v = v.Elem() // not valid if it is nil
		}
		return r.node(t.Elem(), v)
	case t.Implements(textType) || reflect.PointerTo(t).Implements(textType):
		n := &node{kind: text}
		if v.IsValid() && v.Kind() == reflect.String {
			n.value = v.String()
		}
		return n
	}
	return r.plain(t, v)
}

// optional returns the node of a configoptional.Optional, which keeps its value in an unexported field.
func (r *reader) optional(t reflect.Type, v reflect.Value) *node {
	value, _ := t.FieldByName("value")
	inner := noValue
	if v.IsValid() && !v.FieldByName("flavor").IsZero() {
		inner = v.FieldByName("value")
	}
	return r.node(value.Type, inner)
}

func (r *reader) plain(t reflect.Type, v reflect.Value) *node {
	n := &node{}
	switch t.Kind() {
	case reflect.Bool:
		n.kind = boolean
	case reflect.String:
		n.kind = text
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n.kind = integer
	case reflect.Float32, reflect.Float64:
		n.kind = number
	case reflect.Slice, reflect.Array:
		if t.Name() == "MapList" {
			n.kind = labels
			return n
		}
		n.kind, n.elem = list, r.node(t.Elem(), noValue)
		n.value = elements(v)
		return n
	case reflect.Map:
		n.kind, n.elem = table, r.node(t.Elem(), noValue)
		return n
	case reflect.Struct:
		return r.structure(t, v)
	default:
		n.kind = anything
		return n
	}
	switch {
	case !v.IsValid():
	case t.Kind() == reflect.String:
		n.value = v.String() // a secret would print as redacted, but defaults are empty
	default:
		n.value = fmt.Sprint(v)
	}
	return n
}

// elements formats the default of a list of simple values.
func elements(v reflect.Value) string {
	if !v.IsValid() || v.Len() == 0 {
		return ""
	}
	var parts []string
	for i := range v.Len() {
		e := v.Index(i)
		if e.Kind() == reflect.Struct || e.Kind() == reflect.Pointer {
			return ""
		}
		part := fmt.Sprint(e)
		if part == "" {
			part = `""`
		}
		parts = append(parts, part)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func (r *reader) structure(t reflect.Type, v reflect.Value) *node {
	n := &node{kind: object}
	if !strings.HasPrefix(t.PkgPath(), own) {
		n.shared = t.String()
	}
	if slices.Contains(r.within, t) {
		return &node{kind: anything} // a recursive type
	}
	r.within = append(r.within, t)
	defer func() { r.within = r.within[:len(r.within)-1] }()
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() || f.Name == "_" {
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("mapstructure"), ",")
		if name == "-" || name == "" && options == "remain" {
			continue
		}
		inner := noValue
		if v.IsValid() {
			inner = v.Field(i)
		}
		of := r.node(f.Type, inner)
		switch {
		case name == "" && options == "squash" && of.shared == "":
			n.keys = append(n.keys, of.keys...)
		case name == "" && options == "squash":
			n.keys = append(n.keys, key{about: r.comments.of(t, f), of: of, inlined: true})
		default:
			if name == "" {
				name = strings.ToLower(f.Name)
			}
			n.keys = append(n.keys, key{name: name, about: r.comments.of(t, f), of: of})
		}
	}
	if len(n.keys) == 0 {
		return &node{kind: anything} // it unmarshals itself
	}
	return n
}

func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
