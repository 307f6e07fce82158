// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/convert/detect"
	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/promconfig"
)

// Files that a pattern names may be given beside the first, in a folder of that name. Others that are given are none of them.
func TestFilesOfAPatternMayBeGiven(t *testing.T) {
	files := map[string]string{
		"scrape.yml":               "scrape_configs: [{job_name: a}]\nscrape_config_files: [/etc/vmagent/jobs/*.yml, /etc/vmagent/one.yml]\n",
		"elsewhere/jobs/b.yml":     "[{job_name: b}]",
		"elsewhere/one.yml":        "[{job_name: c}]",
		"elsewhere/relabel.yml":    "[{job_name: none}]",
		"elsewhere/jobs/notes.txt": "[{job_name: none}]",
	}
	var none []string
	result, err := Run(Source{
		From: detect.VMAgent, Distribution: "godwit-agent",
		Files: []string{"scrape.yml", "elsewhere/jobs/b.yml", "elsewhere/one.yml", "elsewhere/relabel.yml", "elsewhere/jobs/notes.txt"},
		Read:  func(name string) ([]byte, error) { return []byte(files[name]), nil },
		Glob: func(pattern string) ([]string, error) {
			none = append(none, pattern)
			return nil, nil
		},
	})
	require.NoError(t, err)
	assert.True(t, result.Report.Complete(), "%s", result.Report.Findings)
	assert.Empty(t, none, "all were given")
	var jobs []string
	root, err := document.Parse(result.Config)
	require.NoError(t, err)
	for _, job := range document.Contents(document.Find(document.Find(document.Find(document.Find(root, "receivers"), promconfig.Scraper), "config"), "scrape_configs")) {
		jobs = append(jobs, document.Find(job, "job_name").Value)
	}
	assert.Equal(t, []string{"a", "b", "c"}, jobs)
}
