// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"cmp"
	"slices"

	"github.com/godwit-otel/godwit/internal/promwrite"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/loss"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/names"
)

// Cut ends what is there: the next Flush of each shard and tenant takes what was added before, however late it comes. It
// appends the tenants to dst, to be flushed.
func (e *Encoder) Cut(dst []string) []string {
	e.mu.RLock()
	defer e.mu.RUnlock()
	e.tenantsMu.Lock()
	defer e.tenantsMu.Unlock()
	for name, t := range e.tenants {
		dst = append(dst, name)
		for i := range t.columns {
			t.columns[i].cutOff()
		}
	}
	return dst
}

// Flush turns what a shard of a tenant holds, or held at the last Cut, into requests and appends these to dst. Within one
// series earlier samples come first, through all blocks in order.
func (e *Encoder) Flush(shard int, tenant string, f block.Format, dst []block.Block) (blocks []block.Block) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	t := e.find(tenant)
	if t == nil {
		return dst
	}
	c := &t.columns[shard]
	c.flushing.Lock()
	defer c.flushing.Unlock()
	b := c.swap()
	if b == nil {
		return dst
	}
	w := e.flusher()
	w.format, w.shard, w.tenant, w.dst = f, shard, tenant, dst
	defer e.losses.Survive(func(any) int {
		lost := b.samples.len()
		for _, made := range w.dst[len(dst):] {
			lost -= made.Samples + made.Histograms
		}
		blocks = w.dst // what was finished is sound
		return max(lost, 0)
	})
	w.run(b)
	blocks = w.dst
	w.release()
	select {
	case e.flushers <- w:
	default: // enough are idle: this one goes
	}
	c.giveBack(b)
	return blocks
}

func (e *Encoder) flusher() *flusher {
	var w *flusher
	select {
	case w = <-e.flushers:
	default:
		w = &flusher{e: e}
	}
	w.text = e.cache.Symbols.Snapshot()
	if n := len(w.text); n > len(w.local) {
		w.local = append(w.local, make([]localRef, n-len(w.local))...)
	}
	return w
}

// flusher lays a buffer out series by series and writes requests.
type flusher struct {
	request
	arrangement

	grids grids

	e      *Encoder
	format block.Format
	shard  int
	tenant string
	dst    []block.Block

	// Samples are sorted by series, then resource, then arrival.
	inOrder   bool     // they arrived like that, and are where they were
	sorted    []sample // otherwise; else room for those of a series that are not in one piece
	begins    []uint32 // where the samples of each slot are, and those behind the last one
	offsets   []uint32
	sources   []uint32 // batches sorted
	places    []uint32 // of each batch's resource
	resources []*cache.ResourceLabels
	weights   []int // theirs
	heaviest  int   // of these

	// The references of the resources' values in this request, stride of them for each place; 0 if there is none yet.
	known  []uint32
	stride int

	// Bytes of the largest request of this flush, and about of the larger of the last flushes.
	largest, usual int
	// And of these, how many samples were sorted, and series there were.
	usually struct{ sorted, series int }
}

func (w *flusher) run(b *buffer) {
	w.layOut(b)
	w.rawLimit = w.e.Limits.Raw(w.format)
	w.sampleLimit = w.e.Limits.PerRequest(b.samples.len())
	w.begin()
	w.exemplars = b.exemplars
	for order := w.order[:w.grids.apart(len(w.order))]; len(order) > 0; {
		if n := w.writeGroup(b, order); n > 0 {
			order = order[n:]
			continue
		}
		w.writeSlot(b, order[0], w.cells(b, order[0]))
		order = order[1:]
	}
	w.writeGrids(b)
	w.finish()
}

// writeSlot writes samples of one slot.
func (w *flusher) writeSlot(b *buffer, slot uint32, cells []sample) {
	r := w.e.cache.Row(b.series[slot])
	for len(cells) > 0 {
		n := 1
		for n < len(cells) && cells[n].of == cells[0].of {
			n++
		}
		if n == 1 { // fast path: nearly all are like this
			if done := w.writeNumbers(b, slot, &r, cells); done > 0 {
				cells = cells[done:]
				continue
			}
		}
		w.seriesRun(b, slot, &r, cells[0].of, cells[:n])
		cells = cells[n:]
	}
}

// layOut sorts by counting: the batches by resource, then one pass that drops each sample into its series' place.
// Samples that came in order, such as those of one large page, stay where they are.
func (w *flusher) layOut(b *buffer) {
	w.sources, w.resources, w.weights, w.stride, w.heaviest = w.sources[:0], w.resources[:0], w.weights[:0], 0, 0
	for i := range b.batches {
		w.sources = append(w.sources, uint32(i))
	}
	slices.SortStableFunc(w.sources, func(x, y uint32) int {
		return cmp.Compare(w.rank(b.batches[x].labels), w.rank(b.batches[y].labels))
	})
	w.places = slices.Grow(w.places[:0], len(b.batches))[:len(b.batches)]
	for _, i := range w.sources {
		labels := b.batches[i].labels
		if n := len(w.resources); n == 0 || w.resources[n-1] != labels {
			w.resources, w.weights = append(w.resources, labels), append(w.weights, labels.Weight)
			w.stride, w.heaviest = max(w.stride, len(labels.Values)), max(w.heaviest, labels.Weight)
		}
		w.places[i] = uint32(len(w.resources) - 1)
	}
	w.known = slices.Grow(w.known[:0], w.stride*len(w.resources))[:w.stride*len(w.resources)]
	w.begins = append(w.begins[:0], 0)
	for _, n := range b.counts {
		w.begins = append(w.begins, w.begins[len(w.begins)-1]+n)
	}
	if w.inOrder = w.ordered(b); w.inOrder {
		w.sorted = w.sorted[:0]
		for i := range b.batches {
			for j := b.batches[i].first; j < b.end(i); j++ {
				b.samples.at(int(j)).of = w.places[i]
			}
		}
	} else {
		w.sort(b)
	}
	if w.format.Version == promwrite.V2 && !b.unlisted { // samples of a series that is there twice stay in their order
		w.byLayout(b.series, w.e.cache.Layouts.Size(), func(slot uint32) uint32 { return w.cell(b, slot).of })
	} else {
		w.asTheyCame(len(b.series))
	}
	w.findGrids(b)
	slices.SortStableFunc(b.exemplars, func(x, y exemplar) int {
		return cmp.Or(cmp.Compare(w.position[x.slot], w.position[y.slot]), cmp.Compare(w.rank(x.labels), w.rank(y.labels)), cmp.Compare(x.time, y.time))
	})
}

// rank sorts resources: in the order in which they were made, which is much that of their times. In 1.0, which has their
// values in each message, those of one length come together, since their messages are of one length then.
func (w *flusher) rank(r *cache.ResourceLabels) uint64 {
	if w.format.Version == promwrite.V1 {
		return uint64(r.Weight)<<32 | uint64(r.Order)
	}
	return uint64(r.Order)
}

// cells are the samples of a slot.
func (w *flusher) cells(b *buffer, slot uint32) (cells []sample) {
	first, end := int(w.begins[slot]), int(w.begins[slot+1])
	if !w.inOrder {
		return w.sorted[first:end]
	}
	cells, w.sorted = b.samples.some(w.sorted, first, end)
	return cells
}

// cell is the first sample of a slot.
func (w *flusher) cell(b *buffer, slot uint32) *sample {
	if !w.inOrder {
		return &w.sorted[w.begins[slot]]
	}
	return b.samples.at(int(w.begins[slot]))
}

// ordered says whether the samples are sorted already.
func (w *flusher) ordered(b *buffer) bool {
	slot, place := uint32(0), uint32(0)
	for i := range b.batches {
		for j := b.batches[i].first; j < b.end(i); j++ {
			s := b.samples.at(int(j))
			if s.of < slot || s.of == slot && w.places[i] < place {
				return false
			}
			slot, place = s.of, w.places[i]
		}
	}
	return true
}

func (w *flusher) sort(b *buffer) {
	w.offsets = append(w.offsets[:0], w.begins[:len(b.series)]...)
	w.sorted = slices.Grow(w.sorted[:0], b.samples.len())[:b.samples.len()]
	for _, i := range w.sources {
		place := w.places[i]
		for j := b.batches[i].first; j < b.end(int(i)); j++ {
			s := b.samples.at(int(j))
			at := &w.offsets[s.of]
			w.sorted[*at] = sample{of: place, extra: s.extra, time: s.time, bits: s.bits}
			*at++
		}
	}
}

// begin begins a request.
func (w *flusher) begin() {
	w.request.begin(w.format.Version)
	clear(w.known)
	clear(w.grids.tails)
}

// valueRef is the number in this request of a value of the resource in a place.
func (w *flusher) valueRef(place, i uint32) uint32 {
	ref := &w.known[int(place)*w.stride+int(i)]
	if *ref == 0 {
		*ref = w.ref(w.resources[place].Values[i])
	}
	return *ref
}

// seriesRun writes all samples of one series of the resource in a place.
func (w *flusher) seriesRun(b *buffer, slot uint32, s *cache.Row, place uint32, cells []sample) {
	if len(cells) > 1 {
		cells = w.tidy(s, cells)
	}
	exemplars := w.exemplarsOf(slot, w.resources[place])
	for len(cells) > 0 {
		n := 1
		native := cells[0].extra&isHistogram != 0
		for n < len(cells) && cells[n].extra&isHistogram != 0 == native {
			n++ // a series message holds numbers or histograms, never both
		}
		n = min(n, w.sampleLimit-w.points())
		size := w.sizeOf(b, s, place, cells, n, exemplars)
		switch {
		case n > 0 && w.size()+size <= w.rawLimit:
			w.write(b, s, place, cells[:n], exemplars)
			cells, exemplars = cells[n:], nil
		case w.points() > 0:
			w.finish()
			w.begin()
		case n > 1 && w.size()+w.sizeOf(b, s, place, cells, 1, exemplars) <= w.rawLimit:
			// Alone in its request and still too large: a sample at a time finds the limit.
			w.write(b, s, place, cells[:1], exemplars)
			cells, exemplars = cells[1:], nil
		default:
			w.e.losses.Add(loss.TooLarge, w.name(s), 1)
			cells = cells[1:]
		}
	}
}

// maxNumber is the most bytes that a sample takes up, with its field.
const maxNumber = 34

// sizeOf bounds what n cells take up.
func (w *flusher) sizeOf(b *buffer, s *cache.Row, place uint32, cells []sample, n int, exemplars []exemplar) int {
	size := int(s.Series.Weight) + w.weights[place] + maxNumber*n
	for _, x := range exemplars {
		size += 2*int(x.end-x.first) + 64
	}
	if n > 0 && cells[0].extra&isHistogram != 0 {
		for _, c := range cells[:n] {
			h := &b.histograms[c.extra&^isHistogram]
			size += int(h.end - h.first)
		}
	}
	return size
}

// tidy sorts the cells of a series by time, where they are not, and drops those of a time that is taken: a series has one
// value at a time, be it a number or a histogram.
func (w *flusher) tidy(s *cache.Row, cells []sample) []sample {
	ascending := true
	for i := 1; i < len(cells); i++ {
		ascending = ascending && cells[i].time > cells[i-1].time
	}
	if ascending {
		return cells
	}
	slices.SortStableFunc(cells, func(a, b sample) int { return cmp.Compare(a.time, b.time) })
	kept := slices.CompactFunc(cells, func(a, b sample) bool { return a.time == b.time })
	if n := len(cells) - len(kept); n > 0 {
		w.e.losses.Add(loss.Duplicate, w.name(s), n)
	}
	return kept
}

// exemplarsOf cuts off what belongs to a series and resource; they come in the order that runs do.
func (w *flusher) exemplarsOf(slot uint32, r *cache.ResourceLabels) []exemplar {
	if !w.isExemplary(slot) {
		return nil
	}
	before := func(x *exemplar) bool {
		return w.position[x.slot] < w.position[slot] || x.slot == slot && w.rank(x.labels) < w.rank(r)
	}
	i := 0
	for i < len(w.exemplars) && before(&w.exemplars[i]) {
		i++
	}
	n := i
	for n < len(w.exemplars) && w.exemplars[n].slot == slot && w.exemplars[n].labels == r {
		n++
	}
	own := w.exemplars[i:n]
	w.exemplars = w.exemplars[n:]
	return own
}

// name is a series' metric, for telemetry.
func (w *flusher) name(s *cache.Row) string {
	for _, l := range s.Layout.Labels {
		if w.text[l.Name] == names.NameLabel && l.Value&cache.FromResource == 0 {
			return w.text[s.Ref(l)]
		}
	}
	return ""
}

// finish compresses the request and appends its block to dst.
func (w *flusher) finish() {
	if w.points() == 0 {
		return
	}
	length := len(w.body) + len(w.meta)
	raw := w.whole()
	w.repeats.Move(len(raw) - length) // as whole did
	compressed, err := block.CompressKnown(w.packed[:0], w.format, raw, w.repeats)
	if err != nil {
		// The format is checked before anything is sent in it.
		w.e.losses.Add(loss.TooLarge, "", w.points())
		return
	}
	w.packed = compressed
	w.head.RawSize = len(raw)
	w.largest = max(w.largest, len(raw))
	w.e.Limits.Learn(w.format, len(raw), w.rawLimit, len(compressed))
	w.head.Version, w.head.Compression, w.head.Shard, w.head.Tenant = w.format.Version, w.format.Compression, w.shard, w.tenant
	w.dst = w.e.Limits.Fit(w.e.bodies.New(w.head, compressed), w.dst)
}

// release lets go of what refers to the caches, and of space that has been much too large for a while.
func (w *flusher) release() {
	w.text, w.dst, w.exemplars = nil, nil, nil
	w.prepared, w.prefix.series, w.prefix.layout, w.tailOf = nil, nil, nil, nil
	clear(w.resources)
	u := &w.usually
	u.sorted, u.series = max(len(w.sorted), u.sorted-u.sorted/16), max(len(w.order), u.series-u.series/16)
	if cap(w.sorted) > 2*u.sorted+fewSamples {
		w.sorted = nil
	}
	w.arrangement.release(u.series)
	w.grids.release(u.series)
	w.usual = max(w.largest, w.usual-w.usual/16)
	if w.largest = 0; cap(w.body)+cap(w.symbols) > 2*w.usual+1<<19 {
		w.body, w.symbols, w.packed, w.room = nil, nil, nil, 0
	}
}
