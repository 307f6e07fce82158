// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/typo"
)

func TestErrorsOfTheCollectorAreToldPlainly(t *testing.T) {
	t.Parallel()
	const said = `Error: failed to get config: cannot unmarshal the configuration: decoding failed due to the following error(s):

'receivers' error reading configuration for "fastprometheus/a": decoding failed due to the following error(s):

'' decoding failed due to the following error(s):

'config' cannot read ` + "`config`: job \"node\", `scrape_interval`: not a valid duration string: \"10\"\n"
	assert.Equal(t, "Error: receivers::fastprometheus/a: cannot read `config`: job \"node\", `scrape_interval`: not a valid duration string: \"10\"\n", plainly(said))
	assert.Equal(t, "Error: something else\n", plainly("Error: something else\n"))
}

// A starting collector reports errors like a validation, which runs in another process and rewrites its errors itself.
func TestStartsSayWhatIsWrongPlainly(t *testing.T) {
	said := func() string {
		var b strings.Builder
		n, err := Plain(&b).Write([]byte("Error: invalid configuration: it is wrong\n"))
		require.NoError(t, err)
		require.Equal(t, 42, n)
		return b.String()
	}
	require.Equal(t, "Error: it is wrong\n", said())
	t.Setenv(inner, "1")
	require.Equal(t, "Error: invalid configuration: it is wrong\n", said())
}

// When a component refuses its configuration, the error has the line of the first key that it names.
func TestErrorsOfComponentsComeWithTheirLine(t *testing.T) {
	name := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(name, []byte(`exporters:
  remotewrite:
    queue:
      size: 0
    endpoints:
      - endpoint: http://a
      - endpoint: http://
  remotewrite/b:
    queue: {size: 1}
    rules:
      - max: 1
      - name: b
        max: -1
`), 0o600))
	typo.LookIn(name)
	defer typo.LookIn()
	for said, line := range map[string]string{
		"exporters::remotewrite: `queue.size` must be positive, got 0":             "4",
		"exporters::remotewrite: `queue::size` must be positive":                   "4",
		"exporters::remotewrite: `endpoints[1].endpoint` must be a URL":            "7",
		"exporters::remotewrite: `timeout` must be positive":                       "2",
		"exporters::remotewrite: `queue.size` must not be \"host:9090\"":           "4",
		"exporters::remotewrite/b: something, and then `queue.size`":               "9",
		"exporters::remotewrite: there is no key `a` (x.yaml:3)\n`queue.size` ":    "4",
		"exporters::remotewrite: invalid configuration: `queue` and `endpoint`":    "3",
		"exporters::remotewrite/b: `rules::1` (\"b\"): `max` must not be negative": "13",
		"exporters::remotewrite/b: `rules[1]`: `max` must not be negative":         "13",
		"exporters::remotewrite/b: `rules::0::name` must be set":                   "11",
		"exporters::remotewrite/b: `rules::7::name` must be set":                   "10",
	} {
		assert.Equal(t, "Error: "+said+" ("+name+":"+line+")\n", plainly("Error: "+said+"\n"))
	}
	for said, want := range map[string]string{
		`invalid configuration: exporters::remotewrite: it is wrong`:                                                           "exporters::remotewrite: it is wrong (" + name + ":2)",
		`cannot start pipelines: failed to start "remotewrite/b" exporter: it is late`:                                         "exporters::remotewrite/b: cannot start: it is late (" + name + ":8)",
		`failed to build pipelines: failed to create "remotewrite" exporter for data type "metrics": no such host: http://a/x`: "exporters::remotewrite: cannot create: no such host: http://a/x (`exporters::remotewrite::endpoints::[0]::endpoint`, " + name + ":6)",
		"exporters::remotewrite: cannot make the client for `endpoints`: open http://a/x: no such file":                        "exporters::remotewrite: cannot make the client for `endpoints`: open http://a/x: no such file (`exporters::remotewrite::endpoints::[0]::endpoint`, " + name + ":6)",
		"service::exporters: must be there":                                                                                    "service::exporters: must be there",
		"receivers::a: cannot read `config`: scrape_configs[2]: job_name is empty":                                             "receivers::a: cannot read `config`: `scrape_configs[2]` must have a `job_name`",
		`failed to create "b" processor, in pipeline "metrics": it is late`:                                                    "processors::b: cannot create: it is late",
		`failed to build extensions: failed to create extension "c": it is late`:                                               "extensions::c: cannot create: it is late",
	} {
		assert.Equal(t, "Error: "+want+"\n", plainly("Error: "+said+"\n"))
	}
	for _, said := range []string{"exporters::remotewrite: there is no key `a` (x.yaml:3)\n", "exporters::other: `queue` is wrong\n", "service: `queue` is wrong\n"} {
		assert.Equal(t, said, plainly(said))
	}
}

func TestValidateSaysThatAllIsWell(t *testing.T) {
	var asked []string
	valid := func(args ...string) error { asked = args; return nil }
	old := strings.ReplaceAll(aCollector, "exporters: {nop: }", "exporters: {prometheusremotewrite: {endpoint: http://a}, nop: }")
	exit, done, stdout, _ := run(t, valid, map[string]string{"a.yaml": old}, "validate", "--config", "a.yaml")
	assert.True(t, done)
	assert.Zero(t, exit)
	assert.Equal(t, []string{"--config", "a.yaml"}, asked)
	assert.Contains(t, stdout, "a.yaml:2: exporters.prometheusremotewrite: the type is called `prometheus_remote_write` now")
	assert.True(t, strings.HasSuffix(stdout, "\nvalid\n"), stdout)

	exit, done, stdout, _ = run(t, func(...string) error { return errors.New("no") }, map[string]string{"a.yaml": aCollector}, "validate", "--config=a.yaml")
	assert.True(t, done)
	assert.Equal(t, 1, exit)
	assert.Empty(t, stdout)

	exit, done, stdout, _ = run(t, valid, nil, "validate", "--config", "a.yaml", "--help")
	assert.True(t, done)
	assert.Zero(t, exit)
	assert.Contains(t, stdout, "Checks a configuration")
	t.Setenv(inner, "1")
	_, done, stdout, _ = run(t, valid, map[string]string{"a.yaml": aCollector}, "validate", "--config", "a.yaml")
	assert.False(t, done, "the process that looks")
	assert.Empty(t, stdout)
}

func TestACollectorWithAMistakeDoesNotStart(t *testing.T) {
	files := map[string]string{"a.yaml": strings.Replace(aCollector, "receivers", "receiver", 1)}
	exit, done, _, stderr := run(t, nil, files, "--config", "a.yaml")
	assert.True(t, done)
	assert.Equal(t, 1, exit)
	assert.Equal(t, "Error: a.yaml:1: there is no key `receiver`: did you mean `receivers`?\n", stderr)

	_, done, _, stderr = run(t, nil, files, "--config", "a.yaml", "--config", "yaml:service::telemetry::metrics::level: none")
	assert.Empty(t, stderr)
	assert.False(t, done, "what another provider has is not known here")
}

func TestFilesThatAreNotThereAreNoted(t *testing.T) {
	t.Parallel()
	there := filepath.Join(t.TempDir(), "there")
	require.NoError(t, os.WriteFile(there, nil, 0o600))
	var doc yaml.Node
	require.NoError(t, yaml.Unmarshal([]byte("exporters:\n  a: {ca_file: "+there+", key_file: '${env:KEY}'}\n  b:\n  - password_file: "+there+".not\n"), &doc))
	found := missingFiles("a.yaml", &doc, nil, 0)
	require.Len(t, found, 1)
	assert.Equal(t, "note: a.yaml:4: exporters.b.password_file: there is no file "+there+".not here and now", found[0].String())
}
