// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"errors"
	"io"
	"slices"
	"strconv"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// parse reads a page with one of Prometheus' parsers: protobuf, and any format whose classic histograms are converted.
// Its entries are lines like any other, named by the bytes the parser names them by.
func (s *Scrape) parse(p textparse.Parser) error {
	cfg := s.target.cohort.job.cfg.Scrape
	schema, most := coarsest(cfg.NativeHistogramMinBucketFactor), int(cfg.NativeHistogramBucketLimit)
	var (
		text     []byte
		tooLarge error
	)
	for {
		kind, err := p.Next()
		if errors.Is(err, io.EOF) {
			return tooLarge
		}
		if err != nil {
			return err
		}
		m := meta{}
		var family []byte
		switch kind {
		case textparse.EntryType:
			m.kind = typeLine
			family, m.typ = p.Type()
			s.in = settingOf(m.typ)
			text = append(append(append(append(text[:0], "T "...), family...), ' '), m.typ...)
		case textparse.EntryHelp, textparse.EntryUnit:
			m.kind = helpLine
			read := p.Help
			text = append(text[:0], "H "...)
			if kind == textparse.EntryUnit {
				m.kind, read = unitLine, p.Unit
				text[0] = 'U'
			}
			var said []byte
			family, said = read()
			m.text = string(said)
			text = append(append(append(text, family...), ' '), said...)
		case textparse.EntrySeries, textparse.EntryHistogram:
			if err := s.sample(p, kind == textparse.EntryHistogram, most, schema, &tooLarge); err != nil {
				return err
			}
			continue
		default:
			continue
		}
		s.entry.HasTS, s.entry.Exemplar.Found = false, false
		if l := s.expect(text); l != nil && l.kind == m.kind {
			s.hit(l, 0)
			continue
		}
		s.miss(s.target.cohort.metadata(s, text, family, m))
		if s.times != nil {
			s.times = append(s.times, noTime)
		}
	}
}

// expect returns the plan's next line if it has the text.
func (s *Scrape) expect(text []byte) *line {
	if s.next < len(s.expected) && s.expected[s.next].text.is(text) {
		return s.expected[s.next]
	}
	return nil
}

func (s *Scrape) sample(p textparse.Parser, isHistogram bool, most int, schema int32, tooLarge *error) error {
	var (
		text []byte
		ts   *int64
		v    float64
		n    nativeValue
	)
	if isHistogram {
		text, ts, n.h, n.fh = p.Histogram()
		text = strconv.AppendInt(append(text[:len(text):len(text)], "\xff#"...), int64(n.representation()), 10)
	} else {
		text, ts, v = p.Series()
	}
	l := s.expect(text)
	if l != nil && l.kind != droppedLine && l.kind != seriesLine || s.strayed && l != nil && l.setting > anySetting && l.setting != s.in {
		l = nil
	}
	if l != nil {
		s.hit(l, v)
	} else {
		c := s.target.cohort
		var set labels.Labels
		p.Labels(&set)
		var err error
		if l, err = c.parsed(s, text, s.in, set); err != nil {
			s.refused++
			return err
		}
		l = s.target.admit(s, l)
		s.miss(l)
		s.values[len(s.values)-1] = v
	}
	at := int32(len(s.values) - 1)
	if isHistogram && l.kind == seriesLine {
		if s.natives == nil {
			s.natives = map[int32]nativeValue{}
		}
		if err := n.limit(most, schema); err != nil && *tooLarge == nil {
			*tooLarge, s.tooLarge = err, int(at)
		}
		s.natives[at] = n
	}
	e := &s.entry
	e.HasTS, e.Exemplar.Found = false, false
	if ts != nil {
		e.TS, e.HasTS = *ts, true
	}
	s.note(l)
	first := len(s.exemplars)
	for x := (exemplar.Exemplar{}); p.Exemplar(&x); x = (exemplar.Exemplar{}) {
		if l.kind != seriesLine || isHistogram && !x.HasTs {
			continue
		}
		if !x.HasTs {
			x.Ts = s.at
			if s.times != nil && s.times[at] != noTime {
				x.Ts = s.times[at]
			}
		}
		s.exemplars = append(s.exemplars, placedExemplar{Exemplar: x, sample: at})
	}
	slices.SortFunc(s.exemplars[first:], func(a, b placedExemplar) int { return exemplar.Compare(a.Exemplar, b.Exemplar) })
	return nil
}

// parsed returns the line of a sample that Prometheus' parser read for a scrape.
func (c *cohort) parsed(s *Scrape, b []byte, in setting, set labels.Labels) (*line, error) {
	setting := anySetting
	if set.Has("le") || set.Has("quantile") {
		setting = in
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := c.find(b, setting); l != nil {
		return c.hold(s, l), nil
	}
	final, err := c.final(set)
	if err != nil {
		return nil, err
	}
	return c.hold(s, c.addSeries(whole(b), setting, set, final, false)), nil
}
