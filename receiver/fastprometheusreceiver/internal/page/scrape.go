// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/expo"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
)

// A Scrape reads one page. Its samples have the numbers of their lines, metadata included, so that their numbers are
// those of the plan as long as every line is the plan's next.
type Scrape struct {
	lineTracker // how the page goes along with what was expected
	samples     // what its lines say
	budget      // the memory that it may take
	learning    // what is found out about values of the target's own
	replacement // what has taken the place of some of these
	plan.VaryingRoom

	target *Target
	at     int64 // milliseconds

	whole      bool // the page is collected, and parsed at its end
	parser     expo.Parser
	entry      expo.Entry
	in         catalog.Setting
	carry      []byte // the start of a line whose end has not come yet
	retry      int    // carry is not parsed again until it is longer than this
	size       int64  // bytes fed
	ended      bool
	err        error
	skipReason error // why the rest of the page is skipped

	aligned []float64 // values in the plan's order
	stamps  []int64   // timestamps in the plan's order
	lent    bool      // parts of the result use the values, until they are released
	large   bool      // the memory is that of large pages
}

// scrapes are idle ones, and largeScrapes those that last read a large page. With a single pool, small pages would hold
// the memory of large ones, which would then be allocated once more.
var scrapes, largeScrapes = sync.Pool{New: newScrape}, sync.Pool{New: newScrape}

func newScrape() any { return &Scrape{samples: samples{builder: labels.NewScratchBuilder(8)}} }

// manySamples is the number of samples from which on a page is large.
const manySamples = 1 << 12

func scrapesOf(samples int) *sync.Pool {
	if samples >= manySamples {
		return &largeScrapes
	}
	return &scrapes
}

// pool returns the pool for the target's next page. A scrape with the memory of large pages stays in their pool, even
// if its last page was small. The capacity of a list does not show which kind it was for: it may exceed what was asked
// for.
func (s *Scrape) pool() *sync.Pool {
	if s.large || cap(s.values) >= 2*manySamples {
		return &largeScrapes
	}
	return scrapesOf(s.target.usual())
}

// usual is about how many samples a page of the target has.
func (t *Target) usual() int {
	if t.Plan == nil {
		return 0
	}
	return len(t.Plan.Lines)
}

// Begin starts reading a page of the target that was requested at the given time.
func (t *Target) Begin(at time.Time, contentType string) (*Scrape, error) {
	f, err := t.cohort.job.format(contentType)
	if err != nil {
		return nil, err
	}
	return t.begin(at, f), nil
}

func (t *Target) begin(at time.Time, f format) *Scrape {
	samples := t.usual()
	s := scrapesOf(samples).Get().(*Scrape)
	s.target, s.at, s.large = t, at.UnixMilli(), samples >= manySamples
	s.own = t.Own
	t.format = f
	s.whole = f == protobufFormat || t.cohort.switches.custom
	s.parser.OpenMetrics = f == openMetricsFormat
	s.in = catalog.PlainSetting
	c := t.cohort
	s.budget = c.job.budget()
	s.usual = t.passing
	s.look = manyLines
	if s.plan = t.Plan; s.plan == nil && t.Pin == nil && c.job.cfg.SeriesLimit == 0 {
		c.mu.Lock()
		s.plan = c.Borrow(&t.Identity)
		s.borrowed = s.plan != nil
		c.mu.Unlock()
	}
	if s.plan != nil {
		s.expect(t)
		s.values = slices.Grow(s.values, len(s.expected)+len(c.ReportLines))
	}
	return s
}

// maxRetained limits the samples for which a finished scrape keeps memory.
const maxRetained = 1 << 15

func (s *Scrape) release() {
	s.leave()
	if s.borrowed {
		c := s.target.cohort
		c.mu.Lock()
		c.Abandon(s.plan)
		c.mu.Unlock()
	}
	if !s.lent {
		s.recycle()
	}
}

// recycle hands the memory of a scrape to the next one.
func (s *Scrape) recycle() {
	if cap(s.values) > maxRetained || cap(s.carry) > 1<<20 {
		return
	}
	pool := s.pool()
	if s.times != nil {
		s.spare = s.times
	}
	clear(s.lines[:cap(s.lines)])
	clear(s.exemplars)
	clear(s.Gone)
	clear(s.Lost[:cap(s.Lost)])
	clear(s.held[:cap(s.held)])
	clear(s.page[:cap(s.page)])
	*s = Scrape{
		lineTracker: lineTracker{places: s.places[:0], lines: s.lines[:0], page: s.page[:0]},
		samples:     samples{values: s.values[:0], spare: s.spare, exemplars: s.exemplars[:0], builder: s.builder},
		learning:    learning{held: s.held[:0]}, replacement: replacement{slots: s.slots[:0]},
		VaryingRoom: plan.VaryingRoom{Missing: s.Missing[:0], Absent: s.Absent[:0], Gone: s.Gone[:0], Lost: s.Lost[:0]},
		entry:       s.entry, carry: s.carry[:0], aligned: s.aligned[:0], stamps: s.stamps[:0],
	}
	pool.Put(s)
}

// Feed reads the next chunk of the page. chunk is borrowed; it may end anywhere. After an error, only End may be
// called.
func (s *Scrape) Feed(chunk []byte) error {
	if s.err != nil {
		return s.err
	}
	s.size += int64(len(chunk))
	if s.skipReason != nil {
		return nil //nolint:nilerr // that is an error of the page's end: the rest is passed over until then
	}
	if s.err = s.feed(chunk); s.err == nil {
		s.err = s.afford()
	}
	if s.err == nil {
		s.skipReason = s.reasonToStop()
	}
	return s.err
}

func (s *Scrape) feed(chunk []byte) error {
	if s.whole {
		s.spendPassing(carryCopies * int64(len(chunk)))
		s.carry = append(s.carry, chunk...)
		return nil
	}
	if len(s.carry) > 0 {
		nl := bytes.IndexByte(chunk, '\n') + 1
		for nl > 0 {
			s.carry = append(s.carry, chunk[:nl]...)
			chunk = chunk[nl:]
			if len(s.carry) >= s.retry {
				break
			}
			nl = bytes.IndexByte(chunk, '\n') + 1
		}
		if nl == 0 {
			s.carry = append(s.carry, chunk...)
			s.spendLongest(textCopies * int64(len(s.carry)))
			return nil
		}
		rest, err := s.read(s.carry)
		if err != nil {
			return err
		}
		if len(rest) > 0 { // a line break within a label value
			s.retry = 2 * len(rest)
			s.carry = append(s.carry[:0], rest...)
			return s.feed(chunk)
		}
		s.carry, s.retry = s.carry[:0], 0
	}
	end := bytes.LastIndexByte(chunk, '\n') + 1
	rest, err := s.read(chunk[:end])
	if err != nil {
		return err
	}
	s.carry = append(append(s.carry, rest...), chunk[end:]...)
	if s.retry = 0; len(rest) > 0 {
		s.retry = 2 * len(rest)
	}
	return nil
}

var errAfterEnd = errors.New("cannot read page: unexpected data after # EOF")

// note records the timestamp and the exemplar of a sample.
func (s *Scrape) note(l *catalog.Line) {
	e := &s.entry
	time := int64(plan.NoTime)
	if e.HasTS && s.target.cohort.job.cfg.Scrape.HonorTimestamps {
		time = e.TS
		if s.times == nil {
			s.beginTimes(len(s.expected))
			s.text = nil
		}
	}
	if s.times != nil {
		s.times = append(s.times, time)
	}
	if e.Exemplar.Found && l.Kind == catalog.SeriesLine {
		if time == plan.NoTime {
			time = s.at
		}
		s.spendPassing(s.addExemplar(&e.Exemplar, time))
	}
}

// take reads a line that was not expected.
func (s *Scrape) take() error {
	e := &s.entry
	var l *catalog.Line
	if err := s.afford(); err != nil {
		return err
	}
	switch e.Kind {
	case expo.Nothing:
		return nil
	case expo.End:
		s.ended = true
		return nil
	default:
	}
	if len(s.slots) > 0 {
		if err := s.putBack(); err != nil {
			return err
		}
	}
	switch e.Kind {
	case expo.Type:
		l = s.metadata(e.Text, e.Name, catalog.Meta{Kind: catalog.TypeLine, Type: e.Type})
		s.in = l.Setting
	case expo.Help:
		l = s.metadata(e.Text, e.Name, catalog.Meta{Kind: catalog.HelpLine, Text: s.parser.HelpText(e)})
	case expo.Unit:
		l = s.metadata(e.Text, e.Name, catalog.Meta{Kind: catalog.UnitLine, Text: string(e.Body)})
	default:
		s.spendLongest(textCopies*int64(len(e.Text)) + labelBytes*int64(e.Labels()))
		if n := e.Labels() - fewLabels; n > 0 {
			s.spend(labelInMetrics * int64(n))
		}
		err := s.afford()
		if err == nil {
			l, err = s.series(e)
		}
		if err != nil {
			s.refused++
			return err
		}
		l = s.target.admit(s, l)
	}
	s.miss(l)
	if l.Kind.IsMetadata() {
		s.addNoTime()
		return nil
	}
	s.values[len(s.values)-1] = e.Value
	s.note(l)
	return nil
}

// fewLines is the number of lines below which a page's texts are not cut into shared pieces, unless a text is long: on
// short pages, most labels that come and go are on several lines anyway, as with all metrics of a pod.
const (
	fewLines = 1 << 12
	longText = 128
)

// series returns the line of a sample.
func (s *Scrape) series(e *expo.Entry) (*catalog.Line, error) {
	t := s.target
	isWhole := t.Plan != nil && len(t.Plan.Lines) < fewLines && len(e.Text) < longText
	return s.known(func(c *cohort) (*catalog.Line, error) { return c.Series(&t.Identity, e, s.in, isWhole) })
}

// parsed returns the line of a sample that Prometheus' parser has read.
func (s *Scrape) parsed(text []byte, set labels.Labels) (*catalog.Line, error) {
	return s.known(func(c *cohort) (*catalog.Line, error) { return c.Parsed(&s.target.Identity, text, s.in, set) })
}

// metadata returns the line of a TYPE, HELP or UNIT.
func (s *Scrape) metadata(text, family []byte, m catalog.Meta) *catalog.Line {
	l, _ := s.known(func(c *cohort) (*catalog.Line, error) { return c.Metadata(text, family, m), nil })
	return l
}

// known finds a line in the catalog, or adds it, and charges the scrape for the memory.
func (s *Scrape) known(find func(c *cohort) (*catalog.Line, error)) (*catalog.Line, error) {
	c := s.target.cohort
	c.mu.Lock()
	defer c.mu.Unlock()
	held, newest := c.Held(), c.LastID
	if s.since == 0 {
		s.since = newest
	}
	c.looked.Store(s.at)
	l, err := find(c)
	c.charge(s, held)
	if c.LastID > newest {
		c.learned.Store(s.at)
	}
	if err != nil {
		return nil, err
	}
	if l.ID > newest && !l.Kind.IsMetadata() {
		s.fresh++
	}
	return c.hold(s, l), nil
}

// miss takes a line that is not the plan's next.
func (s *Scrape) miss(l *catalog.Line) {
	s.deviate(l)
	s.values = append(s.values, 0)
	s.spend(sampleBytes)
}

// manyHeld is the number of unexpected lines from which on a page counts as learning.
const manyHeld = 1 << 10

// IsLearning reports whether the page has so many unexpected lines that most of it is held line by line.
func (s *Scrape) IsLearning() bool { return len(s.held) > manyHeld }

// Held returns how many unexpected lines are held.
func (s *Scrape) Held() int { return len(s.held) }

// finish ends the reading.
func (s *Scrape) finish() error {
	if s.err == nil {
		s.err = s.skipReason
	}
	if s.err != nil {
		return s.err
	}
	if s.whole {
		if len(s.carry) == 0 {
			return nil
		}
		return s.collected()
	}
	if len(s.carry) > 0 {
		b := s.carry
		if !s.parser.OpenMetrics {
			b = append(b, '\n')
		}
		rest, err := s.read(b)
		if err != nil {
			return err
		}
		if len(rest) > 0 {
			return fmt.Errorf("cannot parse line: it does not end: %.120q", rest)
		}
	}
	if s.parser.OpenMetrics && !s.ended && len(s.values) > 0 {
		return errors.New("cannot read page: data does not end with # EOF")
	}
	return nil
}
