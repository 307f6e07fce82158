// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/typo"
)

// A mistake is what is wrong with a file as it was written. The collector would say so too, but of what it has made of all files by then,
// and without the line.
type mistake struct {
	file string
	line int
	path []string
	text string
}

func (m *mistake) Error() string {
	where := m.file
	if m.line > 0 {
		where += fmt.Sprintf(":%d", m.line)
	}
	if len(m.path) > 0 {
		where += ": " + strings.Join(m.path, "::")
	}
	return where + ": " + m.text
}

// written is a file that --config names.
type written struct {
	name string
	text []byte
	root *yaml.Node
}

// lookup tells a variable of the environment.
type lookup func(name string) (string, bool)

// mistakes finds what is wrong with files of a collector. Keys that --set replaces are left alone.
func mistakes(distribution string, files []written, set []string, environment lookup) error {
	m := &finder{distribution: distribution, set: set, environment: environment, used: map[string]bool{}, configured: map[string][]string{}}
	for i := range files {
		f := &files[i]
		var doc yaml.Node
		if err := yaml.Unmarshal(f.text, &doc); err != nil {
			return &mistake{file: f.name, line: brokenAt(f.text), text: "cannot read it as YAML: " + syntax(err)}
		}
		if err := twice(f.name, &doc, nil, 0); err != nil {
			return err
		}
		if len(doc.Content) == 1 && doc.Content[0].Kind == yaml.MappingNode {
			f.root = doc.Content[0]
			m.uses(f.root)
			m.configures(f.root)
		}
	}
	for i := range files {
		m.file, m.later = files[i].name, files[i+1:]
		if files[i].root == nil {
			continue
		}
		if err := m.keys(files[i].root); err != nil {
			return err
		}
		if err := m.values(files[i].root, nil, 0); err != nil {
			return err
		}
	}
	return nil
}

// brokenAt is the first line of a text with which it is no YAML. The parser often names the line where the block began.
func brokenAt(text []byte) int {
	lines := bytes.SplitAfter(text, []byte("\n"))
	reads := func(n int) bool {
		var doc yaml.Node
		return yaml.Unmarshal(bytes.Join(lines[:n], nil), &doc) == nil
	}
	well, broken := 0, len(lines)
	for broken-well > 1 {
		if middle := (well + broken) / 2; reads(middle) {
			well = middle
		} else if next := readsSoon(middle, broken, reads); next > 0 {
			well = next // a list or text in quotes ended
		} else {
			broken = middle
		}
	}
	return broken
}

// maxUnended bounds the lines of a list in brackets or a text in quotes.
const maxUnended = 8

func readsSoon(from, to int, reads func(n int) bool) int {
	for n := from + 1; n < min(to, from+maxUnended); n++ {
		if reads(n) {
			return n
		}
	}
	return 0
}

var parserLine = regexp.MustCompile(`^(yaml: )?(line \d+: )?`)

// syntax is what the parser says, without its line.
func syntax(err error) string {
	text := parserLine.ReplaceAllString(err.Error(), "")
	switch {
	case strings.Contains(text, "found character that cannot start any token"), strings.Contains(text, "tab character"):
		text += "; indent with spaces, not with tabs, and put a value that begins with %, @ or ` in quotes"
	case strings.Contains(text, "did not find expected"), strings.Contains(text, "mapping values are not allowed"):
		text += "; look at how this line and the one before it are indented, and put a text that has `: ` in it in quotes"
	}
	return text
}

// twice finds a key that a mapping has twice, of which the collector would say no file.
func twice(file string, n *yaml.Node, path []string, depth int) error {
	if depth > maxDepth {
		return nil
	}
	lines := map[string]int{}
	for i, child := range n.Content {
		at := path
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			if first, found := lines[child.Value]; found && child.Kind == yaml.ScalarNode && child.Value != "<<" {
				return &mistake{file, child.Line, path, fmt.Sprintf("the key `%s` is there already, in line %d", child.Value, first)}
			}
			lines[child.Value] = child.Line
			continue
		} else if n.Kind == yaml.MappingNode {
			at = append(slices.Clip(path), n.Content[i-1].Value)
		}
		if err := twice(file, child, at, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// A finder looks through one file after the other.
type finder struct {
	set         []string
	environment lookup
	file        string
	later       []written
	// distribution is what the files are for.
	distribution string
	// used are the components of pipelines, and extensions, by section and ID; configured are the IDs of each section.
	used       map[string]bool
	configured map[string][]string
}

var (
	sections    = append([]string{"service"}, componentKinds...)
	serviceKeys = []string{"extensions", "pipelines", "telemetry"}
	logLevels   = []string{"debug", "info", "warn", "warning", "error", "dpanic", "panic", "fatal"}
	signals     = []string{"metrics", "traces", "logs", "profiles"}
)

// uses remembers which components the service has.
func (m *finder) uses(root *yaml.Node) {
	service := find(root, "service")
	for _, id := range contents(find(service, "extensions")) {
		m.used["extensions::"+id.Value] = true
	}
	pipelines := find(service, "pipelines")
	if pipelines == nil {
		return
	}
	for i := 1; i < len(pipelines.Content); i += 2 {
		for _, kind := range componentKinds[:3] {
			for _, id := range contents(find(pipelines.Content[i], kind)) {
				m.used[kind+"::"+id.Value] = true
				m.used["connectors::"+id.Value] = true
			}
		}
	}
}

// configures remembers which components there are.
func (m *finder) configures(root *yaml.Node) {
	for _, kind := range componentKinds {
		section := find(root, kind)
		for i := 0; section != nil && i+1 < len(section.Content); i += 2 {
			m.configured[kind] = append(m.configured[kind], section.Content[i].Value)
		}
	}
}

// component says what is wrong with the ID of one.
func (m *finder) component(kind string, id *yaml.Node) error {
	name := typeOf(id.Value)
	text := missing(m.distribution, kind, name)
	if text == "" || m.distribution == "" || name == "<<" {
		return nil
	}
	var known []string
	for key, distributions := range distributionsOf() {
		if of, other, _ := strings.Cut(key, " "); of == kind && slices.Contains(distributions, m.distribution) {
			known = append(known, other)
		}
	}
	slices.Sort(known)
	if len(distributionsOf()[plainName(kind, name)]) == 0 {
		text = fmt.Sprintf("there is no %s `%s`%s; `%s components` lists what there is, and a manifest of your own may have others",
			strings.TrimSuffix(kind, "s"), name, typo.Meant(name, known), m.distribution)
	}
	return &mistake{m.file, id.Line, []string{kind, id.Value}, text}
}

// referred looks at the IDs in a list of the service.
func (m *finder) referred(n *yaml.Node, path []string, kinds ...string) error {
	for _, id := range contents(n) {
		var there []string
		for _, kind := range kinds {
			there = append(there, m.configured[kind]...)
		}
		if id.Kind == yaml.ScalarNode && !strings.Contains(id.Value, "${") && !slices.Contains(there, id.Value) {
			return &mistake{m.file, id.Line, path, fmt.Sprintf("`%s` is not configured under `%s`%s", id.Value, kinds[0], typo.Meant(id.Value, there))}
		}
	}
	return nil
}

// keys looks at those that are the collector's own.
func (m *finder) keys(root *yaml.Node) error {
	if err := m.known(root, nil, sections); err != nil {
		return err
	}
	for _, kind := range componentKinds {
		section := find(root, kind)
		for i := 0; section != nil && i+1 < len(section.Content); i += 2 {
			if err := m.component(kind, section.Content[i]); err != nil {
				return err
			}
		}
	}
	return m.service(find(root, "service"))
}

func (m *finder) service(service *yaml.Node) error {
	path := []string{"service"}
	if err := m.known(service, path, serviceKeys); err != nil {
		return err
	}
	level, at := find(find(find(service, "telemetry"), "logs"), "level"), []string{"service", "telemetry", "logs", "level"}
	if level != nil && level.Kind == yaml.ScalarNode && level.Tag != "!!null" && level.Value != "" && !strings.Contains(level.Value, "${") &&
		!slices.Contains(logLevels, strings.ToLower(level.Value)) && !m.isReplaced(at) {
		return &mistake{m.file, level.Line, at, fmt.Sprintf("there is no level `%s`: write debug, info, warn or error", level.Value)}
	}
	if err := m.referred(find(service, "extensions"), append(path, "extensions"), "extensions"); err != nil {
		return err
	}
	pipelines := find(service, "pipelines")
	if pipelines == nil || pipelines.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(pipelines.Content); i += 2 {
		id := pipelines.Content[i]
		path := []string{"service", "pipelines", id.Value}
		if !slices.Contains(signals, typeOf(id.Value)) {
			return &mistake{m.file, id.Line, path[:2], fmt.Sprintf("there is no signal `%s`, but %s%s", typeOf(id.Value), strings.Join(signals, ", "),
				typo.Meant(typeOf(id.Value), signals))}
		}
		pipeline := pipelines.Content[i+1]
		if err := m.known(pipeline, path, componentKinds[:3]); err != nil {
			return err
		}
		for _, kind := range componentKinds[:3] {
			kinds := []string{kind}
			if kind != "processors" {
				kinds = append(kinds, "connectors")
			}
			if list := find(pipeline, kind); list != nil && list.Kind == yaml.SequenceNode && len(list.Content) == 0 && kind != "processors" &&
				!m.isReplaced(append(slices.Clip(path), kind)) {
				return &mistake{m.file, list.Line, path, fmt.Sprintf("a pipeline needs at least one of `%s`", kind)}
			}
			if err := m.referred(find(pipeline, kind), append(slices.Clip(path), kind), kinds...); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *finder) known(n *yaml.Node, path, known []string) error {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if key := n.Content[i]; key.Kind == yaml.ScalarNode && key.Value != "<<" && !slices.Contains(known, key.Value) {
			return &mistake{m.file, key.Line, path, "there is no key `" + key.Value + "`" + typo.Meant(key.Value, known)}
		}
	}
	return nil
}

var (
	// reference is one to a variable, and the dollars before it: two are one of the user's own.
	reference = regexp.MustCompile(`(\$+)\{(?:env:)?([^}:]*)(:-)?[^}]*\}`)
	variable  = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	// Values without which a component would go elsewhere, or nowhere, without a word.
	addresses = []string{"endpoint", "endpoints", "url", "targets"}
	// Values in which Prometheus has dollars of its own.
	ruleKeys = []string{"replacement", "regex", "target_label"}
)

// values looks at texts at every depth.
func (m *finder) values(n *yaml.Node, path []string, depth int) error {
	if depth > maxDepth {
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		if len(path) > 0 && path[len(path)-1] == "scrape_configs" {
			if err := m.targets(n, path); err != nil {
				return err
			}
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			if len(path) == 1 && !m.isUsed(path[0], key) {
				continue
			}
			if err := m.values(n.Content[i+1], append(slices.Clip(path), key), depth+1); err != nil {
				return err
			}
		}
	case yaml.SequenceNode:
		for _, element := range n.Content {
			if err := m.values(element, path, depth+1); err != nil {
				return err
			}
		}
	case yaml.ScalarNode:
		return m.text(n, path)
	default: // aliases lead to what is looked at where it is
	}
	return nil
}

// isUsed tells whether a component does anything. Where no pipeline is known, all may.
func (m *finder) isUsed(kind, id string) bool {
	return len(m.used) == 0 || !slices.Contains(componentKinds, kind) || m.used[kind+"::"+id]
}

// nanoseconds finds a number without a unit where a duration belongs, in what is ours: others may count seconds.
func (m *finder) nanoseconds(n *yaml.Node, path []string) error {
	if n.Tag != "!!int" || n.Value == "0" || len(path) < 3 || slices.Contains(path, "config") || !slices.Contains(ours, typeOf(path[1])) ||
		!durations.MatchString(path[len(path)-1]) || m.isReplaced(path) {
		return nil
	}
	return &mistake{m.file, n.Line, path, fmt.Sprintf("%s without a unit is that many nanoseconds: write %ss", n.Value, n.Value)}
}

var (
	ours = []string{
		"fastprometheus", "prometheus", "remotewrite", "prometheus_remote_write", "prometheusremotewrite", "otlpstream", "cardinality", "console",
		"pulse", "runtimeprofile",
	}
	durations = regexp.MustCompile(`(^|_)(timeout|interval|max_age)$`)
)

var (
	// Components whose keys of that name are addresses, with a port; those of byURL are URLs.
	byAddress    = append([]string{"otlp", "otlp_grpc", "health_check", "pprof", "zpages"}, ours...)
	byURL        = []string{"remotewrite", "prometheus_remote_write", "prometheusremotewrite", "otlp_http", "otlphttp"}
	endpointKeys = []string{"endpoint", "traces_endpoint", "metrics_endpoint", "logs_endpoint"}
	aPort        = regexp.MustCompile(`^[0-9]+$`)
)

// address finds a port alone, and a URL without its scheme. Of the first the collector would say that a text is meant.
func (m *finder) address(n *yaml.Node, path []string) error {
	if len(path) < 3 || !slices.Contains(endpointKeys, path[len(path)-1]) || slices.Contains(path, "config") || m.isReplaced(path) ||
		slices.Contains(path, "endpoints") && m.isReplaced(path[:slices.Index(path, "endpoints")+1]) {
		return nil
	}
	url := path[0] == "exporters" && slices.Contains(byURL, typeOf(path[1]))
	if !url && !slices.Contains(byAddress, typeOf(path[1])) {
		return nil
	}
	value, of := m.said(n.Value)
	lower, scheme := strings.ToLower(value), ""
	if url {
		scheme = "http://"
	}
	what := "`" + withoutPassword(value) + "`" + of
	switch {
	case value == "", url && (strings.HasPrefix(lower, "http://") || strings.HasPrefix(lower, "https://")):
		return nil
	case aPort.MatchString(value) && path[0] == "exporters":
		return &mistake{m.file, n.Line, path, fmt.Sprintf("%s is a port without a host: write %shost:%s", what, scheme, value)}
	case aPort.MatchString(value):
		return &mistake{m.file, n.Line, path, fmt.Sprintf("%s is a port without an address: write 127.0.0.1:%s for this machine only, or 0.0.0.0:%[2]s for all", what, value)}
	case url && strings.Contains(value, "://"):
		return &mistake{m.file, n.Line, path, what + " must begin with http:// or https://"}
	case url:
		value = withoutPassword(value)
		return &mistake{m.file, n.Line, path, fmt.Sprintf("%s has no scheme: write http://%s, or https://%[2]s", what, value)}
	}
	return nil
}

// withoutPassword leaves out who an address is for.
func withoutPassword(address string) string {
	if i := strings.LastIndexByte(address, '@'); i >= 0 {
		return "…" + address[i:]
	}
	return address
}

// said is what a value is, and whose, if it is that of one variable. Of what is put together nothing is known.
func (m *finder) said(value string) (text, of string) {
	if !strings.Contains(value, "$") {
		return value, ""
	}
	inner, found := strings.CutPrefix(value, "${")
	inner, ends := strings.CutSuffix(inner, "}")
	name, fallback, _ := strings.Cut(strings.TrimPrefix(inner, "env:"), ":-")
	if !found || !ends || !variable.MatchString(name) {
		return "", ""
	}
	if text, isSet := m.environment(name); isSet {
		return text, ", of the environment variable " + name + ","
	}
	if strings.ContainsAny(fallback, "$}") {
		return "", ""
	}
	return fallback, ""
}

// targets finds URLs where a job has hosts and ports, and no rule that makes an address of them. Such a target is never scraped.
func (m *finder) targets(job *yaml.Node, path []string) error {
	for _, rule := range contents(find(job, "relabel_configs")) {
		to, action := find(rule, "target_label"), find(rule, "action")
		if rule.Kind != yaml.MappingNode || action != nil && action.Value == "labelmap" || to != nil && (to.Value == "__address__" || strings.Contains(to.Value, "$")) {
			return nil
		}
	}
	path = append(slices.Clip(path), "static_configs", "targets")
	for _, group := range contents(find(job, "static_configs")) {
		for _, target := range contents(find(group, "targets")) {
			scheme, rest, found := strings.Cut(target.Value, "://")
			if !found || scheme != "http" && scheme != "https" || strings.Contains(rest, "${") || m.isReplaced(path[:len(path)-2]) {
				continue
			}
			host, page, _ := strings.Cut(rest, "/")
			text := "a target is a host and port, not a URL: write " + host
			if scheme == "https" {
				text += ", and `scheme: https` for the job"
			}
			if page != "" && page != "metrics" {
				text += fmt.Sprintf(", and `metrics_path: /%s` for the job", page)
			}
			return &mistake{m.file, target.Line, path, text}
		}
	}
	return nil
}

// missingFiles says which files that components read are not there. That is no mistake: they may come before they are read.
func missingFiles(name string, n *yaml.Node, path []string, depth int) (found []Finding) {
	if depth > maxDepth {
		return nil
	}
	for i, child := range n.Content {
		at := path
		if n.Kind == yaml.MappingNode {
			if i%2 == 0 {
				continue
			}
			at = append(slices.Clip(path), n.Content[i-1].Value)
			if slices.Contains(fileKeys, n.Content[i-1].Value) && child.Kind == yaml.ScalarNode && child.Value != "" && !strings.Contains(child.Value, "$") {
				if _, err := os.Stat(child.Value); errors.Is(err, fs.ErrNotExist) {
					found = append(found, Finding{Note, name, child.Line, strings.Join(at, "."), fmt.Sprintf("there is no file %s here and now", child.Value)})
				}
			}
		}
		found = append(found, missingFiles(name, child, at, depth+1)...)
	}
	return found
}

// fileKeys are those of files that are read.
var fileKeys = []string{"ca_file", "cert_file", "key_file", "password_file", "username_file", "credentials_file", "bearer_token_file", "client_secret_file"}

func (m *finder) text(n *yaml.Node, path []string) error {
	if err := m.nanoseconds(n, path); err != nil {
		return err
	}
	if err := m.address(n, path); err != nil {
		return err
	}
	if !strings.Contains(n.Value, "${") || len(path) == 0 {
		return nil
	}
	key := path[len(path)-1]
	for _, match := range reference.FindAllStringSubmatch(n.Value, -1) {
		dollars, name, hasDefault := len(match[1]), match[2], match[3] != ""
		if dollars%2 == 0 || m.isReplaced(path) {
			continue // it stands for itself, or for nothing
		}
		_, isSet := m.environment(name)
		rule := slices.Contains(ruleKeys, key)
		switch {
		case isSet, hasDefault, strings.Contains(match[0], "{") && strings.Contains(strings.TrimPrefix(match[0][dollars+1:], "env:"), ":"):
			// another provider's, such as file:
		case rule && !strings.Contains(match[0], "env:"):
			return &mistake{m.file, n.Line, path, fmt.Sprintf("`%s` is read as an environment variable: where Prometheus has a `$`, write `$$`, here `$%s`",
				match[0][dollars-1:], match[0][dollars-1:])}
		case !variable.MatchString(name):
			return &mistake{m.file, n.Line, path, fmt.Sprintf("`%s` is read as an environment variable, and no name of one: write `$$` for a `$`", match[0])}
		case slices.Contains(addresses, key):
			return &mistake{m.file, n.Line, path, fmt.Sprintf("the environment variable %s is not set: set it, or give a default, as in `${env:%s:-value}`", name, name)}
		}
	}
	return nil
}

// isReplaced tells whether --set or a later file has another value.
func (m *finder) isReplaced(path []string) bool {
	dotted := strings.Join(path, ".")
	for _, set := range m.set {
		if key, _, _ := strings.Cut(set, "="); strings.ReplaceAll(key, "::", ".") == dotted {
			return true
		}
	}
	for i := range m.later {
		n := m.later[i].root
		for _, key := range path {
			n = find(n, key)
		}
		if n != nil {
			return true
		}
	}
	return false
}
