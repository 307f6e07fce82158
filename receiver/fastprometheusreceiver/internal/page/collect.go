// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// collected parses a page that was read as a whole.
func (s *Scrape) collected() error {
	var tooLarge error
	for b := s.carry; len(b) > 0; {
		section, isAmended := b, false
		if s.target.format == protobufFormat {
			var err error
			if section, isAmended, err = s.section(b); err != nil {
				return err
			}
		}
		if err := s.afford(); err != nil {
			return err
		}
		read := section
		if isAmended {
			read = amendSection(section)
		}
		p, err := s.opened(read)
		if err == nil {
			err = s.parse(p, &tooLarge)
		}
		if err != nil {
			return err
		}
		b = b[len(section):]
	}
	return tooLarge
}

// opened returns the parser of a page, or of a part of one.
func (s *Scrape) opened(b []byte) (textparse.Parser, error) {
	media := map[format]string{
		textFormat: "text/plain", openMetricsFormat: "application/openmetrics-text", protobufFormat: "application/vnd.google.protobuf",
	}[s.target.format]
	sw := s.target.cohort.switches
	return textparse.New(b, media, nil, textparse.ParserOptions{
		IgnoreNativeHistograms:                  !sw.native,
		ConvertClassicHistogramsToNHCB:          sw.custom,
		KeepClassicOnClassicAndNativeHistograms: sw.classic,
	})
}

// parse reads a page with one of Prometheus' parsers: protobuf, and any format whose classic histograms are converted.
// Its entries are lines like any other, named by the bytes the parser names them by.
//
// tooLarge is set when a histogram has too many buckets, which only counts once the page has been read.
func (s *Scrape) parse(p textparse.Parser, tooLarge *error) error {
	cfg := s.target.cohort.job.cfg.Scrape
	schema, most := coarsest(cfg.NativeHistogramMinBucketFactor), int(cfg.NativeHistogramBucketLimit)
	var text []byte
	for {
		kind, err := p.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = s.afford()
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
			if err := s.sample(p, kind == textparse.EntryHistogram, most, schema, tooLarge); err != nil {
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
	if s.next < len(s.expected) && s.expected[s.next].is(text) {
		return s.expected[s.next]
	}
	return nil
}

// nativeMark ends the text of a native histogram's line, but for its representation. No other text has it.
const nativeMark = "\xff#"

// native returns which representation of a histogram the line has.
func (l *line) native() native {
	switch text := string(*l.body); { // which is whole, being the parser's
	case strings.HasSuffix(text, nativeMark+"1"):
		return exponential
	case strings.HasSuffix(text, nativeMark+"2"):
		return custom
	default:
		return classic
	}
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
		if n.h == nil && n.fh == nil {
			return fmt.Errorf("cannot read histogram %.200q: it has neither integers nor floats", text)
		}
		text = strconv.AppendInt(append(text[:len(text):len(text)], nativeMark...), int64(n.representation()), 10)
	} else {
		text, ts, v = p.Series()
	}
	s.spendLongest(textCopies * int64(len(text)))
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
		s.spend(n.bytes())
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
		s.spend(exemplarBytes + 3*int64(x.Labels.ByteSize()))
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
	if l := c.find(s.target, b, setting); l != nil {
		return c.hold(s, l), nil
	}
	defer c.charge(s, c.held())
	final, cond, err := c.final(set, s.target)
	if errors.Is(err, errPinned) {
		c.pin(s.target)
		if l := c.find(s.target, b, setting); l != nil {
			return c.hold(s, l), nil
		}
		final, cond, err = c.final(set, s.target)
	}
	if err != nil {
		return nil, err
	}
	return c.hold(s, c.addSeries(whole(c.nameOf(set, final, cond), b), setting, final, false)), nil
}
