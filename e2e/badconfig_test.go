// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/godwit-otel/godwit/e2e/repository"
)

// Mistakes in a configuration, and the words that the error must contain. The rest of the configuration is valid.
var faults = []struct {
	name string
	// kind and component name the section with these settings. The fault applies to binaries that have the component.
	kind, component, settings string
	want                      []string
}{
	{"unknown key", "receivers", "otlp", "{protocols: {grpc: {endpont: localhost:0}}}", []string{"otlp", "protocols.grpc", "endpont"}},
	{"unknown component", "exporters", "nosuch", "", []string{"exporters", "nosuch"}},
	{"bad duration", "processors", "batch", "{timeout: soon}", []string{"batch", "timeout", "duration"}},
	{"bad number", "processors", "batch", "{send_batch_size: many}", []string{"batch", "send_batch_size"}},
	{"bad URL", "exporters", "prometheus_remote_write", `{endpoint: "http://[bad"}`, []string{"prometheus_remote_write", "endpoint"}},
	{"no URL", "exporters", "remotewrite", "", []string{"remotewrite", "endpoint"}},
	{"no such policy", "exporters", "remotewrite", "{endpoint: http://localhost:1, queue: {on_full: panic}}", []string{"remotewrite", "queue", "on_full", "drop_oldest"}},
	{"no such scheme", "exporters", "remotewrite", "{endpoint: localhost:1}", []string{"remotewrite", "endpoint", "http"}},
	{"no jobs", "receivers", "fastprometheus", "{config: {}}", []string{"fastprometheus", "scrape_configs"}},
	{"key of Prometheus", "receivers", "fastprometheus", "{config: {scrape_configs: [{job_name: a, scrap_interval: 1s}]}}", []string{"fastprometheus", "scrap_interval"}},
	{"section of Prometheus", "receivers", "prometheus", "{config: {scrape_configs: [{job_name: a}], rule_files: [a.yaml]}}", []string{"prometheus", "rule_files"}},
	{"timeout over interval", "receivers", "prometheus", "{config: {scrape_configs: [{job_name: a, scrape_interval: 1s, scrape_timeout: 2s}]}}", []string{"prometheus", "scrape timeout"}},
	{"missing key", "processors", "memory_limiter", "{check_interval: 1s}", []string{"memory_limiter", "limit_mib"}},
	{"bad path", "receivers", "remotewrite", "{path: api/v1/write}", []string{"remotewrite", "path", "slash"}},
	{"bad interval", "extensions", "pulse", "{interval: 1ms}", []string{"pulse", "interval", "1s"}},
	{"bad address", "extensions", "pulse", "{look: {page: nowhere}}", []string{"pulse", "look::page", "nowhere"}},
	{"bad profile", "extensions", "runtimeprofile", "{profile: nosuch}", []string{"runtimeprofile", "profile", "nosuch"}},
}

func TestBadConfigNamesTheKey(t *testing.T) {
	applied := map[string]bool{}
	eachDistribution(t, func(t *testing.T, d repository.Distribution) {
		inv := components(t, d.Name)
		for _, fault := range faults {
			if fault.component != "nosuch" && !inv.has(fault.kind, fault.component) {
				continue
			}
			applied[fault.name] = true
			t.Run(fault.name, func(t *testing.T) {
				config := configFile(t, faulty(fault.kind, fault.component, fault.settings))
				refuses(t, d.Name, config, fault.want...)
			})
		}
		t.Run("missing file", func(t *testing.T) {
			missing := filepath.Join(t.TempDir(), "missing.yaml")
			refuses(t, d.Name, missing, missing, "no such file")
		})
		t.Run("unreadable file", func(t *testing.T) {
			folder := t.TempDir() // not even root can read a directory as a file
			refuses(t, d.Name, folder, folder, "is a directory")
		})
		t.Run("broken file", func(t *testing.T) {
			refuses(t, d.Name, configFile(t, "receivers: [otlp\n"), "YAML", "config.yaml:1:")
		})
		t.Run("no file", func(t *testing.T) {
			exit, output := command(t, d.Name, nil)
			assert.Equal(t, 1, exit)
			assert.Contains(t, output, "config flag")
		})
	})
	for _, fault := range faults {
		assert.True(t, applied[fault.name], "no distribution has %s", fault.component)
	}
}

// refuses checks that both validating and running a configuration fail soon and say why.
func refuses(t *testing.T, distribution, config string, want ...string) {
	t.Helper()
	for _, args := range [][]string{{"validate", "--config", config}, {"--config", config}} {
		exit, output := command(t, distribution, nil, args...)
		assert.Equal(t, 1, exit, "%q", args)
		assert.NotContains(t, output, "panic:")
		start := strings.Index(output, "Error: ")
		if !assert.GreaterOrEqual(t, start, 0, "%q does not say what is wrong: %s", args, output) {
			continue
		}
		for _, words := range want {
			assert.Contains(t, output[start:], words)
		}
	}
}

func faulty(kind, component, settings string) string {
	section := map[string]string{
		"receivers":  "otlp: {protocols: {grpc: {endpoint: 127.0.0.1:0}}}",
		"processors": "batch: {}",
		"exporters":  "nop: {}",
		"extensions": "",
	}
	used := map[string]string{"receivers": "otlp", "processors": "batch", "exporters": "nop", "extensions": ""}
	section[kind], used[kind] = component+": "+settings, component
	return fmt.Sprintf("receivers: {%s}\nprocessors: {%s}\nexporters: {%s}\nextensions: {%s}\n"+
		"service:\n  extensions: [%s]\n  pipelines: {metrics: {receivers: [%s], processors: [%s], exporters: [%s]}}\n"+
		"  telemetry: {metrics: {level: none}}\n",
		section["receivers"], section["processors"], section["exporters"], section["extensions"],
		used["extensions"], used["receivers"], used["processors"], used["exporters"])
}

func TestConfigsAreSoundButForTheFault(t *testing.T) {
	eachDistribution(t, func(t *testing.T, d repository.Distribution) {
		exit, output := command(t, d.Name, nil, "validate", "--config", configFile(t, faulty("processors", "batch", "{timeout: 1s}")))
		assert.Zero(t, exit, output)
	})
}
