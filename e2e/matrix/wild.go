// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// wildRoad has all of our components in one process: what is scraped is sent by remote write and as a stream to
// receivers of the same process, and from there to a server.
const wildRoad = `
extensions:
  console: {endpoint: 127.0.0.1:$CONSOLE}
  pulse: {interval: 5s}
  runtimeprofile: {}
  file_storage: {directory: $DIR/store, create_directory: true}
receivers:
  fastprometheus:
    config:
      global: {scrape_interval: 200ms, scrape_timeout: 200ms}
      scrape_configs: [{job_name: fast, static_configs: [{targets: [$TARGET]}]}]
  prometheus:
    config:
      global: {scrape_interval: 200ms, scrape_timeout: 200ms}
      scrape_configs: [{job_name: drop, static_configs: [{targets: [$TARGET]}]}]
  remotewrite: {endpoint: $WRITE}
  otlpstream: {protocols: {grpc: {endpoint: $STREAM}, http: {endpoint: $SOCKET}}}
processors:
  cardinality: {}
exporters:
  remotewrite: {endpoint: http://$WRITE/api/v1/write, batch: {timeout: 50ms}, shutdown_timeout: 1s}
  prometheusremotewrite: {endpoint: http://$WRITE/api/v1/write}
  otlpstream: {endpoint: $STREAM, tls: {insecure: true}}
  remotewrite/out: {endpoint: $FIRST, shutdown_timeout: 1s}
service:
  extensions: [file_storage, console, pulse, runtimeprofile]
  telemetry: {metrics: {level: none}}
  pipelines:
    metrics/write: {receivers: [fastprometheus], processors: [cardinality], exporters: [remotewrite]}
    metrics/both: {receivers: [prometheus], exporters: [prometheusremotewrite, otlpstream]}
    metrics/in: {receivers: [remotewrite, otlpstream], processors: [cardinality], exporters: [remotewrite/out]}
`

// elsewhere matches keys with which a process would connect to other machines.
var elsewhere = regexp.MustCompile(`_sd_configs$|^(sigv4|azuread|google_iam|oauth2|proxy_url|proxy_from_environment|tpm|middlewares|authenticator)$`)

// Schema is the schema of configurations for editors.
type Schema struct {
	root   map[string]any
	leaves []leaf
}

// leaf is a key of a component with a value or a list, but no keys of its own.
type leaf struct {
	path   []string
	schema map[string]any
}

// ReadSchema reads a JSON schema.
func ReadSchema(path string) (*Schema, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s := &Schema{}
	if err := json.Unmarshal(text, &s.root); err != nil {
		return nil, fmt.Errorf("cannot read schema %s: %w", path, err)
	}
	var road map[string]any
	if err := yaml.Unmarshal([]byte(wildRoad), &road); err != nil {
		return nil, err
	}
	for _, section := range []string{"extensions", "receivers", "processors", "exporters"} {
		kinds, _ := at(s.root, "properties", section, "patternProperties").(map[string]any)
		for id := range road[section].(map[string]any) {
			kind, _, _ := strings.Cut(id, "/")
			if schema, ok := kinds["^"+kind+"(/.*)?$"].(map[string]any); ok {
				s.gather([]string{section, id}, schema)
			}
		}
	}
	slices.SortFunc(s.leaves, func(a, b leaf) int { return slices.Compare(a.path, b.path) })
	return s, nil
}

func at(tree any, path ...string) any {
	for _, part := range path {
		below, _ := tree.(map[string]any)
		tree = below[part]
	}
	return tree
}

// deepest is the number of keys above a value at most.
const deepest = 8

func (s *Schema) gather(path []string, schema map[string]any) {
	schema = s.resolve(schema)
	keys, _ := schema["properties"].(map[string]any)
	if len(keys) == 0 || len(path) > deepest {
		s.leaves = append(s.leaves, leaf{path, schema})
		return
	}
	for key, below := range keys {
		if !elsewhere.MatchString(key) {
			s.gather(append(slices.Clone(path), key), below.(map[string]any))
		}
	}
}

func (s *Schema) resolve(schema map[string]any) map[string]any {
	for {
		ref, ok := schema["$ref"].(string)
		if !ok {
			return schema
		}
		var path []string
		for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
			name, err := url.PathUnescape(part)
			if err != nil {
				name = part
			}
			path = append(path, name)
		}
		below, _ := at(s.root, path...).(map[string]any)
		schema = below
	}
}

// Wild returns configuration number seed, in which up to four keys have values of their type, mostly extreme ones. It
// also returns these keys.
func (s *Schema) Wild(seed uint64, variables map[string]string) (text string, changed []string, err error) {
	dice := rand.New(rand.NewPCG(seed, 23))
	tree := map[string]any{}
	if err := lay(tree, wildRoad); err != nil {
		return "", nil, err
	}
	for range 1 + dice.IntN(4) {
		l := s.leaves[dice.IntN(len(s.leaves))]
		for slices.Contains(l.path, "tls") && dice.IntN(8) > 0 { // it has a third of all keys, mostly with required others
			l = s.leaves[dice.IntN(len(s.leaves))]
		}
		value := s.value(dice, l.path[len(l.path)-1], l.schema, 0)
		shown, err := yaml.Marshal(value)
		if err != nil {
			return "", nil, err
		}
		set(tree, l.path, value)
		changed = append(changed, strings.Join(l.path, "::")+": "+strings.TrimSpace(string(shown)))
	}
	out, err := yaml.Marshal(tree)
	return fill(string(out), variables), changed, err
}

// fill replaces each $NAME by the variable's value. If one name is a prefix of another, the longer one is matched.
func fill(text string, variables map[string]string) string {
	names := make([]string, 0, len(variables))
	for name := range variables {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(b, a) })
	var pairs []string
	for _, name := range names {
		pairs = append(pairs, "$"+name, variables[name])
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

var (
	integers  = []any{0, 1, -1, 2, 3, 10, 1000, 65535, 65536, math.MaxInt32, math.MaxUint32, math.MaxInt64, math.MinInt64}
	numbers   = []any{0, 1, -1, 0.5, 0.999, 1e-300, 1e300, math.Inf(1), math.NaN()}
	durations = []any{"0s", "1ns", "1us", "1ms", "50ms", "1s", "1m", "10000h", "-1s", "2540400h"}
	texts     = []any{"", "a", "$DIR/a", "$DIR", "/dev/null", "é\u202e\x01", strings.Repeat("a", 5000), "auto", "none", "file_storage", "__name__", "job", "(", ".*", "1", 1, -1, true, nil}
	addresses = []any{"127.0.0.1:$PORT", "http://127.0.0.1:$PORT", "127.0.0.1:1", "http://127.0.0.1:1/a?b=c#d", "$DIR/socket", "127.0.0.1", "127.0.0.1:99999", "http://", "://", ""}
)

var (
	isAddress = regexp.MustCompile(`(^|_)(endpoints?|urls?|targets?|address|host|server_name|collector_id)$`)
	isWord    = regexp.MustCompile(`[A-Za-z][A-Za-z0-9_.]+`)
	isTime    = regexp.MustCompile(`ns\|us`)
)

// value returns a value that the schema allows.
func (s *Schema) value(dice *rand.Rand, key string, schema map[string]any, depth int) any {
	schema = s.resolve(schema)
	if choices, ok := schema["anyOf"].([]any); ok {
		choices = slices.DeleteFunc(slices.Clone(choices), func(c any) bool {
			pattern, _ := at(c, "pattern").(string)
			return pattern == `\$\{` // not the alternative for environment variables
		})
		choice := choices[dice.IntN(len(choices))].(map[string]any)
		if _, ok := choice["description"]; !ok {
			choice = maps.Clone(choice)
			choice["description"] = schema["description"]
		}
		return s.value(dice, key, choice, depth)
	}
	kind, _ := schema["type"].(string)
	if kinds, ok := schema["type"].([]any); ok {
		kind, _ = kinds[dice.IntN(len(kinds))].(string)
	}
	pattern, _ := schema["pattern"].(string)
	switch {
	case isTime.MatchString(pattern):
		return pick(dice, durations)
	case kind == "boolean":
		return dice.IntN(2) == 0
	case kind == "integer":
		return pick(dice, integers)
	case kind == "number" && schema["type"] == "number":
		return pick(dice, numbers)
	case kind == "array":
		return s.list(dice, key, schema, depth)
	case kind == "object":
		return s.object(dice, schema, depth)
	case isAddress.MatchString(key):
		return pick(dice, addresses)
	default:
		if words := isWord.FindAllString(fmt.Sprint(schema["description"], " ", schema["default"]), -1); len(words) > 0 && dice.IntN(2) == 0 {
			return words[dice.IntN(len(words))]
		}
		return pick(dice, texts)
	}
}

func pick(dice *rand.Rand, values []any) any { return values[dice.IntN(len(values))] }

func (s *Schema) list(dice *rand.Rand, key string, schema map[string]any, depth int) any {
	list := []any{}
	items, ok := schema["items"].(map[string]any)
	if !ok || depth > deepest {
		return list
	}
	for range dice.IntN(4) {
		list = append(list, s.value(dice, key, items, depth+1))
	}
	return list
}

func (s *Schema) object(dice *rand.Rand, schema map[string]any, depth int) any {
	object := map[string]any{}
	if depth > deepest {
		return object
	}
	keys, _ := schema["properties"].(map[string]any)
	names := make([]string, 0, len(keys))
	for name := range keys {
		if !elsewhere.MatchString(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for range dice.IntN(5) {
		if len(names) > 0 {
			name := names[dice.IntN(len(names))]
			object[name] = s.value(dice, name, keys[name].(map[string]any), depth+1)
		}
	}
	if more, ok := schema["additionalProperties"].(map[string]any); ok {
		for range dice.IntN(3) {
			name := fmt.Sprint(pick(dice, texts))
			object[name] = s.value(dice, name, more, depth+1)
		}
	}
	return object
}
