// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block/wire"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/column"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/store"
)

// writeGroup appends a message for each of the first of some series that come together, in 2.0: for as many as are of one layout and of
// one rank, have one number and nothing else, and take as many bytes as the first one. It returns how many.
func (w *flusher) writeGroup(b *column.Buffer, slots []uint32) int {
	if !w.comesTogether(slots[0]) || !w.single(b, slots[0]) {
		return 0
	}
	s, c := w.e.cache.Row(b.Series[slots[0]]), w.cell(b, slots[0])
	room := min(len(slots), max(w.sampleLimit-w.points(), 0))
	if room == 0 || w.full(len(w.body), &s, c.Of) {
		return 0
	}
	begin := len(w.body)
	w.turn(&s, c.Of)
	p := w.partLabels(b, &s, slots)
	p.place = c.Of
	number, shift := w.open(b, &s, c, p.cut)
	message := w.body[begin:]
	done := 1
	if len(message) <= maxMessage && number.Fixed() {
		done += w.repeatSeries(b, &s, message, shift, number, p, slots[1:room])
	}
	if done >= minRun {
		w.tell(begin, len(message), done, shift, number, alike{place: c.Of, who: p.who, bits: c.Bits}, &p)
	}
	w.head.Samples += done
	return done
}

// parting is where the labels of a group's messages are parted, of which resource its first series is, and what tells that from the next.
type parting struct {
	cut   int
	place uint32
	who   uint64
}

// partLabels parts labels before the first one in which the first series of a group differs from the next: what is behind is the target's own,
// as the names of pods are, and the same in the messages of another metric.
func (w *flusher) partLabels(b *column.Buffer, s *cache.Row, slots []uint32) parting {
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

// single says whether a slot has one number, and no exemplar.
func (w *flusher) single(b *column.Buffer, slot uint32) bool {
	return b.Counts[slot] == 1 && w.cell(b, slot).Extra&column.IsHistogram == 0 && !w.isExemplary(slot)
}

// isExemplary says whether a slot, or one before it, has exemplars that are not yet written.
func (w *flusher) isExemplary(slot uint32) bool {
	return len(w.exemplars) > 0 && w.position[w.exemplars[0].Slot] <= w.position[slot]
}

// repeatSeries appends messages that are what the one given is but for the values of the point and of the resource, the number
// and its times: for as many slots as have the layout and room, until the first one's resource comes again. It returns how many. A run over
// several ranks would be alike only to one over the same ranks, where one of a single rank is alike to each other. Resources come in any order, as
// targets were scraped, but in the same one in each rank.
func (w *flusher) repeatSeries(b *column.Buffer, like *cache.Row, message []byte, shift int, number wire.Number, p parting, slots []uint32) int {
	body, first, last := w.body, w.head.MinTime, w.head.MaxTime
	done := 0
	for ; done < len(slots); done++ {
		s := b.Series[slots[done]]
		if s.Layout != like.Series.Layout || !w.single(b, slots[done]) {
			break
		}
		c := w.cell(b, slots[done])
		if c.Of == p.place { // the next rank
			break
		}
		start := b.Start(c)
		next := cache.Row{Series: s, Layout: like.Layout}
		if !number.Fits(c.Time, start) || w.full(len(body), &next, c.Of) {
			break
		}
		if s.Values != 0 {
			next.Values = like.Layout.Keys.ValuesOf(s.Values)
		}
		at := len(body)
		body = append(body, message...)
		made := body[at:]
		if !w.fillOwn(made, shift, p.cut, next.Values) || !w.fill(made[shift:], c.Of) {
			body = body[:at]
			break
		}
		number.Put(made, c.Bits, c.Time, start)
		first, last = min(first, c.Time), max(last, c.Time)
	}
	w.body, w.head.MinTime, w.head.MaxTime = body, first, last
	return done
}

// fillOwn puts the references of a point's values into a message like the one that the prefix is of. Those behind the number are so
// much further on than in the prefix. It is false if one takes more bytes or fewer than there.
func (w *flusher) fillOwn(message []byte, shift, cut int, values []uint32) bool {
	for i := range w.prefix.own {
		x := &w.prefix.own[i]
		ref := w.ref(values[x.value])
		if ref == x.ref { // it is there already
			continue
		}
		behind := message
		if x.at >= cut {
			behind = message[shift:]
		}
		if !x.put(behind, ref) {
			return false
		}
	}
	return true
}
