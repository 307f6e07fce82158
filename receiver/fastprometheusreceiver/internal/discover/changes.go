// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"maps"
	"slices"

	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/targetgroup"
)

// NewDiscoverer implements discovery.Config.
func (d distinct) NewDiscoverer(o discovery.DiscovererOptions) (discovery.Discoverer, error) {
	inner, err := d.Config.NewDiscoverer(o)
	if _, static := d.Config.(discovery.StaticConfig); static || err != nil {
		return inner, err
	}
	return changes{inner}, nil
}

// changes hands on only what has changed since a mechanism last reported it.
//
// Mechanisms that poll report everything each time. Prometheus' manager treats each report as a change, and delays
// changes the longer the more there are: up to 5 seconds, in which targets that are gone are scraped, and new ones are
// not.
type changes struct {
	inner discovery.Discoverer
}

// Run implements discovery.Discoverer.
func (c changes) Run(ctx context.Context, up chan<- []*targetgroup.Group) {
	found, ended := make(chan []*targetgroup.Group), make(chan struct{})
	go func() {
		defer close(ended)
		c.inner.Run(ctx, found)
	}()
	last := map[string]*targetgroup.Group{}
	first := true
	for {
		select {
		case <-ctx.Done():
			<-ended
			return
		case <-ended:
			return
		case groups, open := <-found:
			if !open {
				return
			}
			// The first report may be empty.
			if groups = news(last, groups); len(groups) == 0 && !first {
				continue
			}
			first = false
			select {
			case up <- groups:
			case <-ctx.Done():
				<-ended
				return
			}
		}
	}
}

// news returns the groups that differ from the last of their source, and records them.
func news(last map[string]*targetgroup.Group, groups []*targetgroup.Group) []*targetgroup.Group {
	out := make([]*targetgroup.Group, 0, len(groups))
	for _, g := range groups {
		if g == nil {
			continue
		}
		old := last[g.Source]
		if old != nil && old != g && same(old, g) { // the same object may have been modified since
			continue
		}
		if last[g.Source] = g; len(g.Targets) == 0 {
			delete(last, g.Source)
		}
		out = append(out, g)
	}
	return out
}

func same(a, b *targetgroup.Group) bool {
	return maps.Equal(a.Labels, b.Labels) && slices.EqualFunc(a.Targets, b.Targets, maps.Equal)
}
