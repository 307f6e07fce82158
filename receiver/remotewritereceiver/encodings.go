// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

// encodedRun is how the series of a run of 2.0 are encoded, for targets of a job, with or without an instance. Another
// instance changes only its own reference.
type encodedRun struct {
	job     string
	isNamed bool
	steps   []encodedStep // part of a request; nil if
	kept    *keptSteps    // the copy is used
}

func (e *encodedRun) isOf(key *resourceKey) bool {
	return e.job == key.job && e.isNamed == (key.instance != "")
}

// encodedStep is the references of a series before and after that of its instance, and what follows its sample.
type encodedStep struct{ head, tail, metadata string }

// keptSteps are encoded steps in one text: heads, tails and metadata in turn, then keptSlack.
type keptSteps struct {
	text  string
	steps []keptStep
}

// keptStep is the lengths of the parts of an encoded step.
type keptStep struct{ head, tail, metadata uint8 }

func (x keptStep) length() int { return int(x.head) + int(x.tail) + int(x.metadata) }

// keptSlack follows kept texts, so that their last bytes can be read eight at a time.
const keptSlack = "\x00\x00\x00\x00\x00\x00\x00\x00"

// keep appends a step. It returns false if that is unusual.
func (k *keptSteps) keep(x *encodedStep) bool {
	k.steps = append(k.steps, keptStep{uint8(len(x.head)), uint8(len(x.tail)), uint8(len(x.metadata))})
	return max(len(x.head), len(x.tail), len(x.metadata)) <= math.MaxUint8
}

// step returns step i, whose texts begin at an offset.
func (k *keptSteps) step(i, at int) encodedStep {
	x := k.steps[i]
	head, tail, end := at+int(x.head), at+int(x.head)+int(x.tail), at+x.length()
	return encodedStep{k.text[at:head], k.text[head:tail], k.text[tail:end]}
}

// encoding is how the series of a run were encoded in a request, for later ones. It applies if its few references stand
// for the same texts: then the encoded bytes need not be resolved.
type encoding struct {
	encodedRun

	names []namedRef
	bytes int // of memory
}

// namedRef is a reference and what it stands for.
type namedRef struct {
	ref  uint64
	text string
}

// Bytes of memory.
const (
	encodingSize = 160
	keptStepSize = 3
	namedRefSize = 24
)

const (
	// fewForeign is the number of consecutive requests in which a run must be encoded otherwise than is known for that
	// to be recorded.
	fewForeign = 4
	// unfit is for how many further requests it is not tried again if there is no room.
	unfit = 60
)

// encodingOf returns how the series of a run are encoded for a target in the current request, as far as known.
func (t *translator) encodingOf(r *run, of *target) (e encodedRun, ok bool) {
	if e, ok = t.said[r]; ok && e.isOf(&of.key) {
		return e, true
	}
	last := r.said.Load()
	if last == nil || !last.isOf(&of.key) {
		return encodedRun{}, false
	}
	for i := range last.names {
		if n := &last.names[i]; !t.decoder.Says(n.ref, n.text) {
			return encodedRun{}, false
		}
	}
	if r.foreign.Load() > 0 {
		r.foreign.Store(0)
	}
	t.say(r, last.encodedRun)
	return last.encodedRun, true
}

// say records an encoding for the next target in the request.
func (t *translator) say(r *run, e encodedRun) {
	if t.said == nil {
		t.said = map[*run]encodedRun{}
	}
	t.said[r] = e
}

// noteEncoding records how a run was encoded that was compared text by text. It refers to the request.
func (t *translator) noteEncoding(r *run, e encodedRun) {
	t.say(r, e)
	if r.foreign.Add(1) < fewForeign {
		return
	}
	r.foreign.Store(-unfit)
	if kept := t.lastingEncoding(r, e); kept != nil && r.of.keepEncoding(r, kept) {
		r.foreign.Store(0)
	}
}

// lastingEncoding returns an encoding in memory of its own; nil if it is unusual.
func (t *translator) lastingEncoding(r *run, e encodedRun) *encoding {
	if t.names == nil {
		t.names = map[uint64]string{}
	}
	clear(t.names)
	steps := &keptSteps{steps: make([]keptStep, 0, len(e.steps))}
	kept := &encoding{encodedRun: encodedRun{job: strings.Clone(e.job), isNamed: e.isNamed, kept: steps}}
	var all strings.Builder
	for i := range e.steps {
		x := &e.steps[i]
		for _, part := range [...]string{x.head, x.tail, x.metadata} {
			all.WriteString(part)
		}
		if !steps.keep(x) || !t.nameRefs(&r.steps[i], x, kept.job) {
			return nil
		}
	}
	all.WriteString(keptSlack)
	steps.text = all.String()
	kept.bytes = encodingSize + len(steps.text) + len(kept.job) + len(e.steps)*keptStepSize
	// Together and in the order of requests, since they are all compared once in a request.
	all.Reset()
	refs := slices.Sorted(maps.Keys(t.names))
	for _, ref := range refs {
		all.WriteString(t.names[ref])
	}
	text := all.String()
	kept.bytes += len(text) + len(refs)*namedRefSize
	kept.names = make([]namedRef, 0, len(refs))
	for _, ref := range refs {
		n := len(t.names[ref])
		kept.names = append(kept.names, namedRef{ref, text[:n]})
		text = text[n:]
	}
	return kept
}

// nameRefs records the texts of a step's references, as copies. They equal the step's.
func (t *translator) nameRefs(st *step, x *encodedStep, job string) bool {
	labels := st.set.labels
	for rest := x.head + x.tail; rest != ""; {
		name, n := promwrite.RefOf(rest)
		if n == 0 {
			return false
		}
		isInstance := len(rest)-n == len(x.tail) && t.decoder.Says(name, labelInstance) // whose value is elsewhere
		if rest = rest[n:]; isInstance {
			t.names[name] = labelInstance
			continue
		}
		value, m := promwrite.RefOf(rest)
		rest = rest[m:]
		switch {
		case m == 0:
			return false
		case len(labels) > 0 && t.decoder.Says(name, labels[0].Name) && t.decoder.Says(value, labels[0].Value):
			t.names[name], t.names[value] = labels[0].Name, labels[0].Value
			labels = labels[1:]
		case t.decoder.Says(name, labelJob) && t.decoder.Says(value, job):
			t.names[name], t.names[value] = labelJob, job
		default:
			return false
		}
	}
	help, unit, ok := promwrite.MetadataRefs(x.metadata)
	for ref, text := range map[uint64]string{help: st.family.help, unit: st.family.unit} {
		if ref != 0 { // which is none
			t.names[ref] = text
		}
	}
	return ok && len(labels) == 0
}
