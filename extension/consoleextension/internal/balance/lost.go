// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"maps"
	"slices"

	"go.opentelemetry.io/collector/component"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/known"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/meter"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/service"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/sources"
)

// lost returns what exporters lose, per second. Of exporters that get the same data, only the one that loses most
// counts: what two destinations have lost is lost once.
func (b sheet) lost() (lost *float64) {
	for _, fan := range b.fans() {
		var worst *float64
		for _, s := range fan {
			_, seconds := b.span.Since(s)
			if seconds == 0 {
				continue
			}
			var rate float64
			was := Losses(b.span.Before, s)
			for reason, n := range Losses(b.span.Now, s) {
				rate += float64(max(0, n-was[reason])) / seconds
			}
			worst = known.Most(worst, &rate)
		}
		lost = known.Sum(lost, worst)
	}
	return lost
}

// Losses returns what a component has lost up to a reading, by reason. Of an exporter's destinations that all get the
// same data, only the one that lost most counts.
func Losses(r *meter.Reading, of *sources.Source) map[string]int64 {
	out := maps.Clone(r.Flows[of].Dropped)
	d := r.Deliveries[of]
	if d.Split {
		return out
	}
	for reason, n := range out {
		var sum, worst int64
		for i := range d.Destinations {
			lost := d.Destinations[i].Dropped[reason]
			sum, worst = sum+lost, max(worst, lost)
		}
		out[reason] = max(0, n-sum) + worst // losses before any destination are only in n
	}
	return out
}

// limited returns what limits reject, per second. Of pipelines that get the same data, only the one that rejects most
// counts: what both reject was received once.
func (b sheet) limited() (limited *float64) {
	own := map[string]*float64{} // by pipeline
	for s := range b.span.Now.Flows {
		n := b.span.Rates(s).Limited
		if of := b.pipelineOf(s); of != "" {
			own[of] = known.Sum(own[of], n)
		} else {
			limited = known.Sum(limited, n)
		}
	}
	type branches struct {
		receivers []string
		worst     *float64
	}
	var all []branches
	for i := range b.graph.Pipelines {
		p := &b.graph.Pipelines[i]
		from := slices.DeleteFunc(slices.Clone(p.Receivers), func(id string) bool {
			return b.graph.Nodes[id].Kind == sources.Connector && b.graph.Feeds(id, p.Signal)
		})
		if len(from) == 0 {
			continue // it belongs to other pipelines
		}
		merged := branches{from, b.limitedFrom(p, own)}
		all = slices.DeleteFunc(all, func(other branches) bool {
			same := slices.ContainsFunc(other.receivers, func(id string) bool { return slices.Contains(from, id) })
			if same {
				merged.receivers, merged.worst = append(merged.receivers, other.receivers...), known.Most(merged.worst, other.worst)
			}
			return same
		})
		all = append(all, merged)
	}
	for _, one := range all {
		limited = known.Sum(limited, one.worst)
	}
	return limited
}

// pipelineOf returns the pipeline of a processor, "" if it is not known to be in a single one.
func (b sheet) pipelineOf(s *sources.Source) string {
	n := b.graph.Nodes[s.Node()]
	switch {
	case s.Kind != component.KindProcessor || n == nil:
		return ""
	case len(n.Pipelines) == 1:
		return n.Pipelines[0]
	case slices.Contains(n.Pipelines, s.Pipeline):
		return s.Pipeline
	}
	return ""
}

// limitedFrom returns what is rejected in a pipeline, plus the most of what is rejected in one behind its connectors.
// Each pipeline counts once.
func (b sheet) limitedFrom(p *service.Pipeline, own map[string]*float64) (limited *float64) {
	limited = own[p.ID]
	delete(own, p.ID)
	var behind *float64
	for i := range b.graph.Pipelines {
		next := &b.graph.Pipelines[i]
		if next.ID != p.ID && next.Signal == p.Signal && slices.ContainsFunc(next.Receivers, func(id string) bool { return slices.Contains(p.Exporters, id) }) {
			behind = known.Most(behind, b.limitedFrom(next, own))
		}
	}
	return known.Sum(limited, behind)
}
