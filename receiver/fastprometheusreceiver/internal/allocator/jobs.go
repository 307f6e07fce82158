// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	promconfig "github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery"
	"go.yaml.in/yaml/v2"
)

// shardVariable is what an operator's jobs may have in place of the number of this collector.
const shardVariable = "$(SHARD)"

// withShard puts the number of this collector into an answer: the environment's SHARD, or 0.
func withShard(body []byte, lookup func(string) (string, bool)) []byte {
	shard, ok := lookup("SHARD")
	if !ok {
		shard = "0"
	}
	return bytes.ReplaceAll(body, []byte(shardVariable), []byte(shard))
}

// read makes jobs of an answer, in the order of their names. What the jobs say that this version of Prometheus does not
// know is returned too, and left out: the allocator may be newer.
func (c *Client) read(body []byte) (jobs []*promconfig.ScrapeConfig, unknown, err error) {
	trees, err := parse(body)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot parse the jobs (%d bytes): %w", len(body), err)
	}
	var errs, unknowns []error
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(trees)) {
		job, unknown, err := c.job(name, trees[name])
		if err == nil && seen[job.JobName] {
			err = errors.New("there are two of them")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("cannot use job %q: %w", name, err))
			continue
		}
		if unknown != nil {
			unknowns = append(unknowns, fmt.Errorf("job %q: %w", name, unknown))
		}
		seen[job.JobName] = true
		jobs = append(jobs, job)
	}
	return jobs, errors.Join(unknowns...), errors.Join(errs...)
}

// job makes one job, whose targets the allocator names.
func (c *Client) job(name string, tree map[string]any) (job *promconfig.ScrapeConfig, unknown, err error) {
	if tree == nil {
		return nil, nil, errors.New("it is empty")
	}
	for key := range tree {
		// How the allocator finds targets is its own business, and need not be in this binary.
		if strings.HasSuffix(key, "_sd_configs") || key == "static_configs" {
			delete(tree, key)
		}
	}
	if tree["job_name"] == nil {
		tree["job_name"] = name
	}
	text, err := yaml.Marshal(tree)
	if err != nil {
		return nil, nil, err
	}
	job = new(promconfig.ScrapeConfig)
	if unknown = yaml.UnmarshalStrict(text, job); unknown != nil {
		job = new(promconfig.ScrapeConfig)
		if err := yaml.Unmarshal(text, job); err != nil {
			return nil, nil, err
		}
	}
	targets := c.discovery
	targets.URL = c.cfg.targetsURL(name)
	job.ServiceDiscoveryConfigs = discovery.Configs{&targets}
	if c.cfg.Scrape.read != nil {
		job.HTTPClientConfig = *c.cfg.Scrape.read
	}
	return job, unknown, job.Validate(c.global)
}

// parse reads an answer: JSON, or YAML.
func parse(body []byte) (map[string]map[string]any, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, errors.New("there is nothing in it: the allocator may not be ready")
	}
	var out map[string]map[string]any
	if !json.Valid(body) {
		return out, yaml.Unmarshal(body, &out)
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&out); err != nil {
		return nil, err
	}
	for _, tree := range out {
		withNumbers(tree)
	}
	return out, nil
}

// withNumbers replaces JSON's numbers, which YAML would take for strings.
func withNumbers(value any) any {
	switch v := value.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64() // what is beyond a float64 becomes infinite, which no setting takes
		return f
	case map[string]any:
		for key := range v {
			v[key] = withNumbers(v[key])
		}
	case []any:
		for i := range v {
			v[i] = withNumbers(v[i])
		}
	}
	return value
}
