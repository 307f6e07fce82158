// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package send

import (
	"sync"
	"time"

	"github.com/godwit-otel/godwit/internal/promwrite"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
)

// negotiation finds the best format that a destination accepts. Formats are numbered, 0 is the best.
//
// An unproven format is used until it is refused, by an answer about formats or by a 400; then the next is, and after
// the last the first. A proven one, which has delivered something, survives a 400: that is about the content. Some time
// after a fallback the best format is tried again. The first block encoded in it is a probe: it is sent in each format
// from the best down to the proven one until one is accepted, so that no answer to a probe loses data.
//
// Behind one address there may be servers of several versions, or another one after some time, which do not know a
// format that has delivered before: so a request that is refused like bad content, by a server that does not count what
// it writes, is sent once more in the last format, which most servers know. If that is accepted several times in a row,
// it was about the format, which is abandoned. A format that only fails, for minutes, is no longer proven.
//
// Servers that do not know a format may answer as if they were down, or with "not found". So an unproven format that
// fails like that is abandoned after a few times, in turn, until one delivers; a probe at once. Because that may have
// been an outage, and a 400 may have been about the content, the fallback is then vague: the best format is tried again
// soon, and after a pause that doubles.
type negotiation struct {
	formats []block.Format
	reprobe time.Duration

	mu      sync.Mutex
	at      int
	proven  bool
	probeAt time.Time // when to probe; zero while the best format is current
	probing bool
	probe   int // the format to try next while probing
	doubts  int // failures of the unproven current format that may be about it or not
	vague   bool
	soon    time.Duration // the pause before the next probe while vague

	overruled int       // consecutive times that the proven format was refused with what the last one then delivered
	failing   time.Time // since when failures that may be about a format occurred, without a success; zero if there is none
	atOnce    bool      // the best format is to be tried with the next block once another has delivered
}

const (
	// fewDoubts is the number of such failures after which an unproven format is abandoned.
	fewDoubts = 2
	// firstProbe is how soon the best format is tried again when it is not certain that it is not accepted.
	firstProbe = time.Minute
	// fewOverruled is the number of consecutive requests, refused in a proven format and accepted in the last, after
	// which it is abandoned.
	fewOverruled = 3
	// longFailing is how long a proven format must fail, in ways that may be about it, until others are tried. Most
	// outages are shorter; after a longer one, another format may be the first that delivers, so the best is tried
	// again with the next block.
	longFailing = 5 * time.Minute
)

// formatSet is the formats in which a block was refused.
type formatSet uint8

func (s *formatSet) add(format int)           { *s |= 1 << format }
func (s *formatSet) contains(format int) bool { return *s&(1<<format) != 0 }

func newNegotiation(formats []block.Format, reprobe time.Duration) *negotiation {
	return &negotiation{formats: formats, reprobe: reprobe, soon: min(firstProbe, reprobe)}
}

func (n *negotiation) current() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.at
}

// wanted is the format to encode in: the best one when a probe is due, since no block can be improved afterwards.
func (n *negotiation) wanted() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.probeDue() || n.vague && !n.proven { // a block in a lesser format lacks what the best can carry
		return 0
	}
	return n.at
}

// choose returns the format for the next attempt with a block of a version, and false if it was refused in every format
// that it can be written in.
func (n *negotiation) choose(version promwrite.Version, tried formatSet) (int, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	usable := func(format int) bool {
		// A block of 1.0 lacks what 2.0 needs.
		return !tried.contains(format) && (version == promwrite.V2 || n.formats[format].Version == promwrite.V1)
	}
	if n.probeDue() && !n.probing && usable(0) {
		n.probing, n.probe = true, 0
	}
	if n.probing && usable(n.probe) {
		return n.probe, true
	}
	for i := range n.formats {
		if format := (n.at + i) % len(n.formats); usable(format) {
			return format, true
		}
	}
	return 0, false
}

func (n *negotiation) probeDue() bool {
	return !n.probeAt.IsZero() && !time.Now().Before(n.probeAt)
}

func (n *negotiation) isProven(format int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.proven && format == n.at
}

// accepted records that a format delivered.
func (n *negotiation) accepted(format int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.doubts, n.failing = 0, time.Time{}
	if format == n.at {
		n.overruled = 0
	}
	if format == 0 {
		n.vague, n.soon = false, min(firstProbe, n.reprobe)
	}
	switch {
	case n.probing && format == n.probe && format < n.at:
		n.at, n.probing = format, false
		n.schedule()
	case format <= n.at:
		if format < n.at || !n.proven {
			n.at, n.soon = format, min(firstProbe, n.reprobe)
			n.schedule()
		}
		n.proven = true
	}
	if n.atOnce && n.at > 0 && !n.probing {
		n.probeAt = time.Now()
	}
	n.atOnce = false
}

// overrule records that the proven format was refused with what another then delivered.
func (n *negotiation) overrule(format, by int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if format != n.at || !n.proven {
		return
	}
	if n.overruled++; n.overruled >= fewOverruled {
		n.at, n.overruled, n.vague, n.soon = by, 0, true, min(firstProbe, n.reprobe)
		n.schedule()
	}
}

// last is the format that most servers know.
func (n *negotiation) last() int { return len(n.formats) - 1 }

// allButLast is the set of formats to skip when only the last is to be tried.
func (n *negotiation) allButLast() formatSet { return 1<<n.last() - 1 }

// turnedDown records that a format did not deliver; final says that it was not about the content.
func (n *negotiation) turnedDown(format int, final bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leave(format, final)
}

// failed records that a request in a format failed in a way that may be about the format, or not.
func (n *negotiation) failed(format int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	if n.failing.IsZero() {
		n.failing = now
	}
	if format == n.at && n.proven && !n.probing && now.Sub(n.failing) >= longFailing {
		n.proven, n.vague, n.atOnce = false, true, true
	}
	if format == n.at && !n.proven && !n.probing {
		if n.doubts++; n.doubts < fewDoubts {
			return
		}
	}
	n.leave(format, false)
}

// leave turns to the next format. The caller holds mu.
func (n *negotiation) leave(format int, final bool) {
	switch {
	case n.probing && format == n.probe && format < n.at:
		n.probe++
		if n.probe >= n.at {
			n.probing = false
			n.soon = min(2*n.soon, n.reprobe)
			n.schedule()
		}
	case format == n.at && (final || !n.proven):
		n.at = (n.at + 1) % len(n.formats)
		n.proven, n.doubts, n.vague = false, 0, n.vague || !final
		n.schedule()
	}
}

// schedule sets the time of the next probe, with a jitter that keeps many agents from probing at the same time.
func (n *negotiation) schedule() {
	n.probeAt = time.Time{}
	if n.at > 0 {
		pause := n.reprobe
		if n.vague {
			pause = n.soon
		}
		n.probeAt = time.Now().Add(jitter(pause, 0.2))
	}
}
