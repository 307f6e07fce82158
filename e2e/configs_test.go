// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/e2e/repository"
)

// Each YAML file of the repository is one of these, by its path or its contents. The first match wins.
var claims = []struct {
	what string
	fits func(name string, doc map[string]any) bool
}{
	{"testdata", func(name string, _ map[string]any) bool {
		return slices.Contains(strings.Split(path.Dir(name), "/"), "testdata")
	}},
	{"metadata of a component", func(name string, _ map[string]any) bool { return path.Base(name) == "metadata.yaml" }},
	{"configuration of a tool", func(name string, _ map[string]any) bool {
		return name == ".golangci.yml" || strings.HasPrefix(name, ".github/") || name == "versions.yaml" || path.Dir(name) == ".chloggen"
	}},
	{benchmarkAgent, func(name string, _ map[string]any) bool {
		return slices.Contains([]string{"benchmarks/agents", "benchmarks/limit/agents", "benchmarks/relay/agents", "benchmarks/aggregate/agents"}, path.Dir(name))
	}},
	{openAPI, func(name string, _ map[string]any) bool { return path.Base(name) == "openapi.yaml" }},
	{manifestsKind, func(name string, _ map[string]any) bool { return strings.HasPrefix(name, deployed) }},
	{valuesKind, func(name string, _ map[string]any) bool { return strings.HasPrefix(name, helmFolder) }},
	{operatorKind, func(name string, _ map[string]any) bool { return strings.HasPrefix(name, operated) }},
	{alertRules, func(name string, _ map[string]any) bool { return name == alertsFile }},
	{"ocb manifest", func(_ string, doc map[string]any) bool { return doc["dist"] != nil }},
	{collectorConfig, func(_ string, doc map[string]any) bool { return isWhole(doc) }},
}

const (
	collectorConfig = "collector configuration"
	benchmarkAgent  = "agent of a benchmark"
	// The console's own tests check its responses against it.
	openAPI = "description of an API"
	// TestDashboardsAndAlertsAreAlive covers them.
	alertRules = "alert rules"
	alertsFile = dashboards + "alerts.yaml"
	dashboards = "dashboards/"
)

// isWhole reports whether a document is a complete configuration rather than a fragment.
func isWhole(doc map[string]any) bool {
	service, _ := doc["service"].(map[string]any)
	return service["pipelines"] != nil
}

// shipped is a collector configuration for users.
type shipped struct {
	where, text string
	// binary is the distribution that runs it, if that is set apart from the configuration.
	binary string
	// args are the arguments; by default --config and a file of that text.
	args []string
}

// shippedConfigs returns all collector configurations of the repository, in files and in documents.
func shippedConfigs(t *testing.T) []shipped {
	t.Helper()
	var found []shipped
	for _, name := range repository.Files(t) {
		switch path.Ext(name) {
		case ".yaml", ".yml":
			text := repository.Read(t, name)
			switch claim(name, text) {
			case collectorConfig:
				found = append(found, shipped{where: name, text: text})
			case benchmarkAgent:
				if a := readBenchAgent(t, name, text); a.Party == "godwit" {
					found = append(found, a.shipped(t))
				}
			case "":
				t.Errorf("%s is no kind of YAML file that is known here, so nothing checks it: add a rule to claims, and a test", name)
			}
		case ".md":
			found = append(found, inDocument(t, name)...)
		}
	}
	return found
}

func TestEveryShippedConfigIsValid(t *testing.T) {
	var where []string
	for _, c := range shippedConfigs(t) {
		where = append(where, c.where)
		t.Run(c.where, func(t *testing.T) {
			args := c.args
			if args == nil {
				args = []string{"--config", configFile(t, c.text)}
			}
			exit, output := command(t, binaryFor(t, c), configEnv(t), append([]string{"validate"}, args...)...)
			assert.Zero(t, exit, output)
		})
	}
	for _, d := range repository.Distributions() {
		assert.Contains(t, where, d.Config)
	}
	assert.Contains(t, where, "benchmarks/agents/godwit-rw2.yaml")
	assert.Contains(t, where, "benchmarks/limit/agents/godwit-limits.yaml")
	assert.Contains(t, where, "benchmarks/relay/agents/godwit-rw.yaml")
}

// The full distribution has every service discovery of Prometheus. Tests of modules are built as the agent is, with
// only some of them.
func TestFullDistributionHasEveryDiscovery(t *testing.T) {
	const receivers, id = "receiver/prometheusreceiver/testdata/config.yaml", "prometheus/discovery"
	var all map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(repository.Read(t, receivers)), &all))
	require.Contains(t, all, id, receivers)
	config, err := yaml.Marshal(map[string]any{
		"receivers": map[string]any{id: all[id]},
		"exporters": map[string]any{"nop": nil},
		"service":   map[string]any{"pipelines": map[string]any{"metrics": map[string]any{"receivers": []string{id}, "exporters": []string{"nop"}}}},
	})
	require.NoError(t, err)
	exit, output := command(t, repository.Full, nil, "validate", "--config", configFile(t, string(config)))
	assert.Zero(t, exit, output)
}

// claim returns what a YAML file is, "" if no rule matches.
func claim(name, text string) string {
	var doc map[string]any
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		doc = nil // a list, or several documents: its path must decide
	}
	for _, c := range claims {
		if c.fits(name, doc) {
			return c.what
		}
	}
	return ""
}

func inDocument(t *testing.T, name string) []shipped {
	t.Helper()
	var found []shipped
	for _, block := range repository.Blocks(repository.Read(t, name)) {
		if block.Language != "yaml" {
			continue
		}
		var doc map[string]any
		if yaml.Unmarshal([]byte(block.Text), &doc) == nil && isWhole(doc) {
			found = append(found, shipped{where: fmt.Sprintf("%s:%d", name, block.Line), text: block.Text})
		}
	}
	return found
}

var forComment = regexp.MustCompile(`^# for: (\S+)\n`)

// binaryFor returns the distribution for a configuration: the one that runs it, the one that its first line names, the
// one of its directory, or the full one.
func binaryFor(t *testing.T, c shipped) string {
	t.Helper()
	name := repository.Full
	if c.binary != "" {
		name = c.binary
	} else if match := forComment.FindStringSubmatch(c.text); match != nil {
		name = match[1]
	} else if parts := strings.Split(c.where, "/"); parts[0] == "distributions" && len(parts) > 2 {
		name = parts[1]
	}
	known := slices.ContainsFunc(repository.Distributions(), func(d repository.Distribution) bool { return d.Name == name })
	require.True(t, known, "%s is for %q, which is no distribution", c.where, name)
	return name
}

// configEnv points the variables of shipped configurations to temporary directories.
func configEnv(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	return []string{"GODWIT_TARGETS=" + filepath.Join(dir, "targets"), "GODWIT_DATA=" + filepath.Join(dir, "data")}
}

func TestYAMLFilesAreClaimedByPlaceOrContents(t *testing.T) {
	f := func(name, text, want string) {
		t.Helper()
		assert.Equal(t, want, claim(name, text), name)
	}
	f("receiver/xreceiver/testdata/a.yaml", "service: {pipelines: {metrics: }}", "testdata")
	f("receiver/xreceiver/metadata.yaml", "type: x", "metadata of a component")
	f("versions.yaml", "module-sets: {}", "configuration of a tool")
	f("builder-config.yaml", "dist: {name: x}", "ocb manifest")
	f("examples/a/b.yaml", "service: {pipelines: {metrics: }}", collectorConfig)
	f("examples/a/c.yaml", "service: {extensions: [pulse]}", "")
	f("examples/a/d.yaml", "- a list", "")
	assert.False(t, isWhole(map[string]any{"service": map[string]any{"extensions": []any{"pulse"}}}), "a fragment")
}

func TestConfigsFindTheirBinary(t *testing.T) {
	f := func(where, text, want string) {
		t.Helper()
		assert.Equal(t, want, binaryFor(t, shipped{where: where, text: text}))
	}
	f("examples/a.yaml", "receivers:\n", "godwit")
	f("examples/a.yaml", "# for: godwit-agent\nreceivers:\n", "godwit-agent")
	f("distributions/godwit-gateway/config.yaml", "receivers:\n", "godwit-gateway")
	f("distributions/godwit-gateway/README.md:12", "receivers:\n", "godwit-gateway")
	f("README.md:35", "receivers:\n", "godwit")
}
