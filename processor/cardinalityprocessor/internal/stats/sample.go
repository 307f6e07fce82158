// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"strings"
	"time"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/plain"
)

// sample holds a random part of the series: those whose hash ends in zeros, the more zeros the more series there are.
// So each count in it stands for that many times more, and if there are few series, it has all of them.
type sample struct {
	entries map[uint64]*entry
	mask    uint64 // of the hashes that are taken
	shown   uint64 // of the hashes that are complete
	bytes   int
	window  uint32
}

type entry struct {
	series text
	seen   uint32 // the last window in which it was seen
	told   *told  // kept while all series are in the sample
}

// told is what was reported about a series, for counting its labels.
type told struct {
	metric, base uint64 // hashes
	labels       []toldLabel
}

type toldLabel struct{ name, hash uint64 }

func (t *told) bytes() int {
	if t == nil {
		return 0
	}
	return toldBytes + len(t.labels)*16
}

const (
	toldBytes = 48

	maxSample      = 2048
	maxSampleBytes = 640 << 10
	entryBytes     = 96 // besides the text: the entry, and its place in the map
)

func (s *sample) add(of *Series, metric uint64) {
	hash := fold(of.Fingerprint, 2)
	if hash&s.mask != 0 {
		return
	}
	if e := s.entries[hash]; e != nil {
		e.seen = s.window
		return
	}
	e := &entry{series: describe(of), seen: s.window}
	if s.mask == 0 {
		e.told = &told{metric: metric, base: of.Base, labels: make([]toldLabel, len(of.Labels))}
		for i := range of.Labels {
			e.told.labels[i] = toldLabel{of.Labels[i].Name, of.Labels[i].Hash}
		}
	}
	s.entries[hash] = e
	s.bytes += e.bytes()
	if len(s.entries) > maxSample || s.bytes > maxSampleBytes {
		s.forgetTold()
	}
	for len(s.entries) > maxSample || s.bytes > maxSampleBytes {
		s.mask = s.mask<<1 | 1
		s.shown |= s.mask
		s.drop(func(hash uint64, _ *entry) bool { return hash&s.mask != 0 })
	}
}

func (s *sample) drop(gone func(hash uint64, e *entry) bool) {
	for hash, e := range s.entries {
		if gone(hash, e) {
			s.bytes -= e.bytes()
			delete(s.entries, hash)
		}
	}
}

func (e *entry) bytes() int { return entryBytes + len(e.series) + e.told.bytes() }

// forgetTold frees memory: what was told is only useful while all series are in the sample.
func (s *sample) forgetTold() {
	for _, e := range s.entries {
		s.bytes -= e.told.bytes()
		e.told = nil
	}
}

// all returns what was told about a metric, if the sample has all series.
func (s *sample) all(metric uint64) (all []*told) {
	if s.mask != 0 {
		return nil
	}
	for _, e := range s.entries {
		if e.told != nil && e.told.metric == metric {
			all = append(all, e.told)
		}
	}
	return all
}

// turn removes what was not seen recently. If much is gone, a greater part is taken from now on, and shown after the
// window in which all of it has been seen.
func (s *sample) turn() {
	s.shown = s.mask
	s.window++
	s.drop(func(_ uint64, e *entry) bool { return s.window-e.seen > 1 })
	if s.mask != 0 && len(s.entries) < maxSample/4 && s.bytes < maxSampleBytes/4 {
		s.mask >>= 1
	}
	if len(s.entries) == 0 { // maps never shrink
		s.entries = map[uint64]*entry{}
	}
}

// each calls f for each series that is shown, and returns how many series each stands for.
func (s *sample) each(f func(t text)) (factor float64) {
	for hash, e := range s.entries {
		if hash&s.shown == 0 {
			f(e.series)
		}
	}
	return float64(s.shown + 1)
}

// text is a series in one string, to save memory: the metric and all labels, separated by a byte that occurs in none of
// them.
type text string

const (
	divider        = "\xff"
	maxDescription = 1 << 10 // in bytes; further labels are left out
)

func describe(s *Series) text {
	var b strings.Builder
	b.WriteString(clean(s.Metric))
	for i := range s.Labels {
		if b.Len() > maxDescription {
			break
		}
		b.WriteString(divider)
		b.WriteString(clean(s.Labels[i].Key))
		b.WriteString(divider)
		b.WriteString(clean(plain.Text(s.Labels[i].Value)))
	}
	return text(b.String())
}

// clean shortens a name and makes it valid UTF-8.
func clean(s string) string { return strings.ToValidUTF8(short(s), "�") }

func (t text) metric() string {
	name, _, _ := strings.Cut(string(t), divider)
	return name
}

// labels calls f for each label.
func (t text) labels(f func(key, value string)) {
	_, rest, more := strings.Cut(string(t), divider)
	for more {
		var key, value string
		key, rest, _ = strings.Cut(rest, divider)
		value, rest, more = strings.Cut(rest, divider)
		f(key, value)
	}
}

// examples are some of the last series that were rejected, by rule and reason.
type examples struct {
	of map[[2]string]*[maxExamples]refusal

	key  [2]string // of the last rejected series
	last *[maxExamples]refusal
}

type refusal struct {
	series         text
	action, tenant string
	at             time.Time
}

const (
	maxExamples = 4
	maxRefusals = 32 // rules and reasons
	exampleOf   = 64 // one in this many is described, once there are enough
)

// add adds an example. noted is the number of series before.
func (x *examples) add(s *Series, noted int) {
	if key := [2]string{s.Rule, s.Reason}; x.last == nil || x.key != key {
		last := x.of[key]
		if last == nil {
			if len(x.of) == maxRefusals {
				return
			}
			last = new([maxExamples]refusal)
			x.of[key] = last
		}
		x.key, x.last = key, last
	}
	if x.last[maxExamples-1].series != "" && noted%exampleOf != 0 {
		return
	}
	copy(x.last[1:], x.last[:])
	x.last[0] = refusal{series: describe(s), action: s.Action, tenant: short(s.Tenant), at: s.At}
}

func (x *examples) bytes() (n int) {
	for _, last := range x.of {
		n += 448
		for _, r := range last {
			n += len(r.series) + len(r.tenant)
		}
	}
	return n
}
