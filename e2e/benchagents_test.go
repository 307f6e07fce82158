// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path"
	"path/filepath"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// benchAgent is a file of benchmarks/agents or benchmarks/*/agents: how to run one contender. Its configuration and
// arguments are templates for the benchmarks' runner.
type benchAgent struct {
	Party  string   `yaml:"party"`
	Path   string   `yaml:"path"`
	Args   []string `yaml:"args"`
	Config string   `yaml:"config"`

	name string
}

// benchView has the fields that the runner offers to templates. A template with any other field fails here as it does
// there.
type benchView struct {
	Config, Dir, Targets string
	Interval             time.Duration
	SinkHTTP, SinkGRPC   string
	Listen               string
}

func readBenchAgent(t *testing.T, name, text string) benchAgent {
	t.Helper()
	a := benchAgent{name: name}
	require.NoError(t, yaml.Unmarshal([]byte(text), &a), "cannot read %s", name)
	return a
}

// shipped executes the templates as the runner would.
func (a benchAgent) shipped(t *testing.T) shipped {
	t.Helper()
	dir := t.TempDir()
	view := benchView{
		Dir: dir, Targets: filepath.Join(dir, "targets.json"), Interval: 10 * time.Second,
		SinkHTTP: "127.0.0.1:9090", SinkGRPC: "127.0.0.1:4317", Listen: "127.0.0.1:4318",
	}
	config, err := fill(a.Config, view)
	require.NoError(t, err, "the configuration of %s", a.name)
	view.Config = configFile(t, config)
	filled := shipped{where: a.name, text: config, binary: path.Base(a.Path)}
	for _, arg := range a.Args {
		arg, err = fill(arg, view)
		require.NoError(t, err, "the arguments of %s", a.name)
		filled.args = append(filled.args, arg)
	}
	require.Contains(t, filled.args, view.Config, "%s is run without its configuration", a.name)
	return filled
}

func fill(text string, view benchView) (string, error) {
	filler, err := template.New("agent").Parse(text)
	if err != nil {
		return "", err
	}
	var filled strings.Builder
	err = filler.Execute(&filled, view)
	return filled.String(), err
}

func TestBenchAgentsAreFilledAsTheRunnerDoes(t *testing.T) {
	a := readBenchAgent(t, "a.yaml", "party: godwit\npath: bin/godwit-agent\nargs: [--config, '{{.Config}}', -x]\nconfig: 'every {{.Interval}} to {{.SinkGRPC}}'\n")
	got := a.shipped(t)
	assert.Equal(t, "godwit-agent", binaryFor(t, got))
	assert.Equal(t, "every 10s to 127.0.0.1:4317", got.text)
	require.Len(t, got.args, 3)
	assert.FileExists(t, got.args[1])
	_, err := fill("{{.Nothing}}", benchView{})
	require.ErrorContains(t, err, "can't evaluate field Nothing")
}
