// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	aPrometheus = "scrape_configs:\n  - job_name: a\n    static_configs: [{targets: ['a:1']}]\nremote_write:\n  - url: http://a\n"
	aCollector  = "receivers: {otlp: }\nexporters: {nop: }\nservice: {pipelines: {metrics: {receivers: [otlp], exporters: [nop]}}}\n"
	aManifest   = "apiVersion: opentelemetry.io/v1beta1\nkind: OpenTelemetryCollector\nmetadata: {name: a}\nspec: {config: {receivers: {otlp: }, exporters: {nop: }, " +
		"service: {pipelines: {metrics: {receivers: [otlp], exporters: [nop]}}}}}\n"
)

// run runs a command of the agent in a directory with some files.
func run(t *testing.T, validate func(...string) error, files map[string]string, args ...string) (exit int, done bool, stdout, stderr string) {
	t.Helper()
	t.Chdir(t.TempDir())
	t.Setenv("TMPDIR", t.TempDir())
	for name, text := range files {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	var out, errs strings.Builder
	c := Command{Distribution: "godwit-agent", Args: args, Stdin: strings.NewReader(aPrometheus), Stdout: &out, Stderr: &errs, Validate: validate}
	exit, done = c.Run()
	return exit, done, out.String(), errs.String()
}

func TestConvertWritesAndReports(t *testing.T) {
	files := map[string]string{"prometheus.yml": aPrometheus + "rule_files: [a]\n"}
	exit, done, stdout, stderr := run(t, nil, files, "convert", "prometheus.yml")
	assert.True(t, done)
	assert.Equal(t, 0, exit)
	assert.Contains(t, stdout, "endpoint: http://a")
	assert.Contains(t, stderr, "lost: prometheus.yml:6: rule_files: ")

	exit, _, stdout, _ = run(t, nil, files, "convert", "prometheus.yml", "--strict")
	assert.Equal(t, 3, exit, "something was lost")
	assert.NotEmpty(t, stdout, "it is written all the same")

	exit, done, _, _ = run(t, nil, map[string]string{"prometheus.yml": aPrometheus}, "convert", "--strict", "prometheus.yml")
	assert.True(t, done)
	assert.Equal(t, 0, exit, "nothing was lost")

	exit, _, stdout, _ = run(t, nil, nil, "convert", "--from", "prometheus", "-")
	assert.Equal(t, 0, exit)
	assert.Contains(t, stdout, "endpoint: http://a")

	exit, _, stdout, _ = run(t, nil, nil, "convert", "--from", "vmagent", "--", "-remoteWrite.url=http://b")
	assert.Equal(t, 0, exit)
	assert.Contains(t, stdout, "endpoint: http://b")
}

// The output contains secrets, and an existing file may have been edited.
func TestConvertNeverOverwrites(t *testing.T) {
	files := map[string]string{"prometheus.yml": aPrometheus}
	exit, _, stdout, _ := run(t, nil, files, "convert", "-o", "godwit.yaml", "prometheus.yml")
	assert.Equal(t, 0, exit)
	assert.Empty(t, stdout)
	info, err := os.Stat("godwit.yaml")
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
	files["godwit.yaml"] = "mine"
	exit, _, _, stderr := run(t, nil, files, "convert", "-o", "godwit.yaml", "prometheus.yml")
	assert.Equal(t, 1, exit)
	assert.Contains(t, stderr, "cannot write the configuration")
	text, err := os.ReadFile("godwit.yaml")
	require.NoError(t, err)
	assert.Equal(t, "mine", string(text))
}

func TestConvertFails(t *testing.T) {
	for name, args := range map[string][]string{
		"name a file":                         {"convert"},
		"cannot read missing.yml":             {"convert", "missing.yml"},
		"it is rules of Prometheus":           {"convert", "rules.yml"},
		`cannot convert from "nagios"`:        {"convert", "--from", "nagios", "rules.yml"},
		"flag provided but not defined: -frm": {"convert", "--frm", "x"},
		"it is no configuration that is known here: line 1: did not find expected node content": {"check", "text.txt"},
		"did not find expected":                  {"convert", "--from", "prometheus", "text.txt"},
		"cannot check: name a file":              {"check"},
		"there is nothing to scrape, to receive": {"convert", "--from", "prometheus", "rules.yml"},
	} {
		t.Run(name, func(t *testing.T) {
			exit, done, stdout, stderr := run(t, nil, map[string]string{"rules.yml": "groups: []\n", "text.txt": "{ a: [\n"}, args...)
			assert.True(t, done)
			assert.Equal(t, 1, exit)
			assert.Empty(t, stdout)
			assert.Contains(t, stderr, name)
		})
	}
}

// A converted configuration is validated as its result, and a collector's own file as it is.
func TestCheck(t *testing.T) {
	validated := ""
	valid := func(args ...string) error {
		text, err := os.ReadFile(strings.TrimPrefix(args[1], "file:"))
		validated = string(text)
		return err
	}
	exit, _, stdout, _ := run(t, valid, map[string]string{"a.yml": aPrometheus}, "check", "a.yml")
	assert.Equal(t, 0, exit)
	assert.Contains(t, stdout, "a.yml is a configuration of Prometheus\n")
	assert.True(t, strings.HasSuffix(stdout, "\nvalid\n"), stdout)
	assert.Contains(t, validated, "fastprometheus:")
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "godwit-*"))
	require.NoError(t, err)
	assert.Empty(t, left, "what was written for that is gone")

	exit, _, stdout, _ = run(t, valid, map[string]string{"a.yml": aCollector}, "check", "a.yml")
	assert.Equal(t, 0, exit)
	assert.Contains(t, stdout, "a.yml is a configuration of an OpenTelemetry collector\n")
	assert.Equal(t, aCollector, validated)

	exit, _, stdout, _ = run(t, valid, map[string]string{"a.yml": aManifest}, "check", "a.yml")
	assert.Equal(t, 0, exit)
	assert.Contains(t, stdout, "note: a.yml: it is what is in OpenTelemetryCollector a\n")
	assert.Contains(t, validated, "receivers: {otlp: null}")
	assert.NotContains(t, validated, "apiVersion")

	exit, _, stdout, _ = run(t, func(...string) error { return errors.New("no") }, map[string]string{"a.yml": aCollector}, "check", "a.yml")
	assert.Equal(t, 1, exit)
	assert.Contains(t, stdout, "not valid\n")

	// What is wrong with a file may be what convert would change.
	for text, last := range map[string]string{
		aCollector: "not valid\n",
		"exporters: {logging: {}}\nservice: {pipelines: {metrics: {receivers: [otlp], exporters: [logging]}}}\nreceivers: {otlp: {}}\n": "not valid as it is: `godwit-agent convert a.yml -o godwit.yaml` writes it as the lines above say\n",
	} {
		_, _, stdout, _ = run(t, func(...string) error { return errors.New("no") }, map[string]string{"a.yml": text}, "check", "a.yml")
		assert.True(t, strings.HasSuffix(stdout, "\n"+last), stdout)
	}
}

// Files of other programs are recognized by name, and parts of a collector's configuration are not mistaken for them.
func TestStrangersAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"prometheus.scrape \"default\" {\n  targets = []\n}\n":                 "it is a configuration of Grafana Alloy",
		"server: {}\nmetrics: {configs: [{name: a}]}\n":                        "it is a configuration of Grafana Agent's static mode",
		"route: {receiver: a}\nreceivers: [{name: a}]\n":                       "it is a configuration of Alertmanager",
		"groups: [{name: a, rules: []}]\n":                                     "it is rules of Prometheus",
		"receivers: {otlp: {}}\n":                                              "",
		"exporters: {otlp: {endpoint: \"a\"}}\nmetrics: {configs: [{a: b}]}\n": "",
	} {
		exit, done, _, stderr := run(t, nil, map[string]string{"a.yml": text}, "--config", "a.yml", "--set", "a::b=c", "--config", "yaml:a: b")
		if want == "" {
			assert.False(t, done, text)
			continue
		}
		assert.True(t, done, text)
		assert.Equal(t, 1, exit)
		assert.Contains(t, stderr, "Error: cannot use a.yml: "+want)
	}
}

func TestPrometheusFilesAreRefused(t *testing.T) {
	files := map[string]string{"prometheus.yml": "# mine\n" + aPrometheus, "config.yaml": aCollector}
	for _, args := range [][]string{
		{"--config", "prometheus.yml"},
		{"--config=prometheus.yml"},
		{"--config=file:prometheus.yml"},
		{"validate", "--config", "config.yaml", "--config", "prometheus.yml"},
	} {
		exit, done, _, stderr := run(t, nil, files, args...)
		assert.True(t, done, args)
		assert.Equal(t, 1, exit)
		assert.Equal(t, "Error: cannot use prometheus.yml: it is a configuration of Prometheus, not of a collector: make one of it by "+
			"`godwit-agent convert prometheus.yml -o godwit.yaml`\n", stderr)
	}
	for _, args := range [][]string{
		{},
		{"--version"},
		{"components"},
		{"help", "validate"},
		{"--config", "config.yaml"},
		{"--config", "missing.yaml"},
		{"--config", "yaml:global::a: b"},
		{"--config"},
	} {
		_, done, stdout, stderr := run(t, nil, files, args...)
		assert.False(t, done, args)
		assert.Empty(t, stdout+stderr)
	}
}

func TestManifestsAreRefused(t *testing.T) {
	exit, done, _, stderr := run(t, nil, map[string]string{"a.yml": aManifest}, "--config", "a.yml")
	assert.True(t, done)
	assert.Equal(t, 1, exit)
	assert.Equal(t, "Error: cannot use a.yml: it is a manifest of Kubernetes: take the configuration out of it by `godwit-agent convert a.yml -o godwit.yaml`\n", stderr)
}

func TestHelpIsAPage(t *testing.T) {
	exit, done, stdout, _ := run(t, nil, nil, "--help")
	assert.True(t, done)
	assert.Equal(t, 0, exit)
	assert.Less(t, strings.Count(stdout, "\n"), 25)
	for _, command := range []string{"convert", "check", "validate", "print-config", "components", "featuregate"} {
		assert.Contains(t, stdout, "\n  "+command+" ")
	}
	exit, _, _, stderr := run(t, nil, nil, "convert", "--help")
	assert.Equal(t, 0, exit)
	assert.Contains(t, stderr, "-strict")
}

// A variable in the syntax of collectors before 0.104 is now text, which is reported nowhere else.
func TestStartsWithAWordOnVariablesOfOld(t *testing.T) {
	const file = `receivers: {otlp: }
exporters:
  otlp:
    endpoint: $OTLP_ENDPOINT
    headers: {a: "pa$$WORD", authorization: "Bearer $TOKEN", password: "pa$WORD", b: "${env:C:-x}", c: $lower, d: a $lower, token: $ecret}
service: {pipelines: {metrics: {receivers: [otlp], exporters: [otlp]}}}
`
	const want = "Warning: a.yaml:4: exporters.otlp.endpoint: `$OTLP_ENDPOINT` was a variable before 0.104, and a collector takes it for text now: write `${env:OTLP_ENDPOINT}`\n" +
		"Warning: a.yaml:5: exporters.otlp.headers.authorization: `$TOKEN` was a variable before 0.104, and a collector takes it for text now: write `${env:TOKEN}`\n" +
		"Warning: a.yaml:5: exporters.otlp.headers.c: `$lower` was a variable before 0.104, and a collector takes it for text now: write `${env:lower}`\n"
	for text, want := range map[string]string{file: want, aCollector: ""} {
		exit, done, stdout, stderr := run(t, nil, map[string]string{"a.yaml": text}, "--config", "a.yaml")
		assert.False(t, done, "%d: it is the collector's to start", exit)
		assert.Empty(t, stdout)
		assert.Equal(t, want, stderr)
	}
	exit, done, stdout, _ := run(t, func(...string) error { return nil }, map[string]string{"a.yaml": file}, "validate", "--config", "a.yaml")
	assert.True(t, done)
	assert.Zero(t, exit)
	assert.Equal(t, 1, strings.Count(stdout, "$OTLP_ENDPOINT` was a variable"), stdout)
}

// Files that are not a collector's configuration, but share keys with one, are named for what they are.
func TestStrangersWithSectionsAreToldByName(t *testing.T) {
	for text, want := range map[string]string{
		"mode: daemonset\nconfig:\n  exporters: {debug: }\n  service: {pipelines: {}}\n": "values of a Helm chart",
		"[Unit]\n[Service]\nExecStart=/usr/bin/prometheus --config.file=/etc/a.yml\n":    "a unit of systemd that starts no vmagent",
		"[Service]\nExecStart=/usr/bin/agent -remoteWrite.url=http://a\n":                "flags or a scrape configuration of vmagent: make one of a collector by `godwit-agent convert a.yaml",
		"{global: {}, scrape_configs: []}":                                               "a configuration of Prometheus: make one of a collector by",
		"services:\n  otel:\n    image: otel\n    command: [--config=/a.yaml]\n":         "a file of Docker Compose",
	} {
		exit, done, _, stderr := run(t, nil, map[string]string{"a.yaml": text}, "--config", "a.yaml")
		assert.True(t, done)
		assert.Equal(t, 1, exit)
		assert.Contains(t, stderr, "Error: cannot use a.yaml: it is "+want)
	}
}

// If a manifest contains several configurations, check also reads the picked one.
func TestChecksWhatIsPicked(t *testing.T) {
	files := map[string]string{"a.yaml": aManifest + "---\n" + strings.ReplaceAll(aManifest, "name: a", "name: b")}
	validate := func(...string) error { return nil }
	exit, _, _, stderr := run(t, validate, files, "check", "a.yaml")
	assert.Equal(t, 1, exit)
	assert.Contains(t, stderr, `choose one by `+"`--pick`"+`: "OpenTelemetryCollector a", "OpenTelemetryCollector b"`)
	exit, _, stdout, _ := run(t, validate, files, "check", "a.yaml", "--pick", "b")
	assert.Zero(t, exit)
	assert.Contains(t, stdout, "it is what is in OpenTelemetryCollector b")
}

// The collector does not report that it ignores a second document.
func TestStartsWithAWordOnFurtherDocuments(t *testing.T) {
	exit, done, _, stderr := run(t, nil, map[string]string{"a.yaml": "---\n# a comment\n" + aCollector + "---\n# none\n---\n" + aCollector}, "--config", "a.yaml")
	assert.False(t, done, "%d: it is the collector's to start", exit)
	assert.Equal(t, "Warning: a.yaml:9: another document begins here: only the first of a file is read\n", stderr)
}
