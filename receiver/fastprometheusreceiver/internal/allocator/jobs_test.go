// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	promconfig "github.com/prometheus/prometheus/config"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func readJobs(t *testing.T, change func(*Config), body string) []*promconfig.ScrapeConfig {
	t.Helper()
	c, _ := newClient(t, newService(t, http.StatusOK, ""), change)
	answer, unknown, err := c.read([]byte(body))
	require.NoError(t, err)
	require.NoError(t, unknown)
	require.Empty(t, answer.Broken)
	return answer.Jobs
}

// Names of jobs, as the operator makes them, contain slashes, and may contain anything.
func TestWhereTargetsComeFrom(t *testing.T) {
	name := "serviceMonitor/ns/näme & co?/0#%"
	jobs := readJobs(t, func(cfg *Config) { cfg.Client.Endpoint += "/" }, `{"`+name+`": {"job_name": "`+name+`"}}`)
	u, err := url.Parse(targetsOf(t, jobs[0]).URL)
	require.NoError(t, err)
	assert.Equal(t, "/jobs/"+url.QueryEscape(name)+"/targets", u.EscapedPath())
	assert.Equal(t, url.Values{"collector_id": {"collector 1"}}, u.Query())
	assert.Equal(t, 30*time.Second, time.Duration(targetsOf(t, jobs[0]).RefreshInterval))
	assert.False(t, targetsOf(t, jobs[0]).HTTPClientConfig.FollowRedirects)
}

// Characters that are special in JSON, YAML or regular expressions are preserved in both formats.
func TestEscapes(t *testing.T) {
	want := `([^:]+)(?::\d+)?;(\d+)|"'/<>&é😀 # : yes`
	for name, body := range map[string]string{
		"json": `{"a": {"job_name": "0123", "sample_limit": 10000000, "body_size_limit": "10MB", "relabel_configs": [
			{"regex": "([^:]+)(?::\\d+)?;(\\d+)|\"'\/\u003c\u003e\u0026\u00e9\ud83d\ude00 # : yes", "replacement": "$1:${2}", "target_label": "on"}]}}`,
		"yaml": `
a:
  job_name: "0123"
  sample_limit: 10000000
  body_size_limit: 10MB
  relabel_configs:
    - regex: '([^:]+)(?::\d+)?;(\d+)|"''/<>&é😀 # : yes'
      replacement: $1:${2}
      target_label: "on"
`,
	} {
		t.Run(name, func(t *testing.T) {
			job := readJobs(t, nil, body)[0]
			assert.Equal(t, "0123", job.JobName)
			assert.EqualValues(t, 10_000_000, job.SampleLimit)
			assert.EqualValues(t, 10<<20, job.BodySizeLimit)
			assert.Equal(t, want, job.RelabelConfigs[0].Regex.String())
			assert.Equal(t, "$1:${2}", job.RelabelConfigs[0].Replacement)
			assert.Equal(t, "on", job.RelabelConfigs[0].TargetLabel)
		})
	}
}

// Settings that a job lacks come from the configuration.
func TestDefaultsOfJobs(t *testing.T) {
	jobs := readJobs(t, nil, `{"b": {"scrape_interval": "5s"}, "a": {"static_configs": [{"targets": ["x:1"]}], "scrape_timeout": "3s"}}`)
	require.Len(t, jobs, 2)
	assert.Equal(t, "a", jobs[0].JobName, "a job without a name has the one it is listed under")
	assert.Equal(t, promconfig.DefaultGlobalConfig.ScrapeInterval, jobs[0].ScrapeInterval)
	assert.Equal(t, 3*time.Second, time.Duration(jobs[0].ScrapeTimeout))
	assert.Equal(t, 5*time.Second, time.Duration(jobs[1].ScrapeInterval))
	assert.Equal(t, 5*time.Second, time.Duration(jobs[1].ScrapeTimeout), "no longer than the interval")
	targetsOf(t, jobs[0])
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(oneJob))
	f.Add([]byte(twoJobs))
	f.Add([]byte("a:\n  job_name: a\n  relabel_configs: [{regex: x}]\n"))
	c := &Client{cfg: NewDefaultConfig(), global: promconfig.DefaultGlobalConfig}
	f.Fuzz(func(t *testing.T, body []byte) {
		answer, _, err := c.read(body)
		if err != nil {
			return
		}
		jobs := answer.Jobs
		names := map[string]bool{}
		for _, job := range jobs {
			names[job.JobName] = true
			assert.Positive(t, job.ScrapeInterval)
			targetsOf(t, job)
		}
		assert.Len(t, names, len(jobs))
		for name := range answer.Broken {
			assert.NotContains(t, names, name)
		}
	})
}
