// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package confkeys suggests which key of a configuration was meant by an
// unknown one.
package confkeys

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/confmap"

	"github.com/godwit-otel/godwit/internal/typo"
)

// Unmarshal decodes a component's configuration, for its method of that name. An unknown key is an error with the
// nearest known one. others are keys of similar components, with what replaces them.
func Unmarshal(conf *confmap.Conf, cfg any, others ...map[string]string) error {
	err := conf.Unmarshal(cfg)
	if err == nil {
		return nil
	}
	known := Of(reflect.TypeOf(cfg), "mapstructure")
	text := invalidKeys.ReplaceAllStringFunc(err.Error(), func(line string) string {
		match := invalidKeys.FindStringSubmatch(line)
		var parts []string
		within, path := "", []string(nil)
		if match[1] != "" && !strings.Contains(match[1], ".Config") { // otherwise it is the whole configuration of the component
			within, path = "in `"+match[1]+"` ", typo.Steps(match[1])
		}
		for key := range strings.SplitSeq(match[2], ", ") {
			place := cmp.Or(typo.PlaceOf(append(slices.Clip(path), key)...), typo.Place(key))
			if there := instead(key, others); there != "" && within == "" {
				parts = append(parts, fmt.Sprintf("there is no key `%s`%s: %s", key, place, there))
				continue
			}
			parts = append(parts, unknownOf(reflect.TypeOf(cfg), key, known, place))
		}
		return within + strings.Join(parts, "; ")
	})
	return &fault{err, typo.Plainly(text)}
}

var invalidKeys = regexp.MustCompile(`'([^'\n]*)' has invalid keys: ([^\n]+)`)

// fault is an error with another text.
type fault struct {
	error

	text string
}

func (f *fault) Error() string { return f.text }

func (f *fault) Unwrap() error { return f.error }

// Unknown returns the error for an unknown key: where it is in the user's files, if that is known, and which one was
// probably meant. A known key is in the wrong place, and gets no suggestion.
func Unknown(key string, known []string) string { return unknownAt(key, known, typo.Place(key)) }

func unknownAt(key string, known []string, place string) string {
	if slices.Contains(known, key) {
		return fmt.Sprintf("there is no key `%s` here", key) + place
	}
	return fmt.Sprintf("there is no key `%s`", key) + place + typo.Meant(key, known)
}

// instead returns what replaces a key of similar components.
func instead(key string, others []map[string]string) string {
	for _, known := range others {
		if there := known[key]; there != "" {
			return there
		}
	}
	return ""
}

// unknownOf is Unknown, and adds where a type has the key if it has it in another place.
func unknownOf(t reflect.Type, key string, known []string, place string) string {
	text := unknownAt(key, known, place)
	if parents := parentsOf(t, key); len(parents) > 0 {
		text += ": it belongs under `" + strings.Join(parents, "` or `") + "`"
	}
	return text
}

// maxParents limits the number of places that are named for a key.
const maxParents = 3

// parentsOf returns the paths of the keys under which a type has a key, the shortest first.
func parentsOf(t reflect.Type, key string) []string {
	found, within := map[string]bool{}, map[reflect.Type]bool{}
	var look func(t reflect.Type, path string)
	look = func(t reflect.Type, path string) {
		for slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map}, t.Kind()) {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || within[t] {
			return
		}
		within[t] = true
		defer delete(within, t)
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("mapstructure"), ",")
			below := path
			switch {
			case name == "-":
				continue
			case name == key && path != "":
				found[path] = true
			case name != "" && path != "":
				below = path + "::" + name
			case name != "":
				below = name
			}
			look(f.Type, below)
		}
	}
	look(t, "")
	depth := func(path string) int { return strings.Count(path, "::") }
	parents := slices.SortedFunc(maps.Keys(found), func(a, b string) int {
		return cmp.Or(cmp.Compare(depth(a), depth(b)), cmp.Compare(a, b))
	})
	for i, parent := range parents {
		if i == maxParents || depth(parent) > depth(parents[0]) {
			return parents[:i]
		}
	}
	return parents
}

// Of returns the keys of a type and of everything in it, by the tag that names them, sorted.
func Of(t reflect.Type, tag string) []string {
	keys, seen := map[string]bool{}, map[reflect.Type]bool{}
	var add func(t reflect.Type)
	add = func(t reflect.Type) {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			add(t.Elem())
			return
		case reflect.Struct:
		default:
			return
		}
		if seen[t] {
			return
		}
		seen[t] = true
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get(tag), ",")
			if name != "" && name != "-" {
				keys[name] = true
			}
			add(f.Type) // optional values are in a field without a name
		}
	}
	add(t)
	return slices.Sorted(maps.Keys(keys))
}
