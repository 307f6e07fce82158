// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
)

// collected parses a page that was collected as a whole.
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

// opened returns a parser of a page, or of a part of one.
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
	schema, most := plan.Coarsest(cfg.NativeHistogramMinBucketFactor), int(cfg.NativeHistogramBucketLimit)
	var text []byte
	for {
		kind, err := p.Next()
		isLast := errors.Is(err, io.EOF)
		if err == nil || isLast {
			err = s.afford() // including what the previous parser took: a page that is as planned is not checked elsewhere
		}
		if isLast || err != nil {
			return err
		}
		m := catalog.Meta{}
		var family []byte
		switch kind {
		case textparse.EntryType:
			m.Kind = catalog.TypeLine
			family, m.Type = p.Type()
			s.in = catalog.SettingOf(m.Type)
			text = append(append(append(append(text[:0], "T "...), family...), ' '), m.Type...)
		case textparse.EntryHelp, textparse.EntryUnit:
			m.Kind = catalog.HelpLine
			read := p.Help
			text = append(text[:0], "H "...)
			if kind == textparse.EntryUnit {
				m.Kind, read = catalog.UnitLine, p.Unit
				text[0] = 'U'
			}
			var said []byte
			family, said = read()
			m.Text = string(said)
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
		if l := s.expectedAs(text); l != nil && l.Kind == m.Kind {
			s.hit(l, 0)
			continue
		}
		s.miss(s.metadata(text, family, m))
		s.addNoTime()
	}
}

// expectedAs returns the plan's next line if it has the text.
func (s *Scrape) expectedAs(text []byte) *catalog.Line {
	if s.next < len(s.expected) && s.expected[s.next].Is(text) {
		return s.expected[s.next]
	}
	return nil
}

func (s *Scrape) sample(p textparse.Parser, isHistogram bool, most int, schema int32, tooLarge *error) error {
	var (
		text []byte
		ts   *int64
		v    float64
		n    plan.NativeValue
	)
	if isHistogram {
		text, ts, n.Integers, n.Floats = p.Histogram()
		if n.Integers == nil && n.Floats == nil {
			return fmt.Errorf("cannot read histogram %.200q: it has neither integers nor floats", text)
		}
		text = strconv.AppendInt(append(text[:len(text):len(text)], catalog.NativeMark...), int64(n.Representation()), 10)
	} else {
		text, ts, v = p.Series()
	}
	s.spendLongest(textCopies * int64(len(text)))
	l := s.expectedAs(text)
	if l != nil && l.Kind != catalog.DroppedLine && l.Kind != catalog.SeriesLine || s.strayed && l != nil && l.Setting > catalog.AnySetting && l.Setting != s.in {
		l = nil
	}
	if l != nil {
		s.hit(l, v)
	} else {
		var set labels.Labels
		p.Labels(&set)
		var err error
		if l, err = s.parsed(text, set); err != nil {
			s.refused++
			return err
		}
		l = s.target.admit(s, l)
		s.miss(l)
		s.values[len(s.values)-1] = v
	}
	at := int32(len(s.values) - 1)
	if isHistogram && l.Kind == catalog.SeriesLine {
		if s.natives == nil {
			s.natives = map[int32]plan.NativeValue{}
		}
		if err := n.Limit(most, schema); err != nil && *tooLarge == nil {
			*tooLarge, s.tooLarge = err, int(at)
		}
		s.spendPassing(n.Bytes())
		s.natives[at] = n
	}
	e := &s.entry
	e.HasTS, e.Exemplar.Found = false, false
	if ts != nil {
		e.TS, e.HasTS = *ts, true
	}
	s.note(l)
	if l.Kind != catalog.SeriesLine {
		return nil // its exemplars are left unread: the parser would skip as many of the next native histogram
	}
	first := len(s.exemplars)
	for x := (exemplar.Exemplar{}); p.Exemplar(&x); x = (exemplar.Exemplar{}) {
		if isHistogram && !x.HasTs {
			continue
		}
		if !x.HasTs {
			x.Ts = s.at
			if s.times != nil && s.times[at] != plan.NoTime {
				x.Ts = s.times[at]
			}
		}
		s.spendPassing(exemplarBytes + 3*int64(x.Labels.ByteSize()))
		s.exemplars = append(s.exemplars, plan.PlacedExemplar{Exemplar: x, Sample: at})
	}
	slices.SortStableFunc(s.exemplars[first:], func(a, b plan.PlacedExemplar) int { return exemplar.Compare(a.Exemplar, b.Exemplar) })
	return nil
}
