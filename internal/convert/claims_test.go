// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/detect"
	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/input"
	"github.com/godwit-otel/godwit/internal/convert/promconfig"
	"github.com/godwit-otel/godwit/internal/racetest"
)

// corpus returns configurations by their names: those of the scenarios, and those of Prometheus' own tests.
func corpus(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	scenarios, err := filepath.Glob("testdata/*.txtar")
	require.NoError(t, err)
	for _, file := range scenarios {
		a := readArchive(t, file)
		for _, name := range a.names {
			if strings.HasPrefix(name, "prometheus.y") || strings.HasPrefix(name, "scrape.y") || name == "otel.yaml" {
				all[filepath.Base(file)+"/"+name] = a.files[name]
			}
		}
	}
	for _, file := range prometheusTestdata(t) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		all[filepath.Base(file)] = string(text)
	}
	return all
}

// prometheusTestdata returns the files that Prometheus' own tests load.
func prometheusTestdata(t *testing.T) []string {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/prometheus/prometheus").Output()
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "config", "testdata", "*.good.yml"))
	require.NoError(t, err)
	require.Greater(t, len(files), 40)
	return files
}

// outcome returns a result as text, and the paths that its findings name.
func outcome(t *testing.T, text string) (all string, paths []string) {
	t.Helper()
	result, err := convertText(t, detect.Auto, text)
	if err != nil {
		return err.Error(), nil
	}
	var report strings.Builder
	_, err = result.Report.WriteTo(&report)
	require.NoError(t, err)
	paths = []string{}
	for _, f := range result.Report.Findings {
		paths = append(paths, f.Path)
	}
	return string(result.Config) + report.String(), paths
}

// named reports whether a report names a path, or a part that contains it.
func named(path string, paths []string) bool {
	for _, p := range paths {
		if p != "" && (p == path || strings.HasPrefix(path, p+".") || strings.HasPrefix(path, p+"[")) {
			return true
		}
	}
	return false
}

// visit calls f for each value of a tree with its path.
func visit(n *yaml.Node, path string, f func(path string, n *yaml.Node)) {
	f(path, n)
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			visit(n.Content[i+1], strings.TrimPrefix(path+"."+n.Content[i].Value, "."), f)
		}
	case yaml.SequenceNode:
		for i, c := range n.Content {
			visit(c, path+"["+strconv.Itoa(i)+"]", f)
		}
	}
}

func printed(t *testing.T, root *yaml.Node) string {
	t.Helper()
	text, err := yaml.Marshal(root)
	require.NoError(t, err)
	return string(text)
}

// Every value of an input is in the result, or the report names it: any other value leads to another result or report.
func TestNothingIsLostSilently(t *testing.T) {
	racetest.Sequential(t)
	for name, text := range corpus(t) {
		t.Run(name, func(t *testing.T) {
			root, err := document.Parse([]byte(text))
			require.NoError(t, err)
			if root == nil {
				return
			}
			before, paths := outcome(t, printed(t, root))
			if paths == nil {
				assert.Contains(t, before, input.ErrNothing.Error())
				return
			}
			leaves := 0
			visit(root, "", func(path string, n *yaml.Node) {
				if n.Kind != yaml.ScalarNode || document.IsNull(n) || named(path, paths) {
					return
				}
				leaves++
				was := n.Value
				n.Value = another(was)
				after, _ := outcome(t, printed(t, root))
				n.Value = was
				assert.NotEqual(t, before, after, "%s: %s does nothing, and no finding names it", path, was)
			})
		})
	}
}

// another returns a different value of the same kind.
func another(value string) string {
	if n, err := strconv.Atoi(value); err == nil {
		return strconv.Itoa(n + 1)
	}
	if _, err := promconfig.Duration(value); err == nil {
		return "17s"
	}
	switch strings.ToLower(value) {
	case "true", "yes", "on":
		return "false"
	case "false", "no", "off":
		return "true"
	}
	return value + "zz"
}

// An unknown key is reported wherever it is, unless any key is allowed there, and then it is in the result.
func TestUnknownKeysAreReported(t *testing.T) {
	racetest.Sequential(t)
	const key = "zz_nobody_knows"
	for name, text := range corpus(t) {
		t.Run(name, func(t *testing.T) {
			root, err := document.Parse([]byte(text))
			require.NoError(t, err)
			if root == nil {
				return
			}
			_, paths := outcome(t, printed(t, root))
			if paths == nil {
				return // nothing to convert is an error
			}
			visit(root, "", func(path string, n *yaml.Node) {
				if n.Kind != yaml.MappingNode || path != "" && named(path, paths) {
					return
				}
				was := n.Content
				n.Content = append(append([]*yaml.Node{}, was...), document.StringNode(key), document.StringNode("x"))
				after, _ := outcome(t, printed(t, root))
				n.Content = was
				assert.Contains(t, after, key, "at %s", path)
			})
		})
	}
}

// Nothing that Prometheus loads is reported as unknown.
func TestPrometheusKeysAreKnown(t *testing.T) {
	for _, file := range prometheusTestdata(t) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		result, err := convertText(t, detect.Prometheus, string(text))
		if err != nil {
			require.ErrorIs(t, err, input.ErrNothing, file)
			continue
		}
		for _, f := range result.Report.Findings {
			assert.NotContains(t, f.Text, "knows no such key", "%s: %s", file, f)
			assert.NotContains(t, f.Text, "not known", "%s: %s", file, f)
		}
	}
}

// Every output is valid YAML, and a collector expands nothing in it except the intended variables.
func TestDollarsAreEscaped(t *testing.T) {
	for name, text := range corpus(t) {
		if strings.Contains(name, "otel") {
			continue
		}
		result, err := convertText(t, detect.Auto, text)
		if err != nil {
			continue // not a configuration, or empty: see the other tests
		}
		var tree map[string]any
		require.NoError(t, yaml.Unmarshal(result.Config, &tree), name)
		plain := strings.ReplaceAll(string(result.Config), "$$", "")
		plain = strings.ReplaceAll(plain, "${env:", "")
		assert.NotContains(t, plain, "$", name)
	}
}

func FuzzRun(f *testing.F) {
	scenarios, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range scenarios {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		_, input, _ := strings.Cut(string(text), " --\n")
		input, more, _ := strings.Cut(input, "\n-- ")
		_, more, _ = strings.Cut(more, " --\n")
		more, _, _ = strings.Cut(more, "\n-- ")
		for _, kind := range []string{"auto", "prometheus", "vmagent", "collector"} {
			f.Add(input, kind, more)
		}
	}
	// Files named by flags, whatever their name is, are the second text.
	for _, flag := range []string{"promscrape.config", "remoteWrite.relabelConfig", "streamAggr.config"} {
		for _, file := range []string{"vmagent-aggregate", "vmagent-relabel", "vmagent-jobs", "vmagent-unit"} {
			text, err := os.ReadFile("testdata/" + file + ".txtar")
			if err != nil {
				f.Fatal(err)
			}
			for part := range strings.SplitSeq(string(text), " --\n") {
				part, _, _ = strings.Cut(part, "\n-- ")
				f.Add("-"+flag+"=b\n", "vmagent", part)
			}
		}
	}
	f.Fuzz(func(t *testing.T, text, kind, more string) {
		result, err := Run(Source{
			From: detect.Kind(kind), Files: []string{"a"}, Dir: "/d", Distribution: "godwit-agent",
			Read: func(name string) ([]byte, error) {
				if name != "a" {
					return []byte(more), nil
				}
				return []byte(text), nil
			},
			Glob: func(string) ([]string, error) { return []string{"c"}, nil },
		})
		if err != nil {
			return
		}
		var tree yaml.Node
		if err := yaml.Unmarshal(result.Config, &tree); err != nil && !errors.Is(err, document.ErrAliases) {
			t.Fatalf("%v in\n%s", err, result.Config)
		}
	})
}

// None of Prometheus' own test files is mistaken for a collector's configuration, and none of a collector's for one of
// Prometheus.
func TestIsPrometheus(t *testing.T) {
	for _, file := range prometheusTestdata(t) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if root, err := document.Parse(text); err == nil && document.Find(root, "scrape_configs") != nil {
			assert.True(t, detect.IsPrometheus(text), file)
		}
	}
	assert.False(t, detect.IsPrometheus([]byte(aCollector)))
	assert.False(t, detect.IsPrometheus([]byte("receivers:\n  prometheus:\n    config:\n      scrape_configs:\n")))
	assert.False(t, detect.IsPrometheus([]byte("a: b\n")))
}
