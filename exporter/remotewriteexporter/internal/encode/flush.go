// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"cmp"
	"slices"

	"github.com/godwit-otel/godwit/internal/promwrite"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/column"
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
			t.columns[i].CutOff()
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
	c.Flushing.Lock()
	defer c.Flushing.Unlock()
	b := c.Swap()
	if b == nil {
		return dst
	}
	w := e.flusher()
	w.format, w.shard, w.tenant, w.dst = f, shard, tenant, dst
	defer e.losses.Survive(func(any) int {
		lost := b.Samples.Len()
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
	c.GiveBack(b)
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
	inOrder   bool            // they arrived like that, and are where they were
	sorted    []column.Sample // otherwise; else room for those of a series that are not in one piece
	begins    []uint32        // where the samples of each slot are, and those behind the last one
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

func (w *flusher) run(b *column.Buffer) {
	w.layOut(b)
	w.rawLimit = w.e.Limits.Raw(w.format)
	w.sampleLimit = w.e.Limits.PerRequest(b.Samples.Len())
	w.begin()
	w.exemplars = b.Exemplars
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
func (w *flusher) writeSlot(b *column.Buffer, slot uint32, cells []column.Sample) {
	r := w.e.cache.Row(b.Series[slot])
	for len(cells) > 0 {
		n := 1
		for n < len(cells) && cells[n].Of == cells[0].Of {
			n++
		}
		if n == 1 { // fast path: nearly all are like this
			if done := w.writeNumbers(b, slot, &r, cells); done > 0 {
				cells = cells[done:]
				continue
			}
		}
		w.seriesRun(b, slot, &r, cells[0].Of, cells[:n])
		cells = cells[n:]
	}
}

// layOut sorts by counting: the batches by resource, then one pass that drops each sample into its series' place.
// Samples that came in order, such as those of one large page, stay where they are.
func (w *flusher) layOut(b *column.Buffer) {
	w.sources, w.resources, w.weights, w.stride, w.heaviest = w.sources[:0], w.resources[:0], w.weights[:0], 0, 0
	for i := range b.Batches {
		w.sources = append(w.sources, uint32(i))
	}
	slices.SortStableFunc(w.sources, func(x, y uint32) int {
		return cmp.Compare(w.rank(b.Batches[x].Labels), w.rank(b.Batches[y].Labels))
	})
	w.places = slices.Grow(w.places[:0], len(b.Batches))[:len(b.Batches)]
	for _, i := range w.sources {
		labels := b.Batches[i].Labels
		if n := len(w.resources); n == 0 || w.resources[n-1] != labels {
			w.resources, w.weights = append(w.resources, labels), append(w.weights, labels.Weight)
			w.stride, w.heaviest = max(w.stride, len(labels.Values)), max(w.heaviest, labels.Weight)
		}
		w.places[i] = uint32(len(w.resources) - 1)
	}
	w.known = slices.Grow(w.known[:0], w.stride*len(w.resources))[:w.stride*len(w.resources)]
	w.begins = append(w.begins[:0], 0)
	for _, n := range b.Counts {
		w.begins = append(w.begins, w.begins[len(w.begins)-1]+n)
	}
	if w.inOrder = w.ordered(b); w.inOrder {
		w.sorted = w.sorted[:0]
		for i := range b.Batches {
			for j := b.Batches[i].First; j < b.End(i); j++ {
				b.Samples.At(int(j)).Of = w.places[i]
			}
		}
	} else {
		w.sort(b)
	}
	if w.format.Version == promwrite.V2 && !b.Unlisted { // samples of a series that is there twice stay in their order
		w.byLayout(b.Series, w.e.cache.Layouts.Size(), func(slot uint32) uint32 { return w.cell(b, slot).Of })
	} else {
		w.asTheyCame(len(b.Series))
	}
	w.findGrids(b)
	slices.SortStableFunc(b.Exemplars, func(x, y column.Exemplar) int {
		return cmp.Or(cmp.Compare(w.position[x.Slot], w.position[y.Slot]), cmp.Compare(w.rank(x.Labels), w.rank(y.Labels)), cmp.Compare(x.Time, y.Time))
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
func (w *flusher) cells(b *column.Buffer, slot uint32) (cells []column.Sample) {
	first, end := int(w.begins[slot]), int(w.begins[slot+1])
	if !w.inOrder {
		return w.sorted[first:end]
	}
	cells, w.sorted = b.Samples.Some(w.sorted, first, end)
	return cells
}

// cell is the first sample of a slot.
func (w *flusher) cell(b *column.Buffer, slot uint32) *column.Sample {
	if !w.inOrder {
		return &w.sorted[w.begins[slot]]
	}
	return b.Samples.At(int(w.begins[slot]))
}

// ordered says whether the samples are sorted already.
func (w *flusher) ordered(b *column.Buffer) bool {
	slot, place := uint32(0), uint32(0)
	for i := range b.Batches {
		for j := b.Batches[i].First; j < b.End(i); j++ {
			s := b.Samples.At(int(j))
			if s.Of < slot || s.Of == slot && w.places[i] < place {
				return false
			}
			slot, place = s.Of, w.places[i]
		}
	}
	return true
}

func (w *flusher) sort(b *column.Buffer) {
	w.offsets = append(w.offsets[:0], w.begins[:len(b.Series)]...)
	w.sorted = slices.Grow(w.sorted[:0], b.Samples.Len())[:b.Samples.Len()]
	for _, i := range w.sources {
		place := w.places[i]
		for j := b.Batches[i].First; j < b.End(int(i)); j++ {
			s := b.Samples.At(int(j))
			at := &w.offsets[s.Of]
			w.sorted[*at] = column.Sample{Of: place, Extra: s.Extra, Time: s.Time, Bits: s.Bits}
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
func (w *flusher) seriesRun(b *column.Buffer, slot uint32, s *cache.Row, place uint32, cells []column.Sample) {
	if len(cells) > 1 {
		cells = w.tidy(s, cells)
	}
	exemplars := w.exemplarsOf(slot, w.resources[place])
	for len(cells) > 0 {
		n := 1
		native := cells[0].Extra&column.IsHistogram != 0
		for n < len(cells) && cells[n].Extra&column.IsHistogram != 0 == native {
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
func (w *flusher) sizeOf(b *column.Buffer, s *cache.Row, place uint32, cells []column.Sample, n int, exemplars []column.Exemplar) int {
	size := int(s.Series.Weight) + w.weights[place] + maxNumber*n
	for _, x := range exemplars {
		size += 2*int(x.End-x.First) + 64
	}
	if n > 0 && cells[0].Extra&column.IsHistogram != 0 {
		for _, c := range cells[:n] {
			h := &b.Histograms[c.Extra&^column.IsHistogram]
			size += int(h.End - h.First)
		}
	}
	return size
}

// tidy sorts the cells of a series by time, where they are not, and drops those of a time that is taken: a series has one
// value at a time, be it a number or a histogram.
func (w *flusher) tidy(s *cache.Row, cells []column.Sample) []column.Sample {
	ascending := true
	for i := 1; i < len(cells); i++ {
		ascending = ascending && cells[i].Time > cells[i-1].Time
	}
	if ascending {
		return cells
	}
	slices.SortStableFunc(cells, func(a, b column.Sample) int { return cmp.Compare(a.Time, b.Time) })
	kept := slices.CompactFunc(cells, func(a, b column.Sample) bool { return a.Time == b.Time })
	if n := len(cells) - len(kept); n > 0 {
		w.e.losses.Add(loss.Duplicate, w.name(s), n)
	}
	return kept
}

// exemplarsOf cuts off what belongs to a series and resource; they come in the order that runs do.
func (w *flusher) exemplarsOf(slot uint32, r *cache.ResourceLabels) []column.Exemplar {
	if !w.isExemplary(slot) {
		return nil
	}
	before := func(x *column.Exemplar) bool {
		return w.position[x.Slot] < w.position[slot] || x.Slot == slot && w.rank(x.Labels) < w.rank(r)
	}
	i := 0
	for i < len(w.exemplars) && before(&w.exemplars[i]) {
		i++
	}
	n := i
	for n < len(w.exemplars) && w.exemplars[n].Slot == slot && w.exemplars[n].Labels == r {
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
	if cap(w.sorted) > 2*u.sorted+column.FewSamples {
		w.sorted = nil
	}
	w.arrangement.release(u.series)
	w.grids.release(u.series)
	w.usual = max(w.largest, w.usual-w.usual/16)
	if w.largest = 0; cap(w.body)+cap(w.symbols) > 2*w.usual+1<<19 {
		w.body, w.symbols, w.packed, w.room = nil, nil, nil, 0
	}
}
