// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/component"
)

// Data that has come in once must be counted once, wherever it goes: In is what came from outside, and Out what the slowest
// of several destinations that all get it has acknowledged. So In is never less than Out, but for what waited.

// ownTraffic is what our exporters bring to our own receivers, per second.
func ownTraffic(before, now *reading) (own *float64) {
	var addresses []string
	for s := range now.flows {
		if s.Intake != nil {
			addresses = append(addresses, s.Intake().Addresses...)
		}
	}
	for s, d := range now.deliveries {
		rates := destinationsOf(before, now, s)
		for i := range d.Destinations {
			if slices.ContainsFunc(addresses, func(address string) bool { return leadsTo(d.Destinations[i].Name, address) }) {
				own = plus(own, rates[i].SentRate)
			}
		}
	}
	return own
}

// leadsTo tells whether a destination of that name, a URL or host and port, is what listens at an address.
func leadsTo(destination, address string) bool {
	host, port := hostPort(destination)
	listens, at := hostPort(address)
	if port == "" || port != at {
		return false
	}
	return host == listens || isLoopback(host) && (isLoopback(listens) || isAny(listens))
}

func hostPort(text string) (host, port string) {
	if at := strings.LastIndex(text, " ("); at >= 0 { // a name, and the endpoint behind it
		text = strings.TrimSuffix(text[at+2:], ")")
	}
	if u, err := url.Parse(text); err == nil && u.Host != "" {
		text = u.Host
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return "", ""
	}
	return host, port
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == localhost || err == nil && address.Unmap().IsLoopback()
}

func isAny(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "" || err == nil && address.IsUnspecified()
}

// outOf is what destinations acknowledge, per second, and how many they are. Of those that all get the same, in one exporter
// or in several, it is the slowest that counts. What goes on to a receiver of our own is counted where it leaves from there.
func outOf(before, now *reading, g *graph) (out *float64, destinations int) {
	for _, fan := range g.fans(now) {
		fan = slices.DeleteFunc(fan, func(s *source) bool { return g.goesOn(now, s) })
		for _, s := range fan {
			if d, shown := now.deliveries[s]; shown {
				destinations += len(d.Destinations)
			} else {
				destinations++
			}
		}
		out = plus(out, outOfFan(before, now, g, fan))
	}
	return out, destinations
}

// outOfFan is the slowest of exporters that get the same. Where one of them gets more than another, from more receivers, it
// is of each receiver the share that the slowest of its exporters gets rid of.
func outOfFan(before, now *reading, g *graph, fan []*source) *float64 {
	var slowest *float64
	alike := true
	for _, s := range fan {
		if rate := outOfExporter(before, now, s); slowest == nil || rate != nil && *rate < *slowest {
			slowest = rate
		}
		alike = alike && maps.Equal(g.origins(s), g.origins(fan[0]))
	}
	if alike {
		return slowest
	}
	shares, offered := map[string]float64{}, map[string]float64{}
	for _, s := range fan {
		var fed float64
		for origin := range g.origins(s) {
			n := offeredBy(before, now, origin, s.Signal)
			if n == nil {
				return slowest
			}
			offered[origin] = *n
			fed += *n
		}
		rate := outOfExporter(before, now, s)
		if rate == nil {
			return slowest
		}
		share := 1.0
		if fed > 0 {
			share = *rate / fed
		}
		for origin := range g.origins(s) {
			if least, known := shares[origin]; !known || share < least {
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

// offeredBy is what a receiver has for the pipelines of a signal, per second.
func offeredBy(before, now *reading, node, signal string) (sum *float64) {
	for s := range now.flows {
		if s.node() != node {
			continue
		}
		f := flowBetween(before, now, s)
		if n, apart := f.out[signal]; apart {
			sum = plus(sum, n)
		} else {
			sum = plus(sum, f.In)
		}
	}
	return sum
}

func outOfExporter(before, now *reading, s *source) (out *float64) {
	d, ok := now.deliveries[s]
	if !ok {
		return flowBetween(before, now, s).Out
	}
	for _, one := range destinationsOf(before, now, s) {
		switch {
		case d.Split:
			out = plus(out, one.SentRate)
		case out == nil || one.SentRate != nil && *one.SentRate < *out:
			out = one.SentRate
		}
	}
	return out
}

// lostOf is what exporters lose, per second. Of those that all get the same it is the one that loses most: what each of two
// destinations has lost is lost once.
func lostOf(before, now *reading, g *graph) (lost *float64) {
	for _, fan := range g.fans(now) {
		var worst *float64
		for _, s := range fan {
			_, seconds := stretch(before, now, s)
			if seconds == 0 {
				continue
			}
			var rate float64
			was := lossesOf(before, s)
			for reason, n := range lossesOf(now, s) {
				rate += float64(max(0, n-was[reason])) / seconds
			}
			worst = most(worst, &rate)
		}
		lost = plus(lost, worst)
	}
	return lost
}

// limitedOf is what limits keep out, per second. Of pipelines that get the same data it is the one that keeps out most: what each of
// two keeps out has come in once.
func limitedOf(before, now *reading, g *graph) (limited *float64) {
	own := map[string]*float64{} // by pipeline
	for s := range now.flows {
		n := flowBetween(before, now, s).Limited
		if of := g.pipelineOf(s); of != "" {
			own[of] = plus(own[of], n)
		} else {
			limited = plus(limited, n)
		}
	}
	type branches struct {
		receivers []string
		worst     *float64
	}
	var all []branches
	for i := range g.pipelines {
		p := &g.pipelines[i]
		from := slices.DeleteFunc(slices.Clone(p.receivers), func(id string) bool { return g.nodes[id].kind == wordConnector && g.feeds(id, p.signal) })
		if len(from) == 0 {
			continue // it is a branch of others
		}
		merged := branches{from, g.limitedFrom(p, own)}
		all = slices.DeleteFunc(all, func(b branches) bool {
			same := slices.ContainsFunc(b.receivers, func(id string) bool { return slices.Contains(from, id) })
			if same {
				merged.receivers, merged.worst = append(merged.receivers, b.receivers...), most(merged.worst, b.worst)
			}
			return same
		})
		all = append(all, merged)
	}
	for _, b := range all {
		limited = plus(limited, b.worst)
	}
	return limited
}

// pipelineOf is the one that a processor is in, if it is known to be in one only.
func (g *graph) pipelineOf(s *source) string {
	n := g.nodes[s.node()]
	switch {
	case s.Kind != component.KindProcessor || n == nil:
		return ""
	case len(n.pipelines) == 1:
		return n.pipelines[0]
	case slices.Contains(n.pipelines, s.Pipeline):
		return s.Pipeline
	}
	return ""
}

// limitedFrom is what is kept out in a pipeline, and in that of those behind its connectors which keeps out most. Each counts once.
func (g *graph) limitedFrom(p *graphPipeline, own map[string]*float64) (limited *float64) {
	limited = own[p.id]
	delete(own, p.id)
	var behind *float64
	for i := range g.pipelines {
		next := &g.pipelines[i]
		if next.id != p.id && next.signal == p.signal && slices.ContainsFunc(next.receivers, func(id string) bool { return slices.Contains(p.exporters, id) }) {
			behind = most(behind, g.limitedFrom(next, own))
		}
	}
	return plus(limited, behind)
}

// most is the greater of two numbers, or the one that is known.
func most(a, b *float64) *float64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

// lossesOf is what a component has lost up to a reading, by reason. What several destinations of an exporter were all to get
// is counted for the one that lost most.
func lossesOf(r *reading, s *source) map[string]int64 {
	out := maps.Clone(r.flows[s].Dropped)
	d := r.deliveries[s]
	if d.Split {
		return out
	}
	for reason, n := range out {
		var sum, worst int64
		for i := range d.Destinations {
			lost := d.Destinations[i].Dropped[reason]
			sum, worst = sum+lost, max(worst, lost)
		}
		out[reason] = max(0, n-sum) + worst // what was lost before it came to any destination is in n alone
	}
	return out
}

// fans groups exporters that get the same data: those of one signal that have a receiver in common. Without a configuration
// each is by itself.
func (g *graph) fans(now *reading) (fans [][]*source) {
	var all []*source
	for s := range now.flows {
		if s.Kind == component.KindExporter {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *source) int { return strings.Compare(a.node()+a.Signal, b.node()+b.Signal) })
	for _, s := range all {
		fan := []*source{s}
		fans = slices.DeleteFunc(fans, func(other []*source) bool {
			same := slices.ContainsFunc(other, func(o *source) bool { return g.fanOut(s, o) })
			if same {
				fan = append(fan, other...)
			}
			return same
		})
		fans = append(fans, fan)
	}
	return fans
}

func (g *graph) fanOut(a, b *source) bool {
	from := g.origins(b)
	return a.Signal == b.Signal && slices.ContainsFunc(slices.Collect(maps.Keys(g.origins(a))), func(id string) bool { return from[id] })
}

// origins are the receivers whose data of its signal comes to an exporter, through connectors, too.
func (g *graph) origins(s *source) map[string]bool {
	found, seen := map[string]bool{}, map[string]bool{}
	var follow func(node string)
	follow = func(node string) {
		if seen[node] {
			return
		}
		seen[node] = true
		for i := range g.pipelines {
			p := &g.pipelines[i]
			if p.signal != s.Signal || !slices.Contains(p.exporters, node) {
				continue
			}
			for _, from := range p.receivers {
				if g.nodes[from].kind != wordConnector || !g.feeds(from, s.Signal) {
					found[from] = true
				} else {
					follow(from)
				}
			}
		}
	}
	follow(s.node())
	return found
}

// feeds tells whether data of a signal comes to a connector. One that gets another signal makes its data itself.
func (g *graph) feeds(connector, signal string) bool {
	return slices.ContainsFunc(g.pipelines, func(p graphPipeline) bool {
		return p.signal == signal && slices.Contains(p.exporters, connector)
	})
}

// goesOn tells whether all that an exporter sends comes to receivers of our own, behind which others are counted.
func (g *graph) goesOn(now *reading, s *source) bool {
	to := now.deliveries[s].Destinations
	if len(to) == 0 {
		return false
	}
	for i := range to {
		on := false
		for r := range now.flows {
			on = on || r.Intake != nil && slices.ContainsFunc(r.Intake().Addresses, func(address string) bool { return leadsTo(to[i].Name, address) }) && g.counted(now, r, s)
		}
		if !on {
			return false
		}
	}
	return true
}

// counted tells whether an exporter behind a receiver shows what it does, and is not the one that data came to it from.
func (g *graph) counted(now *reading, receiver, from *source) bool {
	for s := range now.flows {
		if s.Kind == component.KindExporter && s != from && s.Signal == from.Signal && g.origins(s)[receiver.node()] {
			return true
		}
	}
	return false
}
