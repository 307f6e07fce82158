// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"strings"

	"github.com/godwit-otel/godwit/internal/borrow"
	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/receiver/remotewritereceiver/internal/replicas"
)

// recognition recognises series.
//
// The labels of a series are first compared with one set: the one that followed the previous series' set the last time.
// Only if that fails, they are hashed, and only if they are not known, they are decoded.
type recognition struct {
	decoder *promwrite.Decoder
	version promwrite.Version

	before *labelSet    // set of the previous series, if that is known
	near   targetFields // target fields of the previous series, for 1.0
	nearOf *target      // target of near
	set    labelSet     // set of the current series if it is not known
	// fault is the reason to refuse the whole request: invalid labels, or a lack of memory.
	fault error

	// Of the current series, for the functions below, which are made once.
	encoded       string
	found         targetFields
	same          bool // found equals near
	job, instance string
	isV1, isV2    func(*labelSet) bool
}

func (r *recognition) prepare() { r.isV1, r.isV2 = r.matchV1, r.matchV2 }

func (r *recognition) begin(d *promwrite.Decoder, version promwrite.Version) {
	r.decoder, r.version = d, version
}

func (r *recognition) reset() {
	clear(r.set.own[:cap(r.set.own)])
	*r = recognition{set: labelSet{own: r.set.own[:0]}, isV1: r.isV1, isV2: r.isV2}
}

// matchV1 reports whether the current series, of 1.0, belongs to a set. It finds the target, too.
func (r *recognition) matchV1(s *labelSet) (ok bool) {
	if s.raw == nil {
		return false
	}
	r.found, r.same, ok = s.raw.match(r.encoded, &r.near)
	return ok
}

// matchV2 is matchV1 for a series of 2.0.
func (r *recognition) matchV2(s *labelSet) bool {
	if s.raw != nil {
		return false
	}
	at, jobs, instances := 0, 0, 0
	r.job, r.instance = "", ""
	for rest := r.encoded; rest != ""; {
		var l promwrite.Label
		var ok bool
		if l, rest, ok = r.decoder.NextLabel(rest); !ok {
			return false
		}
		switch {
		case at < len(s.labels) && s.labels[at] == l: // fast path
			at++
		case l.Name == labelJob:
			r.job = l.Value
			jobs++
		case l.Name == labelInstance:
			r.instance = l.Value
			instances++
		default:
			return false
		}
	}
	return at == len(s.labels) && jobs < 2 && instances < 2
}

// recognise returns the set of a series' labels, which may be valid only until the next series, and the target.
func (t *translator) recognise(s *promwrite.Series) (set *labelSet, of *target, err error) {
	switch {
	case s.Encoded == "":
		return t.recogniseLabels(s.Labels)
	case t.version == promwrite.V2:
		return t.recogniseV2(s)
	default:
		return t.recogniseV1(s)
	}
}

// guess returns the set that followed the previous one the last time, if the series belongs to it.
func (t *translator) guess(is func(*labelSet) bool) *labelSet {
	if t.before == nil {
		return nil
	}
	set := t.known.sets.Find(t.before.next.Load(), is)
	if set != nil {
		t.before = set
	}
	return set
}

// follow records that the set with a hash follows the previous one.
func (t *translator) follow(set *labelSet, hash uint64) {
	if t.before != nil {
		t.before.next.Store(hash)
	}
	t.before = set
}

func (t *translator) recogniseV1(s *promwrite.Series) (set *labelSet, of *target, err error) {
	t.encoded = s.Encoded
	if set = t.guess(t.isV1); set == nil {
		if set, err = t.findV1(s); err != nil {
			return set, nil, err
		}
		if set == nil { // slow path
			return t.recogniseLabels(s.Labels)
		}
	}
	if of = t.lastTarget; t.same && of != nil && of == t.nearOf && of.key.scope == set.scope { // fast path
		return set, of, nil
	}
	of, err = t.target(resourceKey{t.found.values[holeJob], t.found.values[holeInstance], set.scope})
	t.near, t.nearOf = t.found, of
	return set, of, err
}

// findV1 returns the set of a series, which it makes by decoding the labels if needed.
func (t *translator) findV1(s *promwrite.Series) (set *labelSet, err error) {
	raw, found, usual := cutLabels(s.Encoded)
	usual = usual && len(s.Encoded) <= maxKnownText
	hash := uint64(0)
	if usual {
		hash = raw.hash(t.known.seed)
		if set = t.known.sets.Find(hash, t.isV1); set != nil {
			t.follow(set, hash)
			return set, nil
		}
	}
	t.before = nil
	if t.fault = t.decoder.DecodeLabels(t.version, s); t.fault != nil {
		return nil, t.fault
	}
	if !usual {
		return nil, nil
	}
	set = &t.set
	if err = identify(s.Labels, t.scoped, t.replicas, set); err != nil {
		return set, err
	}
	if o := t.known.outline(s.Labels); o.odd || o.job != found.values[holeJob] || o.instance != found.values[holeInstance] {
		return nil, nil // a label has an unusual form
	}
	kept := t.keepV1(s, hash)
	t.found, t.same = found, false
	if kept != nil {
		t.follow(kept, hash)
		return kept, nil
	}
	set.last(t.text)
	return set, nil
}

// keepV1 adds a valid set to the known ones, and returns it, nil if there is no room.
func (t *translator) keepV1(s *promwrite.Series, hash uint64) *labelSet {
	if t.known.sets.Full() {
		return nil
	}
	copied := promwrite.Series{Encoded: strings.Clone(s.Encoded)}
	raw, _, _ := cutLabels(copied.Encoded)
	if t.decoder.DecodeLabels(t.version, &copied) != nil { // it succeeded before
		return nil
	}
	kept := new(labelSet)
	if identify(copied.Labels, t.scoped, t.replicas, kept) != nil { // it succeeded before
		return nil
	}
	kept.raw, kept.text, kept.self = &raw, len(copied.Encoded), hash
	t.known.share(kept)
	return t.known.sets.Add(hash, kept, t.isV1)
}

func (t *translator) recogniseV2(s *promwrite.Series) (set *labelSet, of *target, err error) {
	t.encoded = s.Encoded
	if set = t.guess(t.isV2); set != nil {
		if t.fault = t.decoder.Spell(len(t.job) + len(t.instance)); t.fault != nil {
			return nil, nil, t.fault
		}
		of, err = t.target(resourceKey{t.job, t.instance, set.scope})
		return set, of, err
	}
	if t.fault = t.decoder.DecodeLabels(t.version, s); t.fault != nil {
		return nil, nil, t.fault
	}
	return t.recogniseLabels(s.Labels)
}

// recogniseLabels is recognise for decoded labels.
func (t *translator) recogniseLabels(labels []promwrite.Label) (set *labelSet, of *target, err error) {
	o := t.known.outline(labels)
	is := func(s *labelSet) bool { return s.is(labels, o.others) }
	if !o.odd {
		set = t.known.sets.Find(o.hash, is)
	}
	kept := set
	if set == nil { // slow path: rare for each set
		set = &t.set
		if err = identify(labels, t.scoped, t.replicas, set); err != nil {
			t.before = nil
			return set, nil, err
		}
		if !o.odd && !t.known.sets.Full() {
			kept = t.known.keep(set, labels)
			kept.self = o.hash
			kept = t.known.sets.Add(o.hash, kept, is)
		}
		if kept != nil {
			set = kept
		} else { // there is no room
			set.last(t.text)
		}
	}
	if kept != nil {
		t.follow(kept, o.hash)
	} else {
		t.before = nil
	}
	of, err = t.target(resourceKey{o.job, o.instance, set.scope})
	return set, of, err
}

// last makes the texts of a set independent of the request.
func (s *labelSet) last(text *borrow.Text) {
	s.name = text.Lasting(s.name)
	s.replica = replicas.Key{Cluster: text.Lasting(s.replica.Cluster), Replica: text.Lasting(s.replica.Replica)}
	for i := range s.own {
		s.own[i] = promwrite.Label{Name: text.Lasting(s.own[i].Name), Value: text.Lasting(s.own[i].Value)}
	}
}
