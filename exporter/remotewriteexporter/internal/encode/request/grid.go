// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block/wire"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/column"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/store"
)

const (
	// minGrid is the least number of series, and of resources, of a grid.
	minGrid = 7
	// maxGrids limits the kinds of grids that are told apart.
	maxGrids = 64
	// maxGridLabels is the most labels that a message of at most maxMessage bytes has.
	maxGridLabels = 14
)

// grids are series of a flush whose messages are written in an order made for formats that have no short way to repeat
// a distance: for snappy, where each copy takes three bytes.
//
// Such a message is a head, which belongs to its series, a number, and a tail, which belongs to its resource. Row by
// row, as runs are, or column by column, each message takes two copies, since no head came before after the same tail.
// But the same thing can always follow a tail: the head of the row with the number of the tail's column. In a square
// with a prime number of rows there is an order like that which has every message once: see square. Then a tail and the
// head after it are one copy.
type grids struct {
	list  []grid
	grid  []uint32 // by slot: one more than its index in list, 0 for none, noGrid if it must not be in one
	begin int      // index in the order at which the slots of grids begin
	tails []uint32 // by place of the resource: offset in body of its last tail
	sq    square   // scratch
}

const noGrid = ^uint32(0)

// grid is slots with one number for each of the same resources.
type grid struct {
	like  uint64 // identifies the kind
	first uint32 // its first slot
	start bool   // numbers have start timestamps
	rows  uint32
	slots []uint32
}

// splitOff returns where the slots of grids begin in an order of n slots.
func (g *grids) splitOff(n int) int {
	if len(g.list) == 0 {
		return n
	}
	return g.begin
}

func (g *grids) release(usual int) {
	if cap(g.grid) > 4*usual+column.FewSamples {
		*g = grids{}
	}
}

// findGrids finds grids, and moves their slots to the end of the order.
func (w *Writer) findGrids(b *column.Buffer) {
	w.grids.list = w.grids.list[:0]
	w.grids.tails = resize(w.grids.tails, len(w.refs.resources))
	if !block.UsesEchoes(w.format) || b.Unlisted || w.sheet.inOrder || len(w.refs.resources) < minGrid || len(b.Series) < minGrid {
		return
	}
	w.grids.grid = resize(w.grids.grid, len(b.Series))
	clear(w.grids.grid)
	for i := range b.Exemplars {
		w.grids.grid[b.Exemplars[i].Slot] = noGrid
	}
	rows := uint32(0)
	for _, slot := range w.sheet.order {
		if w.grids.grid[slot] != noGrid && !w.sheet.isGrouped(slot) {
			if w.grids.grid[slot] = w.gridOf(b, slot); w.grids.grid[slot] > 0 {
				g := &w.grids.list[w.grids.grid[slot]-1]
				g.rows++
				rows = max(rows, g.rows)
			}
		}
	}
	if rows < minGrid {
		w.grids.list = w.grids.list[:0]
		return
	}
	w.moveGrids(b)
}

// gridOf returns one more than the index of the grid of a slot's kind, 0 if there is none.
func (w *Writer) gridOf(b *column.Buffer, slot uint32) uint32 {
	cells := w.sheet.cells(b, slot)
	if len(cells) < minGrid {
		return 0
	}
	start := cells[0].Extra&column.IsHistogram == 0 && b.Start(&cells[0]) != 0
	r := w.cache.Row(b.Series[slot])
	like, ok := tailHash(&r, start)
	if !ok {
		return 0
	}
	like = store.Mix(store.Mix(store.Mix(like, uint64(len(cells))), uint64(cells[0].Of)), uint64(cells[len(cells)-1].Of))
	at := slices.IndexFunc(w.grids.list, func(g grid) bool { return g.like == like })
	if at < 0 && len(w.grids.list) == maxGrids {
		return 0
	}
	others := cells
	if at >= 0 {
		others = w.sheet.cells(b, w.grids.list[at].first)
	}
	if len(others) != len(cells) {
		return 0
	}
	for i := range cells {
		c := &cells[i]
		if c.Of != others[i].Of || i > 0 && c.Of == cells[i-1].Of || c.Extra&column.IsHistogram != 0 || !wire.Usual(c.Time) {
			return 0
		}
		if s := b.Start(c); (s != 0) != start || start && !wire.Usual(s) {
			return 0
		}
	}
	if at < 0 {
		at = len(w.grids.list)
		w.grids.list = slices.Grow(w.grids.list, 1)[:at+1]
		g := &w.grids.list[at]
		*g = grid{like: like, first: slot, start: start, slots: g.slots[:0]}
	}
	return uint32(at + 1)
}

// tailHash returns a hash of what follows the number in a series' messages, without the values of resources. It
// returns false if there are no such values, nothing before them, or too much in all.
func tailHash(r *cache.Row, start bool) (like uint64, ok bool) {
	labels := r.Layout.Labels
	if len(labels) > maxGridLabels {
		return 0, false
	}
	first := slices.IndexFunc(labels, func(l cache.LabelRef) bool { return l.Value&cache.FromResource != 0 })
	if first < 1 {
		return 0, false
	}
	if start {
		like = 1
	}
	for _, l := range labels[first:] {
		value := l.Value
		if value&cache.FromResource == 0 {
			value = r.Ref(l)
		}
		like = store.Mix(like, uint64(l.Name)<<32|uint64(value))
	}
	return like, true
}

// moveGrids moves the slots of grids that are large enough to the end of the order. There, rows with similar numbers
// are adjacent: then part of a number often precedes the same tail again.
func (w *Writer) moveGrids(b *column.Buffer) {
	kept := w.sheet.order[:0]
	for _, slot := range w.sheet.order {
		if k := w.grids.grid[slot]; k == 0 || k == noGrid || w.grids.list[k-1].rows < minGrid {
			kept = append(kept, slot)
		} else {
			g := &w.grids.list[k-1]
			g.slots = append(g.slots, slot)
		}
	}
	w.grids.begin = len(kept)
	for i := range w.grids.list {
		slots := w.grids.list[i].slots
		slices.SortStableFunc(slots, func(x, y uint32) int { return cmp.Compare(w.numberKey(b, x), w.numberKey(b, y)) })
		kept = append(kept, slots...)
	}
	w.sheet.order = kept
	for i, slot := range w.sheet.order {
		w.sheet.position[slot] = uint32(i)
	}
}

// numberKey is a sort key of slots by their numbers: first those that are equal for all resources.
func (w *Writer) numberKey(b *column.Buffer, slot uint32) uint64 {
	cells := w.sheet.cells(b, slot)
	if cells[0].Bits == cells[1].Bits {
		return 0
	}
	return cells[0].Bits >> 52
}

// writeGrids writes all grids.
func (w *Writer) writeGrids(b *column.Buffer) {
	for i := range w.grids.list {
		if g := &w.grids.list[i]; len(g.slots) > 0 {
			w.area(b, g.slots, 0, int(b.Counts[g.first]))
		}
	}
}

// area writes rows of a grid, from column first to end, in the largest possible squares.
func (w *Writer) area(b *column.Buffer, rows []uint32, first, end int) {
	for len(rows) > 0 && first < end {
		k := largestPrime(min(len(rows), end-first))
		if k < minGrid {
			for _, slot := range rows {
				w.writeSlot(b, slot, w.sheet.cells(b, slot)[first:end])
			}
			return
		}
		at := first
		for ; at+k <= end; at += k {
			w.square(b, rows[:k], at)
		}
		w.area(b, rows[:k], at, end)
		rows = rows[k:]
	}
}

// largestPrime returns the largest prime number up to n for which there is a square, 0 if there is none.
func largestPrime(n int) int {
	for i := len(primes) - 1; i >= 0; i-- {
		if int(primes[i]) <= n {
			return int(primes[i])
		}
	}
	return 0
}

// primes are the sizes of squares. Larger ones would gain little, and copies would be from further away.
var primes = [...]uint8{7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 101, 103, 107, 109, 113, 127}

// square is a prime number of rows and as many columns.
//
// Its messages are written in as many cycles. In a cycle, the column of each message is a fixed number of columns,
// different for each cycle, after that of the one before, and its row is the number of that earlier column. As the
// number of columns is prime, each column comes once in a cycle, and each cell of the square once in all cycles.
type square struct {
	cells   []uint32 // offset in sorted of each row
	heads   pieces
	tails   pieces
	columns []gridColumn
}

// gridColumn is what most cells of a column share.
type gridColumn struct {
	place       uint32
	time, start int64
}

// pieces are parts of messages, one after another.
type pieces struct {
	bytes []byte
	ends  []uint32
}

func (p *pieces) clear() { p.bytes, p.ends = p.bytes[:0], append(p.ends[:0], 0) }

func (p *pieces) end() { p.ends = append(p.ends, uint32(len(p.bytes))) }

func (p *pieces) one(i int) []byte { return p.bytes[p.ends[i]:p.ends[i+1]] }

// square writes as many columns of rows as there are rows.
func (w *Writer) square(b *column.Buffer, rows []uint32, first int) {
	k := len(rows)
	s := &w.grids.sq
	s.cells, s.columns = s.cells[:0], s.columns[:0]
	weight := k * maxMessage
	for _, slot := range rows {
		s.cells = append(s.cells, w.sheet.begins[slot]+uint32(first))
		weight += int(b.Series[slot].Weight)
	}
	for j := range uint32(k) {
		c := &w.sheet.sorted[s.cells[0]+j]
		s.columns = append(s.columns, gridColumn{place: c.Of, time: c.Time, start: b.Start(c)})
		weight += w.sheet.weights[c.Of]
	}
	if weight > w.rawLimit/2 || k > w.sampleLimit {
		for _, slot := range rows {
			w.writeSlot(b, slot, w.sheet.cells(b, slot)[first:first+k])
		}
		return
	}
	prepared := false
	for step := 0; step < k*k; {
		n := min(k-step%k, w.sampleLimit-w.points(), (w.rawLimit-w.size())/maxMessage)
		if n <= 0 || !prepared && w.size()+weight > w.rawLimit {
			w.finish()
			w.begin()
			prepared = false
			continue
		}
		if prepared = prepared || w.prepareSquare(b, rows); !prepared { // messages became too long
			w.cellByCell(b, rows, step)
			return
		}
		w.cycle(b, k, step/k, step%k, n)
		step += n
	}
}

// prepareSquare makes the heads and tails of the square's messages in this request. It returns false if these would be
// too long.
func (w *Writer) prepareSquare(b *column.Buffer, rows []uint32) bool {
	s := &w.grids.sq
	s.heads.clear()
	s.tails.clear()
	first := &s.columns[0]
	longest := 0
	for _, slot := range rows {
		r := w.cache.Row(b.Series[slot])
		w.prefix.setSeries(&r, first.place)
		p := &w.prefix
		if p.cut == 0 {
			return false
		}
		m := s.heads.bytes
		m = append(m, p.bytes[:2]...)
		m = append(m, byte(wire.RefsV2), byte(p.cut-4))
		m = append(m, p.bytes[4:p.cut]...)
		m = append(m, w.prefix.metadata(r.Layout.Meta)...) // after the name, as some decoders expect
		s.heads.bytes = wire.AppendNumberHead(m, first.start != 0)
		s.heads.end()
		longest = max(longest, len(s.heads.one(len(s.heads.ends)-2)))
	}
	longestTail := 0
	r := w.cache.Row(b.Series[rows[0]])
	for j := range s.columns {
		c := &s.columns[j]
		w.prefix.setSeries(&r, c.place)
		p := &w.prefix
		if p.cut == 0 {
			return false
		}
		m := wire.AppendTimes(s.tails.bytes, c.time, c.start)
		m = append(m, byte(wire.RefsV2), byte(len(p.bytes)-p.cut))
		m = append(m, p.bytes[p.cut:]...)
		s.tails.bytes = m
		s.tails.end()
		longestTail = max(longestTail, len(s.tails.one(j)))
	}
	return longest+8+longestTail <= maxMessage
}

// at returns the row and the column of a step.
func (s *square) at(step int) (i, j int) {
	k := len(s.cells)
	d, t := step/k, step%k
	if d == 0 {
		return t, t
	}
	i = t * d % k
	return i, (i + d) % k
}

// cycle writes n messages of a cycle, starting at one of its steps.
func (w *Writer) cycle(b *column.Buffer, k, d, step, n int) {
	s, body, first, last := &w.grids.sq, w.body, w.head.MinTime, w.head.MaxTime
	i, _ := s.at(d*k + step)
	for range n {
		j := i + d
		if j >= k {
			j -= k
		}
		c, column := &w.sheet.sorted[s.cells[i]+uint32(j)], &s.columns[j]
		begin := len(body)
		body = binary.LittleEndian.AppendUint64(append(body, s.heads.one(i)...), c.Bits)
		tail := len(body)
		body = append(body, s.tails.one(j)...)
		body[begin+1] = byte(len(body) - begin - 2)
		if start := b.Start(c); c.Time != column.time || start != column.start {
			wire.PutTimes(body[tail:], c.Time, start)
		}
		w.echo(uint32(tail), column.place)
		first, last = min(first, c.Time), max(last, c.Time)
		if i = j; d == 0 {
			i++
		}
	}
	w.body, w.head.MinTime, w.head.MaxTime = body, first, last
	w.head.Samples += n
}

// echo adds a hint about a tail of the resource at a place.
func (w *Writer) echo(at, place uint32) {
	from := &w.grids.tails[place]
	if *from > 0 {
		w.Hints.echo(at, *from)
	}
	*from = at
}

// cellByCell writes the rest of a square in the way of other series.
func (w *Writer) cellByCell(b *column.Buffer, rows []uint32, step int) {
	for ; step < len(rows)*len(rows); step++ {
		i, j := w.grids.sq.at(step)
		c := w.grids.sq.cells[i] + uint32(j)
		r := w.cache.Row(b.Series[rows[i]])
		w.seriesRun(b, rows[i], &r, w.sheet.sorted[c].Of, w.sheet.sorted[c:c+1])
	}
}
