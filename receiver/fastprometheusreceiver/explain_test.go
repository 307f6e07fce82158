// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/typo"
)

func TestFaultsOfTheConfigurationAreFound(t *testing.T) {
	const well = "- {job_name: well, static_configs: [{targets: [a]}]}\n"
	for name, test := range map[string]struct{ text, want string }{
		"unknown key": {
			"scrape_configs:\n" + well + "- {job_name: shop, static_config: [{targets: [a]}]}\n",
			"cannot read `config`: job \"shop\", `static_config`: there is no key `static_config`: did you mean `static_configs`?",
		},
		"unknown key of a rule": {
			"scrape_configs:\n" + well + "- {job_name: shop, relabel_configs: [{target_label: a, replacement: b}, {sourcelabels: [a], target_label: b}]}\n",
			"job \"shop\", `relabel_configs`, element 2: there is no key `sourcelabels`: did you mean `source_labels`?",
		},
		"at the wrong place": {"scrape_configs:\n- {job_name: shop, target_label: a}\n", "job \"shop\", `target_label`: there is no key `target_label` here"},
		"nothing like it":    {"scrape_configs:\n- {job_name: shop, plumage: grey}\n", "job \"shop\", `plumage`: there is no key `plumage`"},
		"duration":           {"scrape_configs:\n" + well + "- {job_name: shop, scrape_interval: 10x}\n", "job \"shop\", `scrape_interval`: unknown unit \"x\""},
		"regex": {
			"scrape_configs:\n- {job_name: shop, metric_relabel_configs: [{source_labels: [a], regex: '(', action: drop}]}\n",
			"job \"shop\", `metric_relabel_configs`: error parsing regexp",
		},
		"two keys":        {"scrape_configs:\n- {job_name: shop, scrape_interval: 1s, scrape_timeout: 2s}\n", "job \"shop\": scrape timeout greater than scrape interval"},
		"global":          {"global: {scrape_interval: soon}\n", "global, `scrape_interval`: not a valid duration string"},
		"no name":         {"scrape_configs:\n" + well + "- {static_configs: [{targets: [a]}]}\n", "scrape_configs[1]: job_name is empty"},
		"not a mapping":   {"scrape_configs: [shop]\n", "scrape_configs[0]: it cannot be the text `shop`"},
		"a list":          {"scrape_configs:\n- {job_name: shop, scrape_interval: [1s]}\n", "job \"shop\", `scrape_interval`: it cannot be a list"},
		"only together":   {"scrape_configs:\n" + well + well, "two jobs have the name \"well\""},
		"not in a build":  {"scrape_configs:\n- {job_name: shop, kuma_sd_configs: [{server: 'http://a'}]}\n", "this build has no service discovery `kuma_sd_configs`"},
		"unknown section": {"scrape_config: []\n", "there is no key `scrape_config`"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := LoadPrometheus([]byte(test.text))
			require.ErrorContains(t, err, test.want)
			require.NotContains(t, err.Error(), "line ", "it is not the user's")
			require.NotContains(t, err.Error(), "config.ScrapeConfig")
		})
	}
}

func TestFaultsOfManyJobsAreFew(t *testing.T) {
	text := []byte("scrape_configs:\n")
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		text = append(text, "- {job_name: "+name+", scrape_interval: 10x}\n"...)
	}
	_, err := LoadPrometheus(text)
	require.ErrorContains(t, err, "job \"e\"")
	require.ErrorContains(t, err, "and more jobs")
	require.NotContains(t, err.Error(), "job \"f\"")
}

func TestFaultsComeWithTheirLine(t *testing.T) {
	const text = `scrape_configs:
- job_name: well
  scrape_interval: 1s
- job_name: shop
  scrape_interval: 2s
  relabel_configs:
  - target_label: a
    replacement: b
  - source_labels: [a]
    regex: (.*)
    target_label: b
    action: replace
  static_configs:
  - targets: [a]
`
	name := filepath.Join(t.TempDir(), "prometheus.yml")
	typo.LookIn(name)
	defer typo.LookIn()
	for _, test := range []struct{ from, to, want string }{
		{"(.*)", "'(.*'", "job \"shop\", `relabel_configs`, element 2 (" + name + ":10): error parsing regexp"},
		{"action: replace", "action: replce", name + ":12): unknown relabel action"},
		{"interval: 2s", "interval: 2 seconds", "job \"shop\", `scrape_interval` (" + name + ":5): unknown unit"},
		{"[a]\n", "a\n", "job \"shop\", `"},
		{"targets: [a]", "targets: a", "job \"shop\", `static_configs` (" + name + ":14): it must be a list, not the text `a`: in brackets, or each element on a line"},
		{"interval: 2s", "interval: 2s\n  scrape_timeout: 3s", "job \"shop\" (" + name + ":4): scrape timeout greater than scrape interval"},
		{"shop", "well", "two jobs have the name \"well\" (" + name + ":2 and " + name + ":4)"},
		{"scrape_configs:\n", "global:\n  scrape_interval: soon\nscrape_configs:\n", "global, `scrape_interval` (" + name + ":2): "},
	} {
		wrong := strings.Replace(text, test.from, test.to, 1)
		require.NotEqual(t, text, wrong)
		require.NoError(t, os.WriteFile(name, []byte(wrong), 0o600))
		_, err := LoadPrometheus([]byte(wrong))
		require.ErrorContains(t, err, test.want)
	}
}
