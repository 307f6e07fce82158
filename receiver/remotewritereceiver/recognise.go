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
	request *request
	layout  *layout // has the targets

	scoped   bool            // whether labels identify the scope of a series
	replicas *replicas.Rules // nil unless replicas are told apart

	before *labelSet    // set of the previous series, if that is known
	near   targetFields // target fields of the previous series, for 1.0
	nearOf *target      // target of near
	set    labelSet     // set of the current series if it is not known

	// Of the current series, for the functions below, which are made once.
	encoded       string
	found         targetFields
	same          bool // found equals near
	job, instance string
	isV1, isV2    func(*labelSet) bool
}

func (r *recognition) prepare(of *request, with *layout) {
	r.request, r.layout = of, with
	r.isV1, r.isV2 = r.matchV1, r.matchV2
}

func (r *recognition) reset() {
	clear(r.set.own[:cap(r.set.own)])
	*r = recognition{
		request: r.request, layout: r.layout, scoped: r.scoped, replicas: r.replicas,
		set: labelSet{own: r.set.own[:0]}, isV1: r.isV1, isV2: r.isV2,
	}
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
	decoder := r.request.decoder
	for rest := r.encoded; rest != ""; {
		var l promwrite.Label
		var ok bool
		if l, rest, ok = decoder.NextLabel(rest); !ok {
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
func (r *recognition) recognise(s *promwrite.Series) (set *labelSet, of *target, err error) {
	switch {
	case s.Encoded == "":
		return r.recogniseLabels(s.Labels)
	case r.request.version == promwrite.V2:
		return r.recogniseV2(s)
	default:
		return r.recogniseV1(s)
	}
}

// guess returns the set that followed the previous one the last time, if the series belongs to it.
func (r *recognition) guess(is func(*labelSet) bool) *labelSet {
	if r.before == nil {
		return nil
	}
	set := r.request.known.sets.Find(r.before.next.Load(), is)
	if set != nil {
		r.before = set
	}
	return set
}

// follow records that the set with a hash follows the previous one.
func (r *recognition) follow(set *labelSet, hash uint64) {
	if r.before != nil {
		r.before.next.Store(hash)
	}
	r.before = set
}

func (r *recognition) recogniseV1(s *promwrite.Series) (set *labelSet, of *target, err error) {
	r.encoded = s.Encoded
	if set = r.guess(r.isV1); set == nil {
		if set, err = r.findV1(s); err != nil {
			return set, nil, err
		}
		if set == nil { // slow path
			return r.recogniseLabels(s.Labels)
		}
	}
	if of = r.layout.lastTarget; r.same && of != nil && of == r.nearOf && of.key.scope == set.scope { // fast path
		return set, of, nil
	}
	of, err = r.layout.target(resourceKey{r.found.values[holeJob], r.found.values[holeInstance], set.scope})
	r.near, r.nearOf = r.found, of
	return set, of, err
}

// findV1 returns the set of a series, which it makes by decoding the labels if needed.
func (r *recognition) findV1(s *promwrite.Series) (set *labelSet, err error) {
	raw, found, usual := cutLabels(s.Encoded)
	usual = usual && len(s.Encoded) <= maxKnownText
	hash := uint64(0)
	if usual {
		hash = raw.hash(r.request.known.seed)
		if set = r.request.known.sets.Find(hash, r.isV1); set != nil {
			r.follow(set, hash)
			return set, nil
		}
	}
	r.before = nil
	if r.request.fault = r.request.decoder.DecodeLabels(r.request.version, s); r.request.fault != nil {
		return nil, r.request.fault
	}
	if !usual {
		return nil, nil
	}
	set = &r.set
	if err = identify(s.Labels, r.scoped, r.replicas, set); err != nil {
		return set, err
	}
	if o := r.request.known.outline(s.Labels); o.odd || o.job != found.values[holeJob] || o.instance != found.values[holeInstance] {
		return nil, nil // a label has an unusual form
	}
	kept := r.keepV1(s, hash)
	r.found, r.same = found, false
	if kept != nil {
		r.follow(kept, hash)
		return kept, nil
	}
	set.last(r.request.text)
	return set, nil
}

// keepV1 adds a valid set to the known ones, and returns it, nil if there is no room.
func (r *recognition) keepV1(s *promwrite.Series, hash uint64) *labelSet {
	if r.request.known.sets.Full() {
		return nil
	}
	copied := promwrite.Series{Encoded: strings.Clone(s.Encoded)}
	raw, _, _ := cutLabels(copied.Encoded)
	if r.request.decoder.DecodeLabels(r.request.version, &copied) != nil { // it succeeded before
		return nil
	}
	kept := new(labelSet)
	if identify(copied.Labels, r.scoped, r.replicas, kept) != nil { // it succeeded before
		return nil
	}
	kept.raw, kept.text, kept.self = &raw, len(copied.Encoded), hash
	r.request.known.share(kept)
	return r.request.known.sets.Add(hash, kept, r.isV1)
}

func (r *recognition) recogniseV2(s *promwrite.Series) (set *labelSet, of *target, err error) {
	r.encoded = s.Encoded
	if set = r.guess(r.isV2); set != nil {
		if r.request.fault = r.request.decoder.Spell(len(r.job) + len(r.instance)); r.request.fault != nil {
			return nil, nil, r.request.fault
		}
		of, err = r.layout.target(resourceKey{r.job, r.instance, set.scope})
		return set, of, err
	}
	if r.request.fault = r.request.decoder.DecodeLabels(r.request.version, s); r.request.fault != nil {
		return nil, nil, r.request.fault
	}
	return r.recogniseLabels(s.Labels)
}

// recogniseLabels is recognise for decoded labels.
func (r *recognition) recogniseLabels(labels []promwrite.Label) (set *labelSet, of *target, err error) {
	o := r.request.known.outline(labels)
	is := func(s *labelSet) bool { return s.is(labels, o.others) }
	if !o.odd {
		set = r.request.known.sets.Find(o.hash, is)
	}
	kept := set
	if set == nil { // slow path: rare for each set
		set = &r.set
		if err = identify(labels, r.scoped, r.replicas, set); err != nil {
			r.before = nil
			return set, nil, err
		}
		if !o.odd && !r.request.known.sets.Full() {
			kept = r.request.known.keep(set, labels)
			kept.self = o.hash
			kept = r.request.known.sets.Add(o.hash, kept, is)
		}
		if kept != nil {
			set = kept
		} else { // there is no room
			set.last(r.request.text)
		}
	}
	if kept != nil {
		r.follow(kept, o.hash)
	} else {
		r.before = nil
	}
	of, err = r.layout.target(resourceKey{o.job, o.instance, set.scope})
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
