// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"

	"go.yaml.in/yaml/v3"
)

// Agent is one configuration of a contender, read from agents/<name>.yaml.
type Agent struct {
	Name string `yaml:"-"`
	// Title is shown in reports.
	Title string `yaml:"title"`
	// Party is the program that it is a configuration of.
	Party string `yaml:"party"`
	// Headline configurations represent their party if not all are run.
	Headline bool `yaml:"headline"`
	// Apart configurations are run only by name.
	Apart bool `yaml:"apart"`
	// Silent configurations send nothing: their cost can be measured, but their samples cannot be checked.
	Silent bool `yaml:"silent"`
	// Path is the binary, relative to the repository's root; Env names an environment variable with its path.
	Path string `yaml:"path"`
	Env  string `yaml:"env"`
	// Args and Config are templates of an agentView.
	Args   []string `yaml:"args"`
	Config string   `yaml:"config"`
}

// agentView holds the fields for an agent's templates.
type agentView struct {
	Config   string        // path of the rendered configuration
	Dir      string        // scratch directory
	Targets  string        // path of the file_sd list
	Interval time.Duration // between scrapes
	SinkHTTP string        // host:port
	SinkGRPC string        // host:port
	Listen   string        // host:port on which the agent receives, if it does
	Scrape   []string      // lines that render adds to the scrape configuration, after the targets
}

// LoadAgents reads all agents: ours first, then sorted by name.
func LoadAgents(dir string) ([]Agent, error) {
	files, err := agentFiles(dir)
	if err != nil {
		return nil, err
	}
	var all []Agent
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("cannot read agent: %w", err)
		}
		a := Agent{Name: strings.TrimSuffix(filepath.Base(file), ".yaml")}
		d := yaml.NewDecoder(bytes.NewReader(body))
		d.KnownFields(true)
		if err := d.Decode(&a); err != nil {
			return nil, fmt.Errorf("cannot read agent %s: %w", file, err)
		}
		all = append(all, a)
	}
	return all, nil
}

func agentFiles(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("cannot find agents: there are none in %s, is -root the repository's?", dir)
	}
	return files, err
}

// Select returns agents: "all" except those apart, "headline", or a list of names.
func Select(all []Agent, which string) ([]Agent, error) {
	switch which {
	case "all":
		return slices.DeleteFunc(slices.Clone(all), func(a Agent) bool { return a.Apart }), nil
	case "headline":
		return slices.DeleteFunc(slices.Clone(all), func(a Agent) bool { return !a.Headline }), nil
	}
	var picked []Agent
	for name := range strings.SplitSeq(which, ",") {
		i := slices.IndexFunc(all, func(a Agent) bool { return a.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("cannot select agent %q: there is no agents/%s.yaml", name, name)
		}
		picked = append(picked, all[i])
	}
	return picked, nil
}

// binary returns the path of the agent's binary, or says how to get it.
func (a *Agent) binary(root string) (path, missing string) {
	path = filepath.Join(root, a.Path)
	if a.Env != "" {
		path = os.Getenv(a.Env)
		if path == "" {
			return "", fmt.Sprintf("set %s to the path of its binary", a.Env)
		}
		path, _ = filepath.Abs(path)
	}
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return "", fmt.Sprintf("no binary at %s", path)
	}
	return path, ""
}

// version returns a binary's version and the Go version it was built with.
func version(path string) string {
	told, err := exec.Command(path, "--version").CombinedOutput()
	line, _, _ := strings.Cut(strings.TrimSpace(string(told)), "\n")
	line, _, _ = strings.Cut(line, " (")
	if err != nil {
		line = "unknown version"
	}
	if info, err := buildinfo.ReadFile(path); err == nil {
		cgo := "no cgo"
		for _, s := range info.Settings {
			if s.Key == "CGO_ENABLED" && s.Value == "1" {
				cgo = "cgo"
			}
		}
		line += ", " + info.GoVersion + ", " + cgo
	}
	return line
}

// render executes the agent's templates and writes its configuration.
func (a *Agent) render(view agentView) (args []string, err error) {
	fill := func(text string) (string, error) {
		t, err := template.New(a.Name).Option("missingkey=error").Parse(text)
		if err != nil {
			return "", fmt.Errorf("cannot read a template of agent %s: %w", a.Name, err)
		}
		var out strings.Builder
		if err := t.Execute(&out, view); err != nil {
			return "", fmt.Errorf("cannot fill a template of agent %s: %w", a.Name, err)
		}
		return out.String(), nil
	}
	config, err := fill(a.Config)
	if err != nil {
		return nil, err
	}
	if config, err = withScrape(config, view.Scrape); err != nil {
		return nil, fmt.Errorf("cannot configure agent %s: %w", a.Name, err)
	}
	if err := os.WriteFile(view.Config, []byte(config), 0o600); err != nil {
		return nil, fmt.Errorf("cannot write the configuration of agent %s: %w", a.Name, err)
	}
	for _, arg := range a.Args {
		filled, err := fill(arg)
		if err != nil {
			return nil, err
		}
		args = append(args, filled)
	}
	return args, nil
}

// withScrape inserts lines into the scrape configuration, after the targets. All agents' configurations have
// Prometheus' format there.
func withScrape(config string, lines []string) (string, error) {
	if len(lines) == 0 {
		return config, nil
	}
	const targets = "file_sd_configs:"
	before, after, found := strings.Cut(config, targets)
	if !found {
		return "", fmt.Errorf("there is no %s to put `%s` beside", targets, lines[0])
	}
	rest, after, _ := strings.Cut(after, "\n")
	indent := before[strings.LastIndexByte(before, '\n')+1:]
	var b strings.Builder
	b.WriteString(before + targets + rest + "\n")
	for _, line := range lines {
		b.WriteString(indent + line + "\n")
	}
	return b.String() + after, nil
}
