// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/process"
	"github.com/godwit-otel/godwit/e2e/repository"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/internal/convert"
	"github.com/godwit-otel/godwit/internal/convert/detect"
)

const (
	converter = "internal/convert/"
	// aPrometheusFile is a user's prometheus.yml with a server to write to.
	aPrometheusFile = `
global:
  scrape_interval: 500ms
  scrape_timeout: 500ms
  external_labels: {cluster: main, version: 1.10, flock: none}
rule_files: [rules.yml]
scrape_configs:
  - job_name: geese
    file_sd_configs: [{files: [targets.yml]}]
    relabel_configs:
      - source_labels: [__address__]
        regex: "(.*):(.*)"
        target_label: host
        replacement: ${1}-$2
remote_write:
  - url: %s
    basic_auth: {username: me, password_file: password}
    write_relabel_configs:
      - {source_labels: [__name__], regex: go_.*, action: drop}
`
)

// A converted prometheus.yml runs, and sends the series that Prometheus would.
func TestConvertedPrometheusFileRuns(t *testing.T) {
	t.Parallel()
	server := rwserver.New(t, rwserver.Options{Encodings: []string{rwserver.Snappy}})
	dir := t.TempDir()
	target := geese(t)
	for name, text := range map[string]string{
		"prometheus.yml": fmt.Sprintf(aPrometheusFile, server.URL()),
		"password":       "secret",
		"targets.yml":    fmt.Sprintf("- targets: [%q]\n", target.Addr()),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	c, output := startConverted(t, dir, filepath.Join(dir, "prometheus.yml"))
	assert.Contains(t, output, "rule_files: rules are evaluated by the server")
	host := strings.Replace(target.Addr(), ":", "-", 1)
	arrives(t, server, "geese_flying", "job", "geese", "cluster", "main", "version", "1.10", "host", host, "flock", "north")
	arrives(t, server, "up", "job", "geese", "flock", "none")
	assert.Empty(t, server.Series("go_threads"), "its rule drops it")
	request := http.Request{Header: server.Requests()[0].Header}
	user, password, _ := request.BasicAuth()
	assert.Equal(t, []string{"me", "secret"}, []string{user, password})
	assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))
}

// Converted flags of vmagent, with the files that they name, run: labels are added last, rules with conditions drop and
// keep the right series, and the queue is on disk.
func TestConvertedVMAgentRuns(t *testing.T) {
	t.Parallel()
	server := rwserver.New(t, rwserver.Options{Versions: []string{rwserver.V1}}) // as VictoriaMetrics
	dir := t.TempDir()
	target := geese(t)
	for name, text := range map[string]string{
		"scrape.yml":  fmt.Sprintf("global: {scrape_interval: 0.5s}\nscrape_configs: [{job_name: geese, static_configs: [{targets: [%q]}]}]\n", target.URL()),
		"relabel.yml": "- {if: 'go_threads{job=~\"g.*\"}', action: drop}\n- {if: '{flock!=\"south\",job=\"geese\"}', target_label: dc, replacement: replaced}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	data := filepath.Join(dir, "data")
	c, _ := startConverted(t, dir, "--dir", dir, "--", "-promscrape.config=scrape.yml", "-remoteWrite.url="+server.URL(),
		"-remoteWrite.urlRelabelConfig=relabel.yml", "-remoteWrite.label=env=test,dc=last", "-remoteWrite.tmpDataPath="+data, "-remoteWrite.maxDiskUsagePerURL=100MB")
	arrives(t, server, "geese_flying", "job", "geese", "env", "test", "dc", "last", "instance", target.Addr())
	arrives(t, server, "scrape_timeout_seconds", "job", "geese") // vmagent always sends it
	for _, series := range server.Series("geese_flying") {
		assert.NotContains(t, fmt.Sprint(series.Labels), "__tmp", "labels of conditions are gone")
	}
	arrives(t, server, "up", "job", "geese")
	assert.Empty(t, server.Series("go_threads"), "a rule drops it")
	files, err := os.ReadDir(data)
	require.NoError(t, err)
	assert.NotEmpty(t, files, "there is a queue on disk")
	assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))
	assert.Empty(t, server.Violations())
}

// startConverted runs the converter, and the agent on the result.
func startConverted(t *testing.T, dir string, args ...string) (c *collector, report string) {
	t.Helper()
	converted := filepath.Join(dir, "godwit.yaml")
	exit, output := command(t, "godwit-agent", nil, append([]string{"convert", "-o", converted}, args...)...)
	require.Zero(t, exit, output)
	telemetry := freeport.Get(t)
	c = &collector{telemetry: fmt.Sprintf("http://127.0.0.1:%d/metrics", telemetry)}
	c.Process = process.Start(t, process.Settings{Path: process.Binary(t, "godwit-agent"), Args: []string{
		"--config", converted,
		"--config", configFile(t, fmt.Sprintf(exampleTelemetry, telemetry)),
		"--config", configFile(t, "extensions: {console: {endpoint: "+freeport.Addr(t)+"}}"),
		"--config", configFile(t, tryOften),
	}})
	c.running()
	return c, output
}

func TestCheckSaysWhatAFileIs(t *testing.T) {
	t.Parallel()
	prometheus := configFile(t, fmt.Sprintf(strings.Replace(aPrometheusFile, "password_file: password", "password: secret", 1), "http://127.0.0.1:1"))
	for _, d := range []string{"godwit-agent", repository.Full} {
		exit, output := command(t, d, nil, "check", prometheus)
		assert.Zero(t, exit, output)
		assert.Contains(t, output, "is a configuration of Prometheus\n")
		assert.Contains(t, output, "lost: "+prometheus+":6: rule_files")
		assert.True(t, strings.HasSuffix(output, "\nvalid"), output)
	}
	exit, output := command(t, "godwit-agent", nil, "check", configFile(t, faulty("exporters", "remotewrite", "{endpont: http://localhost:1}")))
	assert.Equal(t, 1, exit)
	assert.Contains(t, output, "is a configuration of an OpenTelemetry collector\n")
	assert.Contains(t, output, "endpoint")
	assert.True(t, strings.HasSuffix(output, "\nnot valid"), output)
}

func TestAPrometheusFileIsRefusedByName(t *testing.T) {
	eachDistribution(t, func(t *testing.T, d repository.Distribution) {
		file := configFile(t, fmt.Sprintf(aPrometheusFile, "http://127.0.0.1:1"))
		for _, args := range [][]string{{"--config", file}, {"validate", "--config=file:" + file}} {
			exit, output := command(t, d.Name, nil, args...)
			assert.Equal(t, 1, exit)
			assert.Contains(t, output, "it is a configuration of Prometheus")
			assert.Contains(t, output, d.Name+" convert "+file)
		}
		exit, output := command(t, d.Name, nil, "--help")
		assert.Zero(t, exit)
		assert.Contains(t, output, "\n  convert ")
		assert.Contains(t, output, "\n  validate ")
	})
}

// The full distribution accepts all that the converter writes, for its own scenarios and for Prometheus' test files.
// They are merged into one configuration under distinct names.
func TestConvertedConfigurationsAreValid(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	all := newUnion()
	scenarios, err := filepath.Glob(filepath.Join(repository.Root(t), converter, "testdata", "*.txtar"))
	require.NoError(t, err)
	require.NotEmpty(t, scenarios)
	for _, file := range scenarios {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		_, want, _ := strings.Cut(string(text), "-- want.yaml --\n")
		config, report, _ := strings.Cut(want, "-- want.report --\n")
		if config == "" || strings.Contains(report, "no distribution of Godwit has it: build one") {
			continue
		}
		config = strings.NewReplacer("/etc/in/", dir+"/", "/var/run/secrets/", dir+"/").Replace(config)
		all.add(t, filepath.Base(file), config)
	}
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/prometheus/prometheus").Output()
	require.NoError(t, err)
	testdata := filepath.Join(strings.TrimSpace(string(module)), "config", "testdata")
	copied := filepath.Join(dir, "testdata")
	require.NoError(t, os.CopyFS(copied, os.DirFS(testdata)))
	files, err := filepath.Glob(filepath.Join(copied, "*.good.yml"))
	require.NoError(t, err)
	for _, file := range files {
		result, err := convert.Run(convert.Source{From: detect.Prometheus, Files: []string{file}, Distribution: repository.Full, Read: os.ReadFile, Glob: filepath.Glob})
		if err != nil {
			require.ErrorContains(t, err, "there is nothing to scrape", file)
			continue
		}
		if filepath.Base(file) != "remote_write_retry_on_rate_limit.good.yml" { // its destinations are not URLs
			all.add(t, filepath.Base(file), string(result.Config))
		}
	}
	assert.Greater(t, all.n, 40)
	text := all.text(t)
	// The files of certificates and tokens must exist. Those named in other files are in the same directory.
	text += "# " + copied + "/scrape_configs/valid_cert_file " + copied + "/scrape_configs/valid_key_file\n"
	for _, file := range regexp.MustCompile(regexp.QuoteMeta(dir)+`[^\s"',\]}]*`).FindAllString(text, -1) {
		if _, err := os.Stat(file); err != nil && !strings.Contains(file, "*") {
			require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
			require.NoError(t, os.WriteFile(file, nil, 0o600))
		}
	}
	env := []string{
		"TARGET=a:1", "TOKEN=a", "TENANT=a", "TENANT=a", "VM_remoteWrite_bearerToken=a", "VM_HOST=a", "POD_NAME=a", "API_KEY=a", "CLUSTER=a", "REGION=a", "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=a",
		"URL=http://127.0.0.1:1/", "INTERVAL=30s", "JOB=a", "LIMIT=100", "HONOR=true", "HOST=a", "OTHER=b", "PORT=80", "MEMBERS=3",
	}
	exit, output := command(t, repository.Full, env, "validate", "--config", configFile(t, text))
	assert.Zero(t, exit, output)
}

// A union merges several configurations into one.
type union struct {
	sections  map[string]map[string]any
	pipelines map[string]any
	uses      []any
	n         int
}

func newUnion() *union {
	return &union{sections: map[string]map[string]any{"receivers": {}, "processors": {}, "exporters": {}, "extensions": {}}, pipelines: map[string]any{}}
}

// add merges a configuration, with a mark on each name.
func (u *union) add(t *testing.T, name, text string) {
	t.Helper()
	u.n++
	mark := "_" + strconv.Itoa(u.n) + "_" + name
	marked := func(id any) any {
		if !strings.Contains(fmt.Sprint(id), "/") {
			return fmt.Sprint(id) + "/" + mark
		}
		return fmt.Sprint(id) + mark
	}
	var tree map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &tree), "%s:\n%s", name, text)
	for kind, section := range u.sections {
		components, _ := tree[kind].(map[string]any)
		for id, settings := range components {
			references(settings, marked)
			if tree, ok := settings.(map[string]any); ok && strings.HasPrefix(id, "sigv4auth") {
				delete(tree, "assume_role") // it would call AWS during validation
			}
			section[fmt.Sprint(marked(id))] = settings
		}
	}
	service, _ := tree["service"].(map[string]any)
	extensions, _ := service["extensions"].([]any)
	for _, id := range extensions {
		u.uses = append(u.uses, marked(id))
	}
	pipelines, _ := service["pipelines"].(map[string]any)
	for id, pipeline := range pipelines {
		parts, _ := pipeline.(map[string]any)
		for _, part := range parts {
			list, _ := part.([]any)
			for i := range list {
				list[i] = marked(list[i])
			}
		}
		u.pipelines[fmt.Sprint(marked(id))] = pipeline
	}
}

// references marks the extensions that settings refer to.
func references(settings any, marked func(any) any) {
	tree, _ := settings.(map[string]any)
	for _, path := range [][2]string{{"queue", "storage"}, {"auth", "authenticator"}} {
		inner, _ := tree[path[0]].(map[string]any)
		if id, ok := inner[path[1]]; ok {
			inner[path[1]] = marked(id)
		}
	}
	if client, ok := tree["http"].(map[string]any); ok {
		references(client, marked)
	}
}

func (u *union) text(t *testing.T) string {
	t.Helper()
	tree := map[string]any{"service": map[string]any{"extensions": u.uses, "pipelines": u.pipelines}}
	for kind, section := range u.sections {
		tree[kind] = section
	}
	text, err := yaml.Marshal(tree)
	require.NoError(t, err)
	return string(text)
}

// The converter's table of the distributions' components is right. GODWIT_UPDATE=1 rewrites it.
func TestConvertKnowsTheDistributions(t *testing.T) {
	const file = converter + "components/components.txt"
	have := map[string][]string{}
	for _, d := range repository.Distributions() {
		inv := components(t, d.Name)
		for _, kind := range []string{"receivers", "processors", "exporters", "connectors", "extensions"} {
			for _, c := range inv.Kinds[kind] {
				have[kind+" "+c.Name] = append(have[kind+" "+c.Name], d.Name)
			}
		}
		for _, name := range discoveriesOf(t, d) {
			have["discovery "+name] = append(have["discovery "+name], d.Name)
		}
	}
	var want strings.Builder
	want.WriteString("# What is built into which distribution: a kind of component, a type, and the distributions that have it.\n")
	kinds := []string{"receivers", "processors", "exporters", "connectors", "extensions", "discovery"}
	for _, key := range slices.SortedFunc(maps.Keys(have), func(a, b string) int {
		x, y := strings.Fields(a), strings.Fields(b)
		return cmp.Or(cmp.Compare(slices.Index(kinds, x[0]), slices.Index(kinds, y[0])), cmp.Compare(x[1], y[1]))
	}) {
		slices.Sort(have[key])
		fmt.Fprintf(&want, "%s %s\n", key, strings.Join(have[key], " "))
	}
	if os.Getenv("GODWIT_UPDATE") != "" {
		require.NoError(t, os.WriteFile(filepath.Join(repository.Root(t), file), []byte(want.String()), 0o600))
	}
	assert.Equal(t, want.String(), repository.Read(t, file))
}

var discoveryKey = regexp.MustCompile(`(?m)^\t([a-z0-9]+)_sd_configs`)

// discoveriesOf returns the service discoveries that a distribution's build tags link, beside those that are always
// linked.
func discoveriesOf(t *testing.T, d repository.Distribution) []string {
	t.Helper()
	m := repository.ReadManifest(t, d)
	if !strings.Contains(strings.Join(m.Gomods["receivers"], " "), "fastprometheusreceiver") {
		return nil
	}
	tags := strings.Split(m.Dist.BuildTags, ",")
	var names []string
	for _, match := range discoveryKey.FindAllStringSubmatch(repository.Read(t, converter+"promconfig/keys.txt"), -1) {
		name := match[1]
		always := name == "file" || name == "http"
		if !always && (!slices.Contains(tags, "remove_all_sd") || slices.Contains(tags, "enable_"+name+"_sd")) {
			names = append(names, name)
		}
	}
	return names
}
