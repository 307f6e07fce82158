// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"maps"
	"slices"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/delivery"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/known"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/meter"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/service"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/sources"
)

// A sheet holds the counts of a span and the graph of the pipelines.
type sheet struct {
	span  meter.Span
	graph *service.Graph
}

// ownTraffic returns what exporters of this process send to receivers of this process, per second.
func (b sheet) ownTraffic() (own *float64) {
	var addresses []string
	for s := range b.span.Now.Flows {
		if s.Intake != nil {
			addresses = append(addresses, s.Intake().Addresses...)
		}
	}
	for s, d := range b.span.Now.Deliveries {
		rates := delivery.Of(b.span, s)
		for i := range d.Destinations {
			if slices.ContainsFunc(addresses, func(address string) bool { return leadsTo(d.Destinations[i].Name, address) }) {
				own = known.Sum(own, rates[i].SentRate)
			}
		}
	}
	return own
}

// out returns what destinations acknowledge, per second, and their number. Of destinations that all get the same data,
// in one exporter or in several, only the slowest counts. Data that goes on to a receiver of this process is counted
// where it leaves from there.
func (b sheet) out() (out *float64, destinations int) {
	for _, fan := range b.fans() {
		fan = slices.DeleteFunc(fan, b.goesOn)
		for _, s := range fan {
			if d, shown := b.span.Now.Deliveries[s]; shown {
				destinations += len(d.Destinations)
			} else {
				destinations++
			}
		}
		out = known.Sum(out, b.outOfFan(fan))
	}
	return out, destinations
}

// outOfFan returns the rate of the slowest of exporters that get the same data. If one of them gets more than another,
// from more receivers, it is the sum over the receivers of the share that the slowest of their exporters delivers.
func (b sheet) outOfFan(fan []*sources.Source) *float64 {
	var slowest *float64
	alike := true
	for _, s := range fan {
		if rate := b.outOfExporter(s); slowest == nil || rate != nil && *rate < *slowest {
			slowest = rate
		}
		alike = alike && maps.Equal(b.origins(s), b.origins(fan[0]))
	}
	if alike {
		return slowest
	}
	shares, offered := map[string]float64{}, map[string]float64{}
	for _, s := range fan {
		var fed float64
		for origin := range b.origins(s) {
			n := b.offeredBy(origin, s.Signal)
			if n == nil {
				return slowest
			}
			offered[origin] = *n
			fed += *n
		}
		rate := b.outOfExporter(s)
		if rate == nil {
			return slowest
		}
		share := 1.0
		if fed > 0 {
			share = *rate / fed
		}
		for origin := range b.origins(s) {
			if least, shared := shares[origin]; !shared || share < least {
				shares[origin] = share
			}
		}
	}
	var sum float64
	for origin, n := range offered {
		sum += n * shares[origin]
	}
	return &sum
}

// offeredBy returns what a receiver offers to the pipelines of a signal, per second.
func (b sheet) offeredBy(node, signal string) (sum *float64) {
	for s := range b.span.Now.Flows {
		if s.Node() != node {
			continue
		}
		f := b.span.Rates(s)
		if n, apart := f.Signals[signal]; apart {
			sum = known.Sum(sum, n)
		} else {
			sum = known.Sum(sum, f.In)
		}
	}
	return sum
}

func (b sheet) outOfExporter(s *sources.Source) (out *float64) {
	d, ok := b.span.Now.Deliveries[s]
	if !ok {
		return b.span.Rates(s).Out
	}
	for _, one := range delivery.Of(b.span, s) {
		switch {
		case d.Split:
			out = known.Sum(out, one.SentRate)
		case out == nil || one.SentRate != nil && *one.SentRate < *out:
			out = one.SentRate
		}
	}
	return out
}
