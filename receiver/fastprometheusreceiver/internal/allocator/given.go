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

// sourceLabel is what discovery adds to targets that it has from a URL.
const sourceLabel = "__meta_url"

// Has tells whether a job's targets come from this allocator.
func (c *Client) Has(job *promconfig.ScrapeConfig) bool {
	for _, sd := range job.ServiceDiscoveryConfigs {
		if from, ok := sd.(*promhttp.SDConfig); ok && from.URL == c.cfg.targetsURL(job.JobName) {
			return true
		}
	}
	return false
}

// nobodys is a job that no collector has targets of.
const nobodys = "godwit.members"

// Refresh is how often the targets of a job are asked for.
func (c *Client) Refresh() time.Duration { return time.Duration(c.discovery.RefreshInterval) }

// Place is this collector's among those that ask.
func (c *Client) Place() uint64 { return xxhash.Sum64String(c.cfg.CollectorID) }

// Members asks for the names of all collectors: of a job that none has targets of, each of them has none.
func (c *Client) Members(ctx context.Context) ([]string, error) {
	all, err := c.collectors(ctx, nobodys)
	return slices.Collect(maps.Keys(all)), err
}

// Given asks for the targets of a job that the allocator has given to other collectors and, where they count, to this one: a target that it has been given
// back, and learns of in the next round, has not gone. All look as they would if they were this one's.
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

// A share is what a collector has of a job.
type share struct {
	Targets []*targetgroup.Group `json:"targets"`
}

// collectors asks what each collector has of a job.
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
