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

// changes hands on what a mechanism finds that it has not handed on before.
//
// Those that ask at an interval hand on all they find each time. Prometheus' manager takes each for news, and the more of these there are the
// longer it keeps them: up to 5 seconds, in which what is gone is scraped, and what has come is not.
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
			// The first may say that there is nothing.
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

// news are those of the groups that differ from the last of their source, which they become.
func news(last map[string]*targetgroup.Group, groups []*targetgroup.Group) []*targetgroup.Group {
	out := make([]*targetgroup.Group, 0, len(groups))
	for _, g := range groups {
		if g == nil {
			continue
		}
		old := last[g.Source]
		if old != nil && old != g && same(old, g) { // one that is the same group may have changed since
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
