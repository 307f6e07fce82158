// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strings"
)

// schema is a JSON schema or a part of one.
type schema = map[string]any

// Keywords of JSON schema.
const (
	wordType       = "type"
	wordItems      = "items"
	wordProperties = "properties"
	wordPatterns   = "patternProperties"
	wordOthers     = "additionalProperties"
	wordAnyOf      = "anyOf"

	typeObject = "object"
	typeArray  = "array"
	typeString = "string"
)

// A schemer makes the schema of a configuration. Blocks that components share become definitions.
type schemer struct {
	defs schema
}

// document returns the schema of a whole configuration. It allows anything for other components.
func document(components []described, nodes map[string]*node) ([]byte, error) {
	s := &schemer{defs: schema{}}
	sections := map[string]schema{}
	for i := range components {
		d := &components[i]
		id := d.title()
		s.defs[id] = s.of(nodes[id])
		if sections[d.section] == nil {
			sections[d.section] = schema{}
		}
		for _, name := range d.types {
			sections[d.section]["^"+regexp.QuoteMeta(name)+"(/.*)?$"] = ref(id)
		}
	}
	properties := schema{"connectors": schema{wordType: orNull(typeObject)}, "service": service()}
	for name, patterns := range sections {
		properties[name] = schema{wordType: orNull(typeObject), wordPatterns: patterns}
	}
	out, err := json.MarshalIndent(schema{
		"$schema":      "https://json-schema.org/draft/2020-12/schema",
		"title":        "Configuration of a Godwit collector",
		"description":  "Generated from the components' configuration types. Components of others are not described.",
		wordType:       typeObject,
		wordProperties: properties,
		wordOthers:     false,
		"$defs":        s.defs,
	}, "", " ")
	if err != nil {
		return nil, fmt.Errorf("cannot write the schema: %w", err)
	}
	return append(out, '\n'), nil
}

func ref(name string) schema {
	return schema{"$ref": "#/$defs/" + strings.ReplaceAll(name, " ", "%20")}
}

func orNull(kinds ...string) []string { return append(kinds, "null") }

// variable allows an environment variable in place of a value.
var variable = schema{wordType: typeString, "pattern": `\$\{`}

func simple(kinds ...string) schema {
	if len(kinds) == 1 {
		return schema{wordAnyOf: []schema{{wordType: kinds[0]}, variable}}
	}
	return schema{wordType: kinds}
}

var texts = simple(typeString, "number", "boolean", "null")

func (s *schemer) of(n *node) schema {
	switch n.kind {
	case object:
		if n.shared == "" {
			return s.object(n)
		}
		if _, known := s.defs[n.shared]; !known {
			s.defs[n.shared] = true // stops the recursion of a type that contains itself
			s.defs[n.shared] = s.object(n)
		}
		return ref(n.shared)
	case list:
		return schema{wordAnyOf: []schema{{wordType: orNull(typeArray), wordItems: s.of(n.elem)}, variable}}
	case table:
		return schema{wordType: orNull(typeObject), wordOthers: s.of(n.elem)}
	case labels:
		return schema{wordType: orNull(typeObject, typeArray)}
	case text:
		return texts
	case integer:
		return simple("integer")
	case number:
		return simple("number")
	case boolean:
		return simple("boolean")
	case duration:
		return schema{wordAnyOf: []schema{{wordType: typeString, "pattern": `^-?([0-9.]+(ns|us|µs|ms|s|m|h))+$|^0$|\$\{`}, {wordType: "integer"}}}
	case scraping:
		if _, known := s.defs[string(scraping)]; !known {
			s.defs[string(scraping)] = prometheus()
		}
		return ref(string(scraping))
	}
	return schema{}
}

func (s *schemer) object(n *node) schema {
	properties := schema{}
	s.add(properties, n)
	return schema{wordType: orNull(typeObject), wordProperties: properties, wordOthers: false}
}

func (s *schemer) add(properties schema, n *node) {
	for i := range n.keys {
		k := &n.keys[i]
		if k.inlined {
			s.add(properties, k.of)
			continue
		}
		of := s.of(k.of)
		if k.about != "" || k.of.value != "" {
			described := schema{}
			maps.Copy(described, of)
			if k.about != "" {
				described["description"] = k.about
			}
			if k.of.value != "" {
				described["default"] = k.of.value
			}
			of = described
		}
		properties[k.name] = of
	}
}

func service() schema {
	names := schema{wordType: orNull(typeArray), wordItems: schema{wordType: typeString}}
	return schema{
		wordType: typeObject,
		wordProperties: schema{
			"extensions": names,
			"telemetry":  schema{wordType: orNull(typeObject)},
			"pipelines": schema{
				wordType: typeObject,
				wordPatterns: schema{"^(metrics|logs|traces|profiles)(/.*)?$": schema{
					wordType:       typeObject,
					wordProperties: schema{receivers: names, processors: names, exporters: names},
					wordOthers:     false,
				}},
				wordOthers: false,
			},
		},
		wordOthers: false,
	}
}
