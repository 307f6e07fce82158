// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block/wire"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/column"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/store"
)

// writeGroup appends a message for each of the first slots that come together, in 2.0: for as many as have the same
// layout and rank, exactly one number, and the length of the first message. It returns how many.
func (w *Writer) writeGroup(b *column.Buffer, slots []uint32) int {
	if !w.sheet.isGrouped(slots[0]) || !w.sheet.single(b, slots[0]) {
		return 0
	}
	s, c := w.cache.Row(b.Series[slots[0]]), w.sheet.cell(b, slots[0])
	room := min(len(slots), max(w.sampleLimit-w.points(), 0))
	if room == 0 || w.mayOverflow(len(w.body), &s, c.Of) {
		return 0
	}
	begin := len(w.body)
	w.prefix.setSeries(&s, c.Of)
	p := w.partLabels(b, &s, slots)
	p.place = c.Of
	number, shift := w.appendFirst(b, &s, c, p.cut)
	message := w.body[begin:]
	done := 1
	if len(message) <= maxMessage && number.Fixed() {
		done += w.repeatSeries(b, &s, message, shift, number, p, slots[1:room])
	}
	if done >= minRun {
		w.Hints.addMessages(&w.prefix, begin, len(message), done, shift, number, runTraits{place: c.Of, point: p.who, bits: c.Bits}, &p)
	}
	w.head.Samples += done
	return done
}

// parting is where the labels of a group's messages are divided, the resource of its first series, and what
// distinguishes that from the next.
type parting struct {
	cut   int
	place uint32
	who   uint64
}

// partLabels divides labels before the first one in which the first series of a group differs from the next: what
// follows is the target's own, as names of pods are, and the same in the messages of other metrics.
func (w *Writer) partLabels(b *column.Buffer, s *cache.Row, slots []uint32) parting {
	p := parting{cut: w.prefix.cut, who: uint64(s.Series.Values)}
	if len(slots) < 2 || s.Series.Values == 0 {
		return p
	}
	next := b.Series[slots[1]]
	if next.Layout != s.Series.Layout || next.Values == 0 {
		return p
	}
	values, who := s.Layout.Keys.ValuesOf(next.Values), uint64(0)
	for i := range w.prefix.own {
		x := &w.prefix.own[i]
		if s.Values[x.value] == values[x.value] {
			continue
		}
		p.cut = min(p.cut, x.begin)
		who = store.Mix(who, uint64(x.ref))
	}
	if who != 0 {
		p.who = who
	}
	return p
}

// repeatSeries appends messages that equal the given one except for the values of the point and of the resource, the
// number and its timestamps: for as many slots as have the layout and fit, until the first one's resource comes again.
// It returns how many. A run over several ranks would be like only a run over the same ranks, whereas a run of one rank
// is like any other. The order of resources is arbitrary, that of the scrapes, but the same for each rank.
func (w *Writer) repeatSeries(b *column.Buffer, like *cache.Row, message []byte, shift int, number wire.Number, p parting, slots []uint32) int {
	body, first, last := w.body, w.head.MinTime, w.head.MaxTime
	done := 0
	for ; done < len(slots); done++ {
		s := b.Series[slots[done]]
		if s.Layout != like.Series.Layout || !w.sheet.single(b, slots[done]) {
			break
		}
		c := w.sheet.cell(b, slots[done])
		if c.Of == p.place { // the next rank
			break
		}
		start := b.Start(c)
		next := cache.Row{Series: s, Layout: like.Layout}
		if !number.Fits(c.Time, start) || w.mayOverflow(len(body), &next, c.Of) {
			break
		}
		if s.Values != 0 {
			next.Values = like.Layout.Keys.ValuesOf(s.Values)
		}
		at := len(body)
		body = append(body, message...)
		made := body[at:]
		if !w.prefix.fillOwn(made, shift, p.cut, next.Values) || !w.prefix.fill(made[shift:], c.Of) {
			body = body[:at]
			break
		}
		number.Put(made, c.Bits, c.Time, start)
		first, last = min(first, c.Time), max(last, c.Time)
	}
	w.body, w.head.MinTime, w.head.MaxTime = body, first, last
	return done
}
