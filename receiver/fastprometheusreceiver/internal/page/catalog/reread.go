// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import "github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/expo"

// A reread parses the texts of known lines once more. Its memory is used again, under the cohort's lock: what it
// returns is valid until the next call.
type reread struct {
	text  []byte
	entry expo.Entry
}

// line parses a line, with values in place of its slots.
func (r *reread) line(l *Line, own []string) (*expo.Entry, bool) {
	r.text = append(l.AppendSpelled(r.text[:0], own), " 0\n"...)
	for _, p := range [...]expo.Parser{{}, {OpenMetrics: true}} {
		if _, err := p.Next(r.text, &r.entry); err == nil {
			return &r.entry, true
		}
	}
	return &r.entry, false
}

// AppendSpelled appends the text of a line as on the page of a target with the given own values.
func (l *Line) AppendSpelled(dst []byte, own []string) []byte {
	if !l.IsSlotted() {
		for _, p := range l.pieces {
			dst = append(dst, p...)
		}
		return dst
	}
	for before, slot := range l.Parts {
		if dst = append(dst, before...); slot >= 0 {
			dst = append(dst, own[slot]...)
		}
	}
	return dst
}
