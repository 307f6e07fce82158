// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"encoding/binary"
	"encoding/hex"
	"hash/maphash"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/attribute"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/names"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/store"
)

// maxExemplarRunes is the limit of OpenMetrics 1.0 for the labels of an exemplar. The IDs come first.
const maxExemplarRunes = 128

// exemplars adds the new exemplars of a data point: to its native series, and to the first of its buckets that holds
// them. One without a time gets that of the point.
func (w *walk) exemplars(list pmetric.ExemplarSlice, p known, bounds []float64, pointTime int64) {
	if !w.e.cfg.Exemplars {
		return
	}
	kept := w.before.Form != 0 // else the memory of its series may be another's next time
	for i := range list.Len() {
		x := list.At(i)
		var value float64
		switch x.ValueType() {
		case pmetric.ExemplarValueTypeDouble:
			value = x.DoubleValue()
		case pmetric.ExemplarValueTypeInt:
			value = float64(x.IntValue())
		default:
			continue
		}
		time := pointTime
		if x.Timestamp() >= 1e6 {
			time = millis(x.Timestamp())
		}
		content, encoded := w.contentOf(x, math.Float64bits(value), time, pointTime), false
		for _, of := range [...]*cache.Series{p.one, bucketOf(p, bounds, value)} {
			if of == nil || kept && w.e.sent.Repeats(w.placeOfExemplar(of, i), content) && !w.e.cfg.RepeatExemplars {
				continue
			}
			if !encoded {
				w.encodeExemplar(x)
				encoded = true
			}
			w.s.AddExemplar(of, w.s.encoded, time, math.Float64bits(value))
		}
	}
}

// bucketOf returns the series of the first bucket that holds a value; nil if that is not sent.
func bucketOf(p known, bounds []float64, value float64) *cache.Series {
	if p.parts == nil {
		return nil
	}
	part := len(p.parts) - 1
	if j := slices.IndexFunc(bounds, func(bound float64) bool { return value <= bound }); j >= 0 {
		part = cache.PartBound + j
	}
	if !cache.IsSeries(p.parts[part]) {
		return nil
	}
	return p.parts[part]
}

// encodeExemplar encodes the labels of an exemplar into the scratch.
func (w *walk) encodeExemplar(x pmetric.Exemplar) {
	if x.FilteredAttributes().Len() == 0 { // fast path: only the IDs, in the order of their names
		w.s.encoded = w.s.encoded[:0]
		if id := x.SpanID(); !id.IsEmpty() {
			w.s.encoded = appendID(w.s.encoded, otlptranslator.ExemplarSpanIDKey, id[:])
		}
		if id := x.TraceID(); !id.IsEmpty() {
			w.s.encoded = appendID(w.s.encoded, otlptranslator.ExemplarTraceIDKey, id[:])
		}
		return
	}
	ids := make([]names.Label, 0, 2+x.FilteredAttributes().Len())
	if id := x.TraceID(); !id.IsEmpty() {
		ids = append(ids, names.Label{Name: otlptranslator.ExemplarTraceIDKey, Value: hex.EncodeToString(id[:])})
	}
	if id := x.SpanID(); !id.IsEmpty() {
		ids = append(ids, names.Label{Name: otlptranslator.ExemplarSpanIDKey, Value: hex.EncodeToString(id[:])})
	}
	all, runes := ids, 0
	for _, l := range ids {
		runes += utf8.RuneCountInString(l.Name) + utf8.RuneCountInString(l.Value)
	}
	for k, v := range x.FilteredAttributes().All() {
		name, err := w.e.names.Label(k)
		value := strings.ToValidUTF8(attribute.Text(v), "\uFFFD")
		if err != nil || value == "" || slices.ContainsFunc(all, func(l names.Label) bool { return l.Name == name }) {
			continue
		}
		name = strings.ToValidUTF8(name, "\uFFFD")
		all = append(all, names.Label{Name: name, Value: value})
		runes += utf8.RuneCountInString(name) + utf8.RuneCountInString(value)
	}
	if runes > maxExemplarRunes {
		all = ids
	}
	slices.SortFunc(all, names.ByName)
	w.s.encoded = w.s.encoded[:0]
	for _, l := range all {
		w.s.encoded = store.AppendText(store.AppendText(w.s.encoded, l.Name), l.Value)
	}
}

func appendID(dst []byte, name string, id []byte) []byte {
	dst = binary.AppendUvarint(store.AppendText(dst, name), uint64(hex.EncodedLen(len(id))))
	return hex.AppendEncode(dst, id)
}

// placeOfExemplar identifies the i-th exemplar of a point of a series and of the current resource. Their memory may
// have belonged to others before, so it is hashed with the labels of the series and the creation number of the
// resource's labels.
func (w *walk) placeOfExemplar(s *cache.Series, i int) uint64 {
	which := uint64(s.Spread)<<32 | uint64(w.s.Labels.Order)
	return store.Mix(store.Mix(maphash.Comparable(w.c.Seed, deltaKey{s, w.s.Labels}), which), uint64(i))
}

// contentOf returns a hash of an exemplar. If it has no time of its own, that of the point, which always changes, is
// left out.
func (w *walk) contentOf(x pmetric.Exemplar, value uint64, time, pointTime int64) uint64 {
	if time == pointTime {
		time = 0
	}
	trace, span := x.TraceID(), x.SpanID()
	h := store.Mix(store.Mix(0, value), uint64(time))
	h = store.Mix(store.Mix(h, binary.LittleEndian.Uint64(trace[:8])), binary.LittleEndian.Uint64(trace[8:]))
	return w.c.HashMap(store.Mix(h, binary.LittleEndian.Uint64(span[:])), x.FilteredAttributes())
}

// ForgetExemplars sends each series' last exemplar once more: they are remembered when they are encoded, and it turned
// out later that some may not have been delivered.
func (e *Encoder) ForgetExemplars() { e.sent.Forget() }
