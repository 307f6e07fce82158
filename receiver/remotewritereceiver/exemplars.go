// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"encoding/hex"
	"hash/maphash"
	"slices"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

// exemplars has those that came without a sample, by the labels of their series: Prometheus sends each exemplar as a
// series of its own, separate from the sample's. Used ones are deleted.
type exemplars map[exemplarKey][]promwrite.Exemplar

// exemplarKey identifies labels, whose text may be much longer than the references to it: two hashes, for which nobody
// can find a collision.
type exemplarKey [2]uint64

var exemplarSeeds = [len(exemplarKey{})]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func exemplarKeyOf(labels []promwrite.Label) (key exemplarKey) {
	for i, seed := range exemplarSeeds {
		for _, l := range labels {
			key[i] = mix(mix(key[i], maphash.String(seed, l.Name)), maphash.String(seed, l.Value))
		}
	}
	return key
}

func (e exemplars) collect(s *promwrite.Series) {
	if len(s.Samples)+len(s.Histograms) > 0 || len(s.Exemplars) == 0 {
		return
	}
	key := exemplarKeyOf(s.Labels)
	for _, x := range s.Exemplars {
		x.Labels = slices.Clone(x.Labels) // they belong to the decoder
		e[key] = append(e[key], x)
	}
}

// left counts those whose series had no point in the request.
func (e exemplars) left() int {
	n := 0
	for _, list := range e {
		n += len(list)
	}
	return n
}

// addExemplars adds a series' exemplars to its last point: each has a time of its own, so nothing is lost.
func (t *translator) addExemplars(index int, s *promwrite.Series) {
	if !t.hasLast {
		t.rejects.add(reasonOrphanExemplar, len(s.Exemplars), index, "", nil)
		return
	}
	t.appendExemplars(index, s.Exemplars)
	if len(t.exemplars) > 0 {
		key := exemplarKeyOf(s.Labels)
		t.appendExemplars(index, t.exemplars[key])
		delete(t.exemplars, key)
	}
}

func (t *translator) appendExemplars(index int, list []promwrite.Exemplar) {
	for i := range list {
		at, ok := nanoseconds(list[i].Timestamp)
		switch {
		case !ok:
			t.rejects.add(reasonTimestamp, 1, index, "exemplar", errTimestamp)
			continue
		case len(list[i].Labels) > maxLabels:
			t.rejects.add(reasonLabels, 1, index, "exemplar", errLabels)
			continue
		}
		e := t.last.AppendEmpty()
		e.SetTimestamp(at)
		e.SetDoubleValue(list[i].Value)
		for _, l := range list[i].Labels {
			t.setExemplarLabel(e, l)
		}
		t.written.Exemplars++
	}
}

// setExemplarLabel sets the trace and span ID, if the two labels have valid ones; any other label becomes an attribute.
func (t *translator) setExemplarLabel(e pmetric.Exemplar, l promwrite.Label) {
	switch {
	case l.Name == "trace_id" && len(l.Value) == 32:
		var id [16]byte
		if _, err := hex.Decode(id[:], []byte(l.Value)); err == nil {
			e.SetTraceID(id)
			return
		}
	case l.Name == "span_id" && len(l.Value) == 16:
		var id [8]byte
		if _, err := hex.Decode(id[:], []byte(l.Value)); err == nil {
			e.SetSpanID(id)
			return
		}
	}
	if l.Name != "" && utf8.ValidString(l.Name) && utf8.ValidString(l.Value) {
		e.FilteredAttributes().PutStr(t.request.text.Lasting(l.Name), t.request.text.Lasting(l.Value))
	}
}
