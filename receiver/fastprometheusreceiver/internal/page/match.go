// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"errors"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/expo"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
)

// read reads the lines of b and returns the rest: the start of a line whose end has not come.
func (s *Scrape) read(b []byte) ([]byte, error) {
	var before []byte // the line before, if it was expected
	page := b
	s.places, s.placed = s.places[:0], s.next
	for len(b) > 0 {
		if s.ended {
			if s.parser.OpenMetrics {
				return nil, errAfterEnd
			}
			return nil, nil
		}
		if s.next < len(s.expected) {
			n, text := s.follow(page, b, before)
			if n == 0 {
				n, text = s.match(b, s.expected[s.next])
			}
			if n > 0 {
				if s.text != nil {
					at := len(page) - len(b)
					s.places = append(s.places, place{at, at + text})
				}
				before, b = b[:n], b[n:]
				continue
			}
		}
		before = nil
		n, err := s.parser.Next(b, &s.entry)
		if err != nil {
			if errors.Is(err, expo.ErrMore) {
				return b, nil
			}
			return nil, err
		}
		if err := s.take(); err != nil {
			return nil, err
		}
		b = b[n:]
	}
	return nil, nil
}

// follow reads the first line of b if it is the expected one, has only a number after its text, and follows another
// expected line. It returns the length of the line and that of its text. b is the end of page.
func (s *Scrape) follow(page, b, before []byte) (length, text int) {
	if s.text == nil || len(before) == 0 || s.next >= s.texts {
		return 0, 0
	}
	kind := s.text.Kind(s.next)
	if kind == plan.OtherText {
		return 0, 0
	}
	var like []byte
	if i := s.text.Like(s.next); i >= 0 {
		if i -= s.placed; i < 0 {
			return 0, 0
		}
		like = page[s.places[i].begin:s.places[i].end]
	}
	text = s.text.Match(s.next, before, like, b, s.own)
	if text == 0 || text == len(b) {
		return 0, 0
	}
	n, v := text, 0.0
	if kind == plan.SampleText {
		var ok bool
		from := n + 1
		if v, n, ok = expo.FastNumber(b[from:]); !ok || b[from-1] != ' ' {
			return 0, 0
		}
		n += from
	}
	if b[n] != '\n' {
		return 0, 0
	}
	if kind == plan.TypeText {
		s.in = s.expected[s.next].Setting
	}
	s.values = append(s.values, v)
	s.next++
	s.lost = 0
	return n + 1, text
}

// match reads the first line of b if it is the expected one, and returns the length of the line and that of its text.
func (s *Scrape) match(b []byte, l *catalog.Line) (length, text int) {
	text = l.Match(b, s.own)
	if text == 0 && l.IsSlotted() {
		if s.borrowed {
			text = s.learn(b, l)
		} else if !s.strayed {
			text = s.replace(b, l)
		}
	}
	if text == 0 || len(b) == text {
		return 0, 0
	}
	switch c := b[text]; {
	case l.Kind.IsMetadata():
		if c != '\n' {
			return 0, 0
		}
		if l.Kind == catalog.TypeLine {
			s.in = l.Setting
		}
		s.hit(l, 0)
		return text + 1, text
	case c != ' ' || s.strayed && l.Setting > catalog.AnySetting && l.Setting != s.in:
		return 0, 0
	}
	v, end, ok := expo.FastNumber(b[text+1:])
	if end += text + 1; ok && b[end] == '\n' { // fast path: a number ends the line
		s.hit(l, v)
		s.addNoTime()
		return end + 1, text
	}
	n, err := s.parser.Tail(b[text:], &s.entry)
	if err != nil || s.left < 0 {
		return 0, 0 // the slow path gives the same error, or finds another series
	}
	s.hit(l, s.entry.Value)
	s.note(l)
	return text + n, text
}

// hit takes the expected line.
func (s *Scrape) hit(l *catalog.Line, v float64) {
	s.step(l)
	s.values = append(s.values, v)
	if l.Kind.IsMetadata() {
		s.addNoTime()
	}
}
