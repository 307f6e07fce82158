// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"errors"
	"fmt"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/queue"
)

// ShardByURLConfig spreads series over the endpoints, in place of sending all to each.
type ShardByURLConfig struct {
	// Enabled does it. Default false.
	Enabled bool `mapstructure:"enabled"`
	// Replicas is to how many endpoints each series goes. Default 1.
	Replicas int `mapstructure:"replicas"`
	// Labels are those that decide where a series goes, IgnoreLabels those that do not; one of them. Default none: all labels
	// decide, the name among them.
	Labels       []string `mapstructure:"labels"`
	IgnoreLabels []string `mapstructure:"ignore_labels"`

	// prevent unkeyed literal initialization
	_ struct{}
}

func (c *Config) validateSharding() error {
	s := &c.ShardByURL
	if !s.Enabled {
		return nil
	}
	var errs []error
	if n := len(c.Endpoints); n < 2 || n > queue.MaxParts {
		errs = append(errs, fmt.Errorf("`shard_by_url` needs 2 to %d `endpoints`, got %d", queue.MaxParts, n))
	}
	if s.Replicas < 1 || s.Replicas > max(len(c.Endpoints), 1) {
		errs = append(errs, fmt.Errorf("`shard_by_url.replicas` must be from 1 to the number of `endpoints`, got %d", s.Replicas))
	}
	if len(s.Labels) > 0 && len(s.IgnoreLabels) > 0 {
		errs = append(errs, errors.New("`shard_by_url.labels` excludes `shard_by_url.ignore_labels`: remove one"))
	}
	return errors.Join(errs...)
}

// spread chooses the destinations of a series; nil is all.
func (c *Config) spread() *block.Spread {
	s := &c.ShardByURL
	if !s.Enabled || s.Replicas == len(c.Endpoints) {
		return nil
	}
	if len(s.Labels) > 0 {
		return block.NewSpread(identities(c.clients()), s.Replicas, s.Labels, false)
	}
	return block.NewSpread(identities(c.clients()), s.Replicas, s.IgnoreLabels, true)
}
