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

// A Scrape reads one page. Its samples are numbered as the page has them, metadata included, so that as long as every
// line is the plan's next the numbers are the plan's.
type Scrape struct {
	plan.VaryingRoom
	replacement

	target *Target
	at     int64 // milliseconds
	whole  bool  // the page is collected and parsed at its end
	parser expo.Parser
	entry  expo.Entry
	in     catalog.Setting
	err    error
	ended  bool
	size   int64 // of what was fed
	lent   bool  // its values are held by the parts of its result, until these are released

	left    int64 // of the memory that the page may take
	longest int64 // that a line took of it while it was read

	plan     *plan.Plan
	borrowed bool            // it is not the target's
	held     []*catalog.Line // found by their text
	fresh    int             // lines that were not known
	since    uint32          // the highest number of a line before the first that was looked for
	learned  bool            // values of the target's own
	renamed  []string        // values of the target's own, where some that are new take the place of others
	searched bool            // for values of the target's own
	found    []string        // these, then
	mixed    bool            // lines may have values that the page has shown to be the target's own since
	expected []*catalog.Line // the last page's
	text     *plan.Text      // of the first of them, as long as the page has what was expected and nothing else
	texts    int             // how many these are
	places   []place         // of those that were read from the bytes at hand, if there is a text
	placed   int             // the first of them
	next     int             // of expected
	search   plan.Search
	strayed  bool  // from the plan: lines has what came instead
	lost     int   // lines in a row that were not the next
	look     int   // how many samples there are when it is time to look for repeats
	vain     error // there is no use in reading on

	lines     []*catalog.Line
	values    []float64
	times     []int64 // nil until a sample has one
	natives   map[int32]plan.NativeValue
	exemplars []plan.PlacedExemplar
	refused   int // samples that failed the page
	tooLarge  int // samples before the first histogram with too many buckets

	carry []byte // the start of a line whose end is in the next chunk
	retry int    // carry is not worth another look while it is shorter

	page    []*catalog.Line // expected, when it is not the plan's
	aligned []float64       // values in the order of the plan
	spare   []int64         // for times
	builder labels.ScratchBuilder
}

// scrapes are those that no page has now, and largeScrapes those that had one of many samples. Else small pages would have the memory of large
// ones, and these make it once more.
var scrapes, largeScrapes = sync.Pool{New: newScrape}, sync.Pool{New: newScrape}

func newScrape() any { return &Scrape{builder: labels.NewScratchBuilder(8)} }

// manySamples is from how many on a page is large.
const manySamples = 1 << 12

func scrapesOf(samples int) *sync.Pool {
	if samples >= manySamples {
		return &largeScrapes
	}
	return &scrapes
}

// Begin starts reading a page of the target that was asked for at a time.
func (t *Target) Begin(at time.Time, contentType string) (*Scrape, error) {
	f, err := t.cohort.job.format(contentType)
	if err != nil {
		return nil, err
	}
	return t.begin(at, f), nil
}

func (t *Target) begin(at time.Time, f format) *Scrape {
	samples := 0
	if t.Plan != nil {
		samples = len(t.Plan.Lines)
	}
	s := scrapesOf(samples).Get().(*Scrape)
	s.target, s.at = t, at.UnixMilli()
	s.own = t.Own
	t.format = f
	s.whole = f == protobufFormat || t.cohort.switches.custom
	s.parser.OpenMetrics = f == openMetricsFormat
	s.in = catalog.PlainSetting
	c := t.cohort
	s.left = c.job.budget()
	s.look = manyLines
	if s.plan = t.Plan; s.plan == nil && t.Pin == nil && c.job.cfg.SeriesLimit == 0 {
		c.mu.Lock()
		s.plan = c.Borrow(&t.Identity)
		s.borrowed = s.plan != nil
		c.mu.Unlock()
	}
	if s.plan != nil {
		s.expected = s.plan.Body
		s.text, s.texts = s.plan.Text(), len(s.expected)
		s.search = s.plan.Among(nil)
		if s.plan == t.Plan && !t.Diff.IsEmpty() {
			s.search = s.plan.Among(t.Diff.Extras)
			s.page = t.Diff.Apply(slices.Grow(s.page[:0], len(s.expected)+len(t.Diff.Extras)), s.expected)
			s.expected, s.texts = s.page, t.Diff.First()
		}
		s.values = slices.Grow(s.values, len(s.expected)+len(c.ReportLines))
	}
	return s
}

// maxRetained bounds what a finished scrape keeps for the next, in samples.
const maxRetained = 1 << 15

func (s *Scrape) release() {
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

// recycle leaves the memory of a scrape to the next.
func (s *Scrape) recycle() {
	if cap(s.values) > maxRetained || cap(s.carry) > 1<<20 {
		return
	}
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
		lines: s.lines[:0], values: s.values[:0], spare: s.spare, exemplars: s.exemplars[:0],
		carry: s.carry[:0], held: s.held[:0], page: s.page[:0], aligned: s.aligned[:0],
		VaryingRoom: plan.VaryingRoom{Missing: s.Missing[:0], Absent: s.Absent[:0], Gone: s.Gone[:0], Lost: s.Lost[:0]},
		replacement: replacement{slots: s.slots[:0]}, places: s.places[:0],
		builder: s.builder, entry: s.entry,
	}
	scrapesOf(cap(s.values)).Put(s)
}

// Feed reads on. chunk is borrowed; it may end anywhere. After an error, End is all that is left to call.
func (s *Scrape) Feed(chunk []byte) error {
	if s.err != nil {
		return s.err
	}
	s.size += int64(len(chunk))
	if s.vain != nil {
		return nil //nolint:nilerr // that is an error of the page's end: the rest is passed over until then
	}
	if s.err = s.feed(chunk); s.err == nil {
		s.err = s.afford()
	}
	if s.err == nil {
		s.vain = s.futile()
	}
	return s.err
}

func (s *Scrape) feed(chunk []byte) error {
	if s.whole {
		s.spend(carryCopies * int64(len(chunk)))
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

// note takes what a sample has besides its value.
func (s *Scrape) note(l *catalog.Line) {
	e := &s.entry
	time := int64(plan.NoTime)
	if e.HasTS && s.target.cohort.job.cfg.Scrape.HonorTimestamps {
		time = e.TS
		if s.times == nil {
			if s.spare == nil {
				s.spare = make([]int64, 0, max(len(s.expected), 64))
			}
			s.times, s.text = s.spare[:0], nil
			for len(s.times) < len(s.values)-1 {
				s.times = append(s.times, plan.NoTime)
			}
		}
	}
	if s.times != nil {
		s.times = append(s.times, time)
	}
	if e.Exemplar.Found && l.Kind == catalog.SeriesLine {
		s.exemplify(&e.Exemplar, time)
	}
}

// take takes a line that was not expected.
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
		if s.times != nil {
			s.times = append(s.times, plan.NoTime)
		}
		return nil
	}
	s.values[len(s.values)-1] = e.Value
	s.note(l)
	return nil
}

// fewLines is how many lines a page has of which what comes and goes is not worth being cut, unless it is long: then what a line says is
// said by others that come with it, as with all metrics of a pod.
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

// known has the catalog find a line, or make it known, and pays for what that takes.
func (s *Scrape) known(find func(c *cohort) (*catalog.Line, error)) (*catalog.Line, error) {
	c := s.target.cohort
	c.mu.Lock()
	defer c.mu.Unlock()
	held, newest := c.Held(), c.LastID
	if s.since == 0 {
		s.since = newest
	}
	l, err := find(c)
	c.charge(s, held)
	if err != nil {
		return nil, err
	}
	if l.ID > newest && !l.Kind.IsMetadata() {
		s.fresh++
	}
	return c.hold(s, l), nil
}

// miss takes a line that is not the plan's next, and looks for the place in the plan where to go on.
func (s *Scrape) miss(l *catalog.Line) {
	if !s.strayed {
		s.strayed, s.text = true, nil
		s.lines = append(slices.Grow(s.lines[:0], len(s.expected)+len(s.expected)/16), s.expected[:s.next]...)
	}
	s.lines = append(s.lines, l)
	s.values = append(s.values, 0)
	s.spend(sampleBytes)
	s.lost++
	if i := s.search.Ahead(s.expected, s.next, s.lost, l); i >= 0 {
		s.next, s.lost = i+1, 0
	}
}

// manyHeld is how many lines a page holds that was not expected to have them.
const manyHeld = 1 << 10

// IsLearning tells whether what is read is held line by line, since the page has other lines than were expected.
func (s *Scrape) IsLearning() bool { return len(s.held) > manyHeld }

// Held returns how many lines are held that were not expected.
func (s *Scrape) Held() int { return len(s.held) }

// finish ends the reading.
func (s *Scrape) finish() error {
	if s.err == nil {
		s.err = s.vain
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

// seen returns the lines of the page up to here.
func (s *Scrape) seen() []*catalog.Line {
	if s.strayed {
		return s.lines
	}
	return s.expected[:s.next]
}
