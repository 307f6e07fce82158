// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/component"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/sources"
)

// fans groups the exporters that get the same data: those of one signal that have a receiver in common. Without a
// configuration, each exporter is a group of its own.
func (b sheet) fans() (fans [][]*sources.Source) {
	var all []*sources.Source
	for s := range b.span.Now.Flows {
		if s.Kind == component.KindExporter {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(x, y *sources.Source) int { return strings.Compare(x.Node()+x.Signal, y.Node()+y.Signal) })
	for _, s := range all {
		fan := []*sources.Source{s}
		fans = slices.DeleteFunc(fans, func(other []*sources.Source) bool {
			same := slices.ContainsFunc(other, func(o *sources.Source) bool { return b.fanOut(s, o) })
			if same {
				fan = append(fan, other...)
			}
			return same
		})
		fans = append(fans, fan)
	}
	return fans
}

func (b sheet) fanOut(one, other *sources.Source) bool {
	from := b.origins(other)
	return one.Signal == other.Signal && slices.ContainsFunc(slices.Collect(maps.Keys(b.origins(one))), func(id string) bool { return from[id] })
}

func (b sheet) origins(exporter *sources.Source) map[string]bool {
	return b.graph.Origins(exporter.Node(), exporter.Signal)
}

// goesOn reports whether everything that an exporter sends reaches receivers of this process whose data other exporters
// count.
func (b sheet) goesOn(exporter *sources.Source) bool {
	to := b.span.Now.Deliveries[exporter].Destinations
	if len(to) == 0 {
		return false
	}
	for i := range to {
		on := false
		for r := range b.span.Now.Flows {
			on = on || r.Intake != nil && slices.ContainsFunc(r.Intake().Addresses, func(address string) bool { return leadsTo(to[i].Name, address) }) && b.counted(r, exporter)
		}
		if !on {
			return false
		}
	}
	return true
}

// counted reports whether an exporter behind a receiver shows its counters, and is not the exporter that sent the data
// there.
func (b sheet) counted(receiver, from *sources.Source) bool {
	for s := range b.span.Now.Flows {
		if s.Kind == component.KindExporter && s != from && s.Signal == from.Signal && b.origins(s)[receiver.Node()] {
			return true
		}
	}
	return false
}
