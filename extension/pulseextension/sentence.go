// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package pulseextension

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// maxNamed is the maximum number of receivers or exporters that a line names. Only the rates of more are added up: in a
// loop, the same point would count twice.
const maxNamed = 4

// sentence describes a flow in one line.
func (f flow) sentence() string {
	trouble := f.trouble()
	var line string
	if len(f.accepted) == 0 && len(f.sent) == 0 {
		line = "nothing is flowing"
		if !f.ever {
			line += " yet"
		}
		if queue := f.queue(); queue != "" && queue != emptyQueues {
			trouble = append([]string{queue}, trouble...)
		}
		if len(trouble) > 0 {
			line += ": " + strings.Join(trouble, ", ")
		}
	} else {
		parts := append(f.side(f.accepted, "in", "from", "receivers"), f.side(f.sent, "out", "to", "exporters")...)
		if queue := f.queue(); queue != "" {
			parts = append(parts, queue)
		}
		if len(f.refused) == 0 {
			parts = append(parts, "0 refused")
		}
		if len(f.sendFailed) == 0 && len(f.enqueueFailed) == 0 {
			trouble = append(trouble, "0 dropped")
		}
		line = "flowing: " + strings.Join(append(parts, trouble...), ", ")
	}
	if f.rssBytes > 0 { // not known on every platform
		line += fmt.Sprintf("; CPU %s, RSS %s", percent(f.cpu()), size(f.rssBytes))
	}
	return line
}

// side returns the rates of one direction, for each component if they are few.
func (f flow) side(counts map[stream]float64, direction, preposition, components string) []string {
	ids := idsOf(counts)
	switch {
	case len(ids) == 0:
		return []string{"nothing " + direction}
	case len(ids) == 1:
		return []string{f.rates(counts, ids...) + " " + direction}
	case len(ids) <= maxNamed:
		parts := make([]string, 0, len(ids))
		for _, id := range ids {
			parts = append(parts, f.rates(counts, id)+" "+preposition+" "+id)
		}
		return parts
	default:
		return []string{fmt.Sprintf("%s %s through %d %s", f.rates(counts, ids...), direction, len(ids), components)}
	}
}

func (f flow) rates(counts map[stream]float64, ids ...string) string {
	var parts []string
	for i, s := range signals {
		var sum float64
		for _, id := range ids {
			sum += counts[stream{id, i}]
		}
		if sum > 0 {
			parts = append(parts, human(sum/f.seconds)+" "+s.noun+"/s")
		}
	}
	return strings.Join(parts, " and ")
}

// trouble returns what was not delivered, and why.
func (f flow) trouble() []string {
	var parts []string
	tell := func(counts map[string]float64, verb, why string) {
		if len(counts) == 0 {
			return
		}
		var sum float64
		for _, n := range counts {
			sum += n
		}
		who := strings.Join(slices.Sorted(maps.Keys(counts)), " and ")
		if len(counts) > maxNamed {
			who = fmt.Sprintf("%d components", len(counts))
		}
		parts = append(parts, human(sum)+" "+verb+" by "+who+why)
	}
	tell(f.refused, "refused", "")
	tell(f.sendFailed, "dropped", " (sending failed)")
	tell(f.enqueueFailed, "dropped", " (not accepted by the queue)")
	return parts
}

const emptyQueues = "queues empty"

// queue describes the fullest queue, because an average would hide one that overflows.
func (f flow) queue() string {
	var fullest string
	for _, id := range slices.Sorted(maps.Keys(f.queues)) {
		if fullest == "" || f.queues[id] > f.queues[fullest] {
			fullest = id
		}
	}
	switch {
	case len(f.queues) == 0:
		return ""
	case f.queues[fullest] == 0:
		return emptyQueues
	case len(f.queues) == 1:
		return "queue " + percent(f.queues[fullest]) + " full"
	default:
		return "fullest queue " + percent(f.queues[fullest]) + " (" + fullest + ")"
	}
}

// cpu returns the CPU time used, as a share of one core.
func (f flow) cpu() float64 { return f.cpuSeconds / f.seconds }

func idsOf(counts map[stream]float64) []string {
	ids := make([]string, 0, len(counts))
	for s := range counts {
		ids = append(ids, s.id)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// human formats a number with three significant digits: 0.0167, 1.32, 132, 13.2k.
func human(v float64) string {
	suffix := ""
	for _, next := range []string{"k", "M", "G"} {
		if v < 999.5 { // below this, three digits do not round up to four
			break
		}
		v, suffix = v/1000, next
	}
	return strconv.FormatFloat(rounded(v), 'f', -1, 64) + suffix
}

// rounded rounds to three significant digits.
func rounded(v float64) float64 {
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'e', 2, 64), 64)
	return v
}

func percent(share float64) string {
	if v := share * 100; v == 0 || v >= 0.05 {
		return brief(v) + " %"
	}
	return "<0.1 %"
}

func size(bytes float64) string {
	if bytes < 999.5e6 {
		return brief(bytes/1e6) + " MB"
	}
	return brief(bytes/1e9) + " GB"
}

// brief formats numbers that need no precision: 0.4, 2, 43.
func brief(v float64) string {
	if v >= 9.95 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}
