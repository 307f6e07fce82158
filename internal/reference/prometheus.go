// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"reflect"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	promconfig "github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	promlabels "github.com/prometheus/prometheus/model/labels"
)

// prometheus returns the schema of the part of Prometheus' configuration that the receivers accept. It does not
// describe service discovery, which depends on what is linked.
func prometheus() schema {
	job := yamlObject(reflect.TypeFor[promconfig.ScrapeConfig](), nil)
	job[wordPatterns] = schema{"_sd_configs$": schema{wordType: orNull(typeArray)}}
	properties, _ := job[wordProperties].(schema)
	properties["static_configs"] = schema{wordType: orNull(typeArray), wordItems: group()}
	return schema{
		wordType: orNull(typeObject),
		wordProperties: schema{
			"global":              yamlObject(reflect.TypeFor[promconfig.GlobalConfig](), nil),
			"scrape_configs":      schema{wordType: orNull(typeArray), wordItems: job},
			"scrape_config_files": schema{wordType: orNull(typeArray), wordItems: texts},
		},
		wordOthers: false,
	}
}

// group returns the schema of an element of static_configs.
func group() schema {
	return schema{
		wordType: typeObject,
		wordProperties: schema{
			"targets": schema{wordType: orNull(typeArray), wordItems: texts},
			"labels":  schema{wordType: orNull(typeObject), wordOthers: texts},
		},
		wordOthers: false,
	}
}

type yamlUnmarshaler interface{ UnmarshalYAML(func(any) error) error }

var unmarshaler = reflect.TypeFor[yamlUnmarshaler]()

// yamlType returns the schema of a type that Prometheus unmarshals from YAML.
func yamlType(t reflect.Type, within []reflect.Type) schema {
	if t.Kind() == reflect.Pointer {
		return yamlType(t.Elem(), within)
	}
	switch t {
	case reflect.TypeFor[promlabels.Labels]():
		return schema{wordType: orNull(typeObject), wordOthers: texts}
	case reflect.TypeFor[targetgroup.Group]():
		return group()
	case reflect.TypeFor[model.Duration]():
		return texts
	}
	if t.Kind() == reflect.Struct {
		if object := yamlObject(t, within); object != nil {
			return object
		}
		return texts // a URL or an expression
	}
	if t.Implements(unmarshaler) || reflect.PointerTo(t).Implements(unmarshaler) {
		return texts // a size or a version
	}
	switch t.Kind() {
	case reflect.Bool:
		return simple("boolean")
	case reflect.String:
		return texts
	case reflect.Slice:
		return schema{wordType: orNull(typeArray), wordItems: yamlType(t.Elem(), within)}
	case reflect.Map:
		return schema{wordType: orNull(typeObject), wordOthers: yamlType(t.Elem(), within)}
	case reflect.Float32, reflect.Float64:
		return simple("number")
	case reflect.Interface, reflect.Func, reflect.Chan, reflect.Struct:
		return schema{}
	default:
		return simple("integer")
	}
}

// yamlObject returns nil for a type without keys.
func yamlObject(t reflect.Type, within []reflect.Type) schema {
	if slices.Contains(within, t) {
		return schema{}
	}
	within = append(within, t)
	properties, more := schema{}, any(false)
	var add func(t reflect.Type)
	add = func(t reflect.Type) {
		for f := range t.Fields() {
			name, options, tagged := strings.Cut(f.Tag.Get("yaml"), ",")
			switch {
			case !f.IsExported(), name == "-", f.Tag.Get("yaml") == "" && !tagged:
				continue
			case name == "" && strings.Contains(options, "inline"):
				if inner := f.Type; inner.Kind() == reflect.Map {
					more = yamlType(inner.Elem(), within)
				} else {
					for inner.Kind() == reflect.Pointer {
						inner = inner.Elem()
					}
					add(inner)
				}
			case name != "":
				properties[name] = yamlType(f.Type, within)
			}
		}
	}
	add(t)
	if len(properties) == 0 && more == any(false) {
		return nil
	}
	return schema{wordType: orNull(typeObject), wordProperties: properties, wordOthers: more}
}
