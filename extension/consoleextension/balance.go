// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
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
// or in exporters of one pipeline, it is the slowest that counts.
func outOf(before, now *reading, g *graph) (out *float64, destinations int) {
	for _, together := range g.fans(now) {
		var slowest *float64
		for _, s := range together {
			rate, n := outOfExporter(before, now, s)
			destinations += n
			if slowest == nil || rate != nil && *rate < *slowest {
				slowest = rate
			}
		}
		out = plus(out, slowest)
	}
	return out, destinations
}

func outOfExporter(before, now *reading, s *source) (out *float64, destinations int) {
	d, ok := now.deliveries[s]
	if !ok {
		return flowBetween(before, now, s).Out, 1
	}
	for _, one := range destinationsOf(before, now, s) {
		switch {
		case d.Split:
			out = plus(out, one.SentRate)
		case out == nil || one.SentRate != nil && *one.SentRate < *out:
			out = one.SentRate
		}
	}
	return out, len(d.Destinations)
}

// fans groups exporters that get the same data: those of one signal that share a pipeline. Without a configuration each is by
// itself.
func (g *graph) fans(now *reading) (fans [][]*source) {
	var all []*source
	for s := range now.flows {
		if s.Kind == component.KindExporter {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *source) int { return strings.Compare(a.node()+a.Signal, b.node()+b.Signal) })
	for _, s := range all {
		at := slices.IndexFunc(fans, func(fan []*source) bool {
			return slices.ContainsFunc(fan, func(other *source) bool { return g.fanOut(s, other) })
		})
		if at < 0 {
			fans = append(fans, []*source{s})
		} else {
			fans[at] = append(fans[at], s)
		}
	}
	return fans
}

func (g *graph) fanOut(a, b *source) bool {
	m, n := g.nodes[a.node()], g.nodes[b.node()]
	return m != nil && n != nil && m != n && a.Signal == b.Signal && slices.ContainsFunc(m.pipelines, func(p string) bool {
		signal, _, _ := strings.Cut(p, "/")
		return signal == a.Signal && slices.Contains(n.pipelines, p)
	})
}
