// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/consoletest"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/meter"
	"github.com/godwit-otel/godwit/internal/inspect"
)

var update = flag.Bool("update", false, "pack openapi.yaml anew")

// The binary contains openapi.yaml unchanged.
func TestOpenAPIIsPacked(t *testing.T) {
	text, err := os.ReadFile("openapi.yaml")
	require.NoError(t, err)
	if *update {
		var packed bytes.Buffer
		w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		require.NoError(t, err)
		_, err = w.Write(text)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		require.NoError(t, os.WriteFile("openapi.yaml.gz", packed.Bytes(), 0o600))
		return
	}
	require.True(t, bytes.Equal(text, openAPI()), "openapi.yaml has changed: run `go test -run TestOpenAPIIsPacked -update` in extension/consoleextension")
}

// description is openapi.yaml.
type description map[string]any

func described(t *testing.T) description {
	t.Helper()
	var d map[string]any
	require.NoError(t, yaml.Unmarshal(openAPI(), &d))
	return d
}

func (d description) at(path ...string) any {
	var at any = map[string]any(d)
	for _, key := range path {
		at = at.(map[string]any)[key]
	}
	return at
}

func (d description) resolve(schema map[string]any) map[string]any {
	for schema["$ref"] != nil {
		schema = d.at(strings.Split(strings.TrimPrefix(schema["$ref"].(string), "#/"), "/")...).(map[string]any)
	}
	return schema
}

// check returns the differences between a value and its schema.
func (d description) check(where string, value any, schema map[string]any) (wrong []string) {
	schema = d.resolve(schema)
	complain := func(format string, args ...any) { wrong = append(wrong, where+": "+fmt.Sprintf(format, args...)) }
	properties, required, kinds := d.object(schema)
	if kind := kindOf(value); len(kinds) > 0 && !slices.Contains(kinds, kind) && (kind != "integer" || !slices.Contains(kinds, "number")) {
		complain("is %s and not %s", kind, kinds)
	}
	if known, ok := schema["enum"].([]any); ok && !slices.Contains(known, value) {
		complain("%v is not one of %v", value, known)
	}
	switch value := value.(type) {
	case map[string]any:
		if len(properties) == 0 {
			return wrong // anything is allowed
		}
		for name, below := range value {
			if property, ok := properties[name].(map[string]any); ok {
				wrong = append(wrong, d.check(where+"."+name, below, property)...)
			} else {
				complain("%s is not described", name)
			}
		}
		for _, name := range required {
			if _, ok := value[name]; !ok {
				complain("%s is missing", name)
			}
		}
	case []any:
		items, ok := schema["items"].(map[string]any)
		if !ok {
			complain("has no items")
		}
		for i, below := range value {
			wrong = append(wrong, d.check(fmt.Sprintf("%s[%d]", where, i), below, items)...)
		}
	}
	return wrong
}

// object merges the parts of a schema.
func (d description) object(schema map[string]any) (properties map[string]any, required, kinds []string) {
	properties = map[string]any{}
	parts, _ := schema["allOf"].([]any)
	for _, part := range append(parts, schema) {
		part := part.(map[string]any)
		if part["$ref"] != nil || part["allOf"] != nil && len(parts) > 0 && part["properties"] == nil {
			if part["$ref"] == nil {
				continue
			}
			p, r, k := d.object(d.resolve(part))
			maps.Copy(properties, p)
			required, kinds = append(required, r...), append(kinds, k...)
			continue
		}
		own, _ := part["properties"].(map[string]any)
		maps.Copy(properties, own)
		required = append(required, words(part["required"])...)
		kinds = append(kinds, words(part["type"])...)
	}
	return properties, required, kinds
}

func words(value any) (out []string) {
	switch value := value.(type) {
	case string:
		return []string{value}
	case []any:
		for _, v := range value {
			out = append(out, fmt.Sprint(v))
		}
	}
	return out
}

func kindOf(value any) string {
	switch value := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string, time.Time: // decoded by YAML
		return "string"
	case int:
		return "integer"
	case float64:
		if value == math.Trunc(value) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

func TestExamplesAreAsDescribed(t *testing.T) {
	d := described(t)
	n := 0
	for path, methods := range d.at("paths").(map[string]any) {
		for method, operation := range methods.(map[string]any) {
			for status, response := range operation.(map[string]any)["responses"].(map[string]any) {
				response := d.resolve(response.(map[string]any))
				content, _ := response["content"].(map[string]any)
				answer, ok := content["application/json"].(map[string]any)
				if !ok {
					continue
				}
				require.Contains(t, answer, "example", "%s %s %s", method, path, status)
				require.Empty(t, d.check(method+" "+path+" "+status, answer["example"], answer["schema"].(map[string]any)))
				n++
			}
		}
	}
	require.Greater(t, n, 40)
}

// Every path of the API is described, except the description itself, and everything described exists.
func TestEveryPathIsDescribed(t *testing.T) {
	var patterns []string
	for pattern := range newConsole(createDefaultConfig().(*Config), newSettings(), time.Now).api {
		patterns = append(patterns, pattern)
	}
	var paths []string
	for path, methods := range described(t).at("paths").(map[string]any) {
		for method := range methods.(map[string]any) {
			paths = append(paths, strings.ToUpper(method)+" "+path)
		}
	}
	require.ElementsMatch(t, patterns, paths)
}

func TestAnswersAreAsDescribed(t *testing.T) {
	s := open(t)
	s.configure(consoletest.Pipelines)
	s.RegisterInspection(consoletest.Scraped(200))
	s.processor("cardinality", consoletest.Cardinality{
		Now: inspect.CardinalityOverview{
			Mode: "enforce", Limits: []inspect.Limit{{Last: time.Unix(1, 0), Used: 1, Max: 1, Fullest: []inspect.GroupUse{{Group: []inspect.Label{{}}}}}},
			Rejects: []inspect.Reject{{Labels: []inspect.Label{{}}}}, Overflow: []inspect.Overflow{{}}, Events: []inspect.Event{{}},
		},
		Rows: inspect.Top{Rows: []inspect.Row{{Examples: []string{"x"}}}},
	})
	s.RegisterInspection(inspect.Source{
		Kind: component.KindExporter, ID: consoletest.ID("remotewrite"), Flow: func() inspect.Flow { return inspect.Flow{Dropped: map[string]int64{"x": 1}} },
		Delivery: func() inspect.Delivery {
			return inspect.Delivery{Destinations: []inspect.Destination{{
				Dropped: map[string]int64{"x": 1}, Responses: map[string]int64{"204": 1}, Streams: []inspect.Stream{{State: "open"}}, AckP50: 1, AckP99: 2,
				Queue: inspect.Queue{Unit: "bytes"},
			}}}
		},
	})
	s.RegisterInspection(inspect.Source{
		Kind: component.KindReceiver, ID: consoletest.ID("otlpstream"),
		Intake: func() inspect.Intake {
			return inspect.Intake{Addresses: []string{"a"}, Requests: map[string]int64{"ok": 1}}
		},
	})
	s.RegisterInspection(inspect.Source{Kind: component.KindExtension, ID: consoletest.ID("runtimeprofile"), Runtime: func() inspect.Runtime { return inspect.Runtime{} }})
	var tap inspect.Tap
	s.RegisterInspection(inspect.Source{Kind: component.KindProcessor, ID: consoletest.ID("batch"), Tap: &tap})
	consoletest.Passes(t, &tap)
	s.clock.Pass(meter.Interval)
	s.known.sample()
	s.clock.Pass(meter.Interval)
	d := described(t)
	bodies := map[string]string{
		"/api/v1/relabel":               `{"labels":[{"name":"a","value":"b"}],"rules":"- {source_labels: [a], target_label: c}\n- {action: drop}"}`,
		"/api/v1/targets/{id}/response": `{}`,
		"/api/v1/live":                  `{"node":"processor/batch"}`,
	}
	queries := map[string]string{"/api/v1/cardinality/metric": "?name=m", "/api/v1/cardinality/whatif": "?drop=a"}
	for path, methods := range d.at("paths").(map[string]any) {
		for method, operation := range methods.(map[string]any) {
			for range 2 { // the second response has rates
				status, _, text := s.do(strings.ToUpper(method), strings.ReplaceAll(path, "{id}", "0000000000000001")+queries[path], bodies[path])
				require.Equal(t, http.StatusOK, status, "%s: %s", path, text)
				var value any
				require.NoError(t, json.Unmarshal([]byte(text), &value))
				schema := operation.(map[string]any)["responses"].(map[string]any)["200"].(map[string]any)["content"].(map[string]any)["application/json"].(map[string]any)["schema"]
				require.Empty(t, d.check(path, value, schema.(map[string]any)))
				s.clock.Pass(2 * time.Second)
			}
		}
	}
}
