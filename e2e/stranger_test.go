// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/process"
	"github.com/godwit-otel/godwit/e2e/repository"
)

// The README's manifest refers to the checkout by this path.
const besides = "../../godwit/"

const strangersConfig = `
receivers:
  remotewrite:
    endpoint: %s
exporters:
  debug:
    verbosity: detailed
extensions:
  pulse:
    first: 1s
service:
  extensions: [pulse]
  pipelines:
    metrics: {receivers: [remotewrite], exporters: [debug]}
  telemetry: {metrics: {readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: %d}}}}]}}
`

// Someone with a manifest of their own adopts our components, as the README says.
func TestStrangersManifest(t *testing.T) {
	t.Parallel()
	binary := strangersBinary(t)
	run := func(args ...string) *process.Process {
		return process.Start(t, process.Settings{Path: binary, Args: args})
	}
	list := run("components")
	require.Zero(t, list.Wait(commandTimeout))
	inv := parseInventory(t, list.Output())
	assert.True(t, inv.has("receivers", "remotewrite"))
	assert.True(t, inv.has("extensions", "pulse"))

	addr := freeport.Addr(t)
	config := configFile(t, fmt.Sprintf(strangersConfig, addr, freeport.Get(t)))
	check := run("validate", "--config", config)
	require.Zero(t, check.Wait(commandTimeout), check.Output())

	collector := run("--config", config)
	collector.WaitLog(firstWords, "Everything is ready")
	write(t, "http://"+addr+"/api/v1/write", "geese_flying", 42)
	collector.WaitLog(firstWords, "Name: geese_flying")
	collector.WaitLog(firstWords, "Value: 42")
	collector.WaitLog(firstWords, "flowing")
	assert.Zero(t, collector.Stop(syscall.SIGTERM, drainTime))
}

// strangersBinary builds the README's manifest in a directory outside the repository.
func strangersBinary(t *testing.T) string {
	t.Helper()
	root, dir := repository.Root(t), t.TempDir()
	ocb := filepath.Join(root, ".tools", "builder")
	if _, err := os.Stat(ocb); err != nil {
		t.Fatalf("cannot find ocb: run `make tools`: %v", err)
	}
	text := readmesManifest(t)
	require.Contains(t, text, besides, "the manifest does not say where the modules come from before they are published")
	text = strings.ReplaceAll(text, besides, root+"/")
	var manifest struct {
		Dist struct {
			Name       string `yaml:"name"`
			OutputPath string `yaml:"output_path"`
		} `yaml:"dist"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(text), &manifest))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "manifest.yaml"), []byte(text), 0o600))

	build := exec.CommandContext(t.Context(), ocb, "--config", "manifest.yaml")
	build.Dir = dir
	out, err := build.CombinedOutput()
	require.NoError(t, err, "cannot build the README's manifest: %s", out)
	return filepath.Join(dir, manifest.Dist.OutputPath, manifest.Dist.Name)
}

func readmesManifest(t *testing.T) string {
	t.Helper()
	for _, block := range repository.Blocks(repository.Read(t, "README.md")) {
		if block.Comment == "tested: e2e TestStrangersManifest" && block.Language == "yaml" {
			return block.Text
		}
	}
	t.Fatal("README.md has no manifest to test: a yaml block after <!-- tested: e2e TestStrangersManifest -->")
	return ""
}

// write sends one sample by remote write 1.0.
func write(t *testing.T, url, name string, value float64) {
	t.Helper()
	raw, err := (&prompb.WriteRequest{Timeseries: []prompb.TimeSeries{{
		Labels:  []prompb.Label{{Name: "__name__", Value: name}, {Name: "job", Value: "geese"}},
		Samples: []prompb.Sample{{Timestamp: time.Now().UnixMilli(), Value: value}},
	}}}).Marshal()
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(snappy.Encode(nil, raw)))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("Content-Encoding", "snappy")
	req.Header.Set("X-Prometheus-Remote-Write-Version", "0.1.0")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	assert.Equal(t, 2, resp.StatusCode/100, "status %d", resp.StatusCode)
}
