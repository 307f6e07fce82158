// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/prometheus/common/model"
	promconfig "github.com/prometheus/prometheus/config"
	promhttp "github.com/prometheus/prometheus/discovery/http"
	"github.com/prometheus/prometheus/discovery/targetgroup"
)

// sourceLabel is a label that HTTP discovery adds to targets.
const sourceLabel = "__meta_url"

// Has reports whether a job's targets come from this allocator.
func (c *Client) Has(job *promconfig.ScrapeConfig) bool {
	for _, sd := range job.ServiceDiscoveryConfigs {
		if from, ok := sd.(*promhttp.SDConfig); ok && from.URL == c.cfg.targetsURL(job.JobName) {
			return true
		}
	}
	return false
}

// nobodys is the name of a job that no collector has targets of.
const nobodys = "godwit.members"

// Refresh is how often the targets of a job are asked for.
func (c *Client) Refresh() time.Duration { return time.Duration(c.discovery.RefreshInterval) }

// Place identifies this collector among those that ask the allocator.
func (c *Client) Place() uint64 { return xxhash.Sum64String(c.cfg.CollectorID) }

// Members returns the names of all collectors. It asks for a job that has no targets: the answer lists every collector.
func (c *Client) Members(ctx context.Context) ([]string, error) {
	all, err := c.collectors(ctx, nobodys)
	return slices.Collect(maps.Keys(all)), err
}

// Given returns the targets of a job that the allocator has assigned to other collectors and, if ownCount, to this one:
// a target that comes back to it with the next round has not gone. All have the labels that they would have here.
func (c *Client) Given(ctx context.Context, job string, ownCount bool) ([]*targetgroup.Group, error) {
	all, err := c.collectors(ctx, job)
	if err != nil {
		return nil, err
	}
	var groups []*targetgroup.Group
	for collector, has := range all {
		if collector == c.cfg.CollectorID && !ownCount {
			continue
		}
		for _, group := range has.Targets {
			if group == nil {
				continue
			}
			if group.Labels == nil {
				group.Labels = model.LabelSet{}
			}
			group.Labels[sourceLabel] = model.LabelValue(c.cfg.targetsURL(job))
			groups = append(groups, group)
		}
	}
	return groups, nil
}

// A share is the list of a job's targets that a collector has.
type share struct {
	Targets []*targetgroup.Group `json:"targets"`
}

// collectors returns the share of each collector of a job.
func (c *Client) collectors(ctx context.Context, job string) (map[string]share, error) {
	body, err := c.get(ctx, c.cfg.url("/jobs/"+url.QueryEscape(job)+"/targets"), "the targets of all collectors")
	if err != nil {
		return nil, err
	}
	var all map[string]share
	if err := json.Unmarshal(body, &all); err != nil {
		return nil, fmt.Errorf("cannot parse the targets of all collectors (%d bytes): %w", len(body), err)
	}
	return all, nil
}
