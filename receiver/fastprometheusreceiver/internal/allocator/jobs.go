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

// shardVariable is what jobs from an operator may contain in place of this collector's number.
const shardVariable = "$(SHARD)"

// withShard puts the number of this collector into an answer: the environment's SHARD, or 0.
func withShard(body []byte, lookup func(string) (string, bool)) []byte {
	shard, ok := lookup("SHARD")
	if !ok {
		shard = "0"
	}
	return bytes.ReplaceAll(body, []byte(shardVariable), []byte(shard))
}

// read makes jobs of an answer, sorted by name. A wrong job does not affect the others. Keys that this version of
// Prometheus does not know are ignored and returned as unknown, since the allocator may be newer.
func (c *Client) read(body []byte) (out Answer, unknown, err error) {
	trees, err := parse(body)
	if err != nil {
		return out, nil, fmt.Errorf("cannot parse the jobs (%d bytes): %w", len(body), err)
	}
	var unknowns []error
	seen := map[string]bool{}
	out.Broken = map[string]error{}
	for _, name := range slices.Sorted(maps.Keys(trees)) {
		job, unknown, err := c.job(name, trees[name])
		if err == nil && seen[job.JobName] {
			err = fmt.Errorf("there is another one called %q", job.JobName)
		}
		if err != nil {
			out.Broken[nameOf(name, trees[name], seen)] = err
			continue
		}
		if unknown != nil {
			unknowns = append(unknowns, fmt.Errorf("job %q: %w", name, unknown))
		}
		seen[job.JobName] = true
		delete(out.Broken, job.JobName) // one of the two jobs of that name is valid
		out.Jobs = append(out.Jobs, job)
	}
	return out, errors.Join(unknowns...), nil
}

// nameOf is the name of a wrong job: its own job_name, or else its key in the list.
func nameOf(listed string, tree any, seen map[string]bool) string {
	if tree, ok := tree.(map[string]any); ok {
		if name, ok := tree["job_name"].(string); ok && !seen[name] {
			return name
		}
	}
	return listed
}

// job makes one job, whose targets come from the allocator.
func (c *Client) job(name string, value any) (job *promconfig.ScrapeConfig, unknown, err error) {
	tree, ok := value.(map[string]any)
	if !ok || tree == nil {
		return nil, nil, errors.New("it is empty, or no job at all")
	}
	for key := range tree {
		// How the allocator finds targets is its own business, need not be in this binary, and reads no files here.
		if strings.HasSuffix(key, "_sd_configs") || key == "static_configs" {
			delete(tree, key)
		}
	}
	if c.cfg.Scrape.read != nil {
		for _, key := range clientKeys {
			delete(tree, key)
		}
	}
	if err := c.cfg.checkFiles(tree); err != nil {
		return nil, nil, err
	}
	var leftOut error
	if file := tree[failureLog]; file != nil {
		leftOut = fmt.Errorf("`%s` is for jobs of the configuration only: %q is not written", failureLog, file)
		delete(tree, failureLog)
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
	return job, errors.Join(leftOut, unknown), job.Validate(c.global)
}

// failureLog is the key of a job that has a log file written. Jobs that come over the network must not write files
// here.
const failureLog = "scrape_failure_log_file"

// parse reads an answer: JSON, or YAML.
func parse(body []byte) (map[string]any, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, errors.New("there is nothing in it: the allocator may not be ready")
	}
	var out map[string]any
	if !json.Valid(body) {
		if err := yaml.Unmarshal(body, &out); err != nil {
			return nil, err
		}
		for name, value := range out {
			out[name] = withStrings(value)
		}
		return out, isList(out)
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&out); err != nil {
		return nil, err
	}
	for _, tree := range out {
		withNumbers(tree)
	}
	return out, isList(out)
}

// isList returns an error if an answer is not a list of jobs.
func isList(jobs map[string]any) error {
	if jobs == nil {
		return errors.New("there is no list of jobs in it")
	}
	return nil
}

// withStrings returns the value with strings for the keys of its maps, which YAML allows to be anything.
func withStrings(value any) any {
	switch v := value.(type) {
	case map[any]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[fmt.Sprint(key)] = withStrings(value)
		}
		return out
	case []any:
		for i := range v {
			v[i] = withStrings(v[i])
		}
	}
	return value
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
