// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/convert/detect"
	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/input"
	"github.com/godwit-otel/godwit/internal/convert/promconfig"
	"github.com/godwit-otel/godwit/internal/convert/report"
)

// Files that match a pattern may be given next to the first one, in a directory of the same name. Other given files are
// ignored.
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

// runVMAgent converts the command line and files of a vmagent.
func runVMAgent(t *testing.T, files map[string]string, source Source) Result {
	t.Helper()
	source.From, source.Distribution = detect.VMAgent, "godwit-agent"
	source.Read = func(name string) ([]byte, error) {
		if text, ok := files[name]; ok {
			return []byte(text), nil
		}
		return nil, fs.ErrNotExist
	}
	source.Glob = func(string) ([]string, error) { return nil, nil }
	result, err := Run(source)
	require.NoError(t, err)
	return result
}

func TestFilesBesideArgumentsAreFound(t *testing.T) {
	result := runVMAgent(t, map[string]string{
		"here/scrape.yml": "scrape_configs: [{job_name: a}]\n", "here/relabel.yml": "[{action: labeldrop, regex: gone}]",
	}, Source{
		Files: []string{"here/scrape.yml", "here/relabel.yml"},
		Args:  []string{"-promscrape.config=/etc/vmagent/scrape.yml", "-remoteWrite.relabelConfig=/etc/vmagent/relabel.yml", "-remoteWrite.url=http://a"},
	})
	assert.True(t, result.Report.Complete(), "%s", result.Report.Findings)
	assert.Contains(t, string(result.Config), "job_name: a")
	assert.Contains(t, string(result.Config), "regex: gone")
}

func TestACommandMayEndInABackslash(t *testing.T) {
	result := runVMAgent(t, map[string]string{"run.sh": "vmagent \\\n  -remoteWrite.url=http://first \\\n  -remoteWrite.url=http://last \\"}, Source{Files: []string{"run.sh"}})
	assert.Contains(t, string(result.Config), "endpoint: http://last")
}

func TestAUnitMaySayHowItsProgramIsStarted(t *testing.T) {
	result := runVMAgent(t, map[string]string{"vmagent.service": "[Service]\nExecStart=-@/usr/bin/vmagent agent -remoteWrite.url=http://a\n"}, Source{Files: []string{"vmagent.service"}})
	assert.True(t, result.Report.Complete(), "%s", result.Report.Findings)
}

func TestARuleThatFillsNothing(t *testing.T) {
	result := runVMAgent(t, map[string]string{"flags": "-remoteWrite.url=http://a\n-remoteWrite.relabelConfig=r.yml\n", "r.yml": "[{replacement: '{{job}}-a'}]"},
		Source{Files: []string{"flags", "r.yml"}})
	assert.Contains(t, result.Report.Findings, report.Finding{Kind: report.Lost, File: "r.yml", Line: 1, Path: "[0]", Text: "the rule is left out, for its `target_label`: there is none"})
}

func TestAllVariablesAreTold(t *testing.T) {
	in := input.New(input.Given{})
	tellVariables(in, []byte("a: ${env:A}${B}$${C}$$${D}${E:-no}"))
	assert.Equal(t, []report.Finding{{Kind: report.Note, Text: "environment variables that the collector must have: A, B, D"}}, in.Report.Findings)
}
