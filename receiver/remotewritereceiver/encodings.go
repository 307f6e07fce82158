// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/internal/slab"
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

// encodings is how the series of runs of 2.0 are encoded in a request.
type encodings struct {
	request *request

	said  map[*run]encodedRun // in the request so far
	refs  []encodedStep       // memory for all of their steps
	names map[uint64]string   // memory for later calls
}

func (e *encodings) reset() {
	clear(e.said)
	clear(e.refs)
	if e.refs = e.refs[:0]; cap(e.refs) > maxRetained {
		e.refs = nil
	}
}

// compare compares series of 2.0 with a run, and stores their values. It returns what follows.
func (e *encodings) compare(r *run, floats []slab.Float, msg string, of *target) (rest string, ok bool) {
	before, known := e.of(r, of)
	first, joined, at := len(e.refs), "", 0
	samples := promwrite.SampleReader{Version: promwrite.V2}
	for i := 0; i < len(r.steps); i++ {
		if i > 0 && before.kept != nil {
			if i, at, msg = before.kept.follow(i, at, msg, joined, &samples, floats); i == len(r.steps) {
				break
			}
		}
		var series string
		if series, msg, ok = promwrite.SeriesAt(promwrite.V2, msg); !ok {
			return "", false
		}
		refs, series, ok := promwrite.RefsAt(series)
		if !ok {
			return "", false
		}
		sample, more, ok := samples.Next(series)
		if !ok || isStale(sample.Value) {
			return "", false
		}
		same := false
		if known {
			var x encodedStep
			if before.kept == nil {
				x = before.steps[i]
			} else {
				x = before.kept.step(i, at)
				at += before.kept.steps[i].length()
			}
			behind := len(x.head) + len(joined)
			same = i > 0 && len(refs) == behind+len(x.tail) && more == x.metadata &&
				refs[:len(x.head)] == x.head && refs[len(x.head):behind] == joined && refs[behind:] == x.tail
		}
		if !same {
			x, own, ok := e.compareRefs(&r.steps[i], refs, more, of)
			if !ok {
				return "", false
			}
			if i == 0 {
				joined = own
			}
			if !known {
				e.refs = append(e.refs, x)
			}
		}
		floats[i] = slab.Float{Value: sample.Value, At: sample.Timestamp, Start: sample.StartTimestamp}
	}
	if !known {
		e.note(r, encodedRun{job: of.key.job, isNamed: of.key.instance != "", steps: e.refs[first:]})
	}
	return msg, true
}

// compareRefs compares the references and the metadata of a series with a step and the target. It returns how they are
// encoded, and the reference of the instance.
func (e *encodings) compareRefs(st *step, refs, metadata string, of *target) (x encodedStep, instance string, ok bool) {
	labels := st.set.labels
	at, jobs, instances := 0, 0, 0
	x = encodedStep{head: refs, metadata: metadata}
	job, name := "", ""
	decoder := e.request.decoder
	for rest := refs; rest != ""; {
		n, key := decoder.RefAt(rest)
		if n == 0 {
			return x, "", false
		}
		m, value := decoder.RefAt(rest[n:])
		if m == 0 {
			return x, "", false
		}
		switch {
		case at < len(labels) && labels[at].Name == key && labels[at].Value == value: // fast path
			at++
		case key == labelJob:
			job = value
			jobs++
		case key == labelInstance:
			name = value
			instances++
			begin := len(refs) - len(rest) + n
			x.head, instance, x.tail = refs[:begin], refs[begin:begin+m], refs[begin+m:]
		default:
			return x, "", false
		}
		rest = rest[n+m:]
	}
	if at != len(labels) || jobs > 1 || instances > 1 || job != of.key.job || name != of.key.instance {
		return x, "", false
	}
	var s promwrite.Series
	if !decoder.MetadataOf(metadata, &s) {
		return x, "", false
	}
	s.Type = knownType(s.Type)
	return x, instance, st.family.is(&s)
}

// of returns how the series of a run are encoded for a target in the current request, as far as known.
func (e *encodings) of(r *run, to *target) (known encodedRun, ok bool) {
	if known, ok = e.said[r]; ok && known.isOf(&to.key) {
		return known, true
	}
	last := r.said.Load()
	if last == nil || !last.isOf(&to.key) {
		return encodedRun{}, false
	}
	for i := range last.names {
		if n := &last.names[i]; !e.request.decoder.Says(n.ref, n.text) {
			return encodedRun{}, false
		}
	}
	if r.foreign.Load() > 0 {
		r.foreign.Store(0)
	}
	e.say(r, last.encodedRun)
	return last.encodedRun, true
}

// say records an encoding for the next target in the request.
func (e *encodings) say(r *run, x encodedRun) {
	if e.said == nil {
		e.said = map[*run]encodedRun{}
	}
	e.said[r] = x
}

// note records how a run was encoded that was compared text by text. It refers to the request.
func (e *encodings) note(r *run, x encodedRun) {
	e.say(r, x)
	if r.foreign.Add(1) < fewForeign {
		return
	}
	r.foreign.Store(-unfit)
	if kept := e.lasting(r, x); kept != nil && r.of.keepEncoding(r, kept) {
		r.foreign.Store(0)
	}
}

// lasting returns an encoding in memory of its own; nil if it is unusual.
func (e *encodings) lasting(r *run, from encodedRun) *encoding {
	if e.names == nil {
		e.names = map[uint64]string{}
	}
	clear(e.names)
	steps := &keptSteps{steps: make([]keptStep, 0, len(from.steps))}
	kept := &encoding{encodedRun: encodedRun{job: strings.Clone(from.job), isNamed: from.isNamed, kept: steps}}
	var all strings.Builder
	for i := range from.steps {
		x := &from.steps[i]
		for _, part := range [...]string{x.head, x.tail, x.metadata} {
			all.WriteString(part)
		}
		if !steps.keep(x) || !e.nameRefs(&r.steps[i], x, kept.job) {
			return nil
		}
	}
	all.WriteString(keptSlack)
	steps.text = all.String()
	kept.bytes = encodingSize + len(steps.text) + len(kept.job) + len(from.steps)*keptStepSize
	// Together and in the order of requests, since they are all compared once in a request.
	all.Reset()
	refs := slices.Sorted(maps.Keys(e.names))
	for _, ref := range refs {
		all.WriteString(e.names[ref])
	}
	text := all.String()
	kept.bytes += len(text) + len(refs)*namedRefSize
	kept.names = make([]namedRef, 0, len(refs))
	for _, ref := range refs {
		n := len(e.names[ref])
		kept.names = append(kept.names, namedRef{ref, text[:n]})
		text = text[n:]
	}
	return kept
}

// nameRefs records the texts of a step's references, as copies. They equal the step's.
func (e *encodings) nameRefs(st *step, x *encodedStep, job string) bool {
	labels := st.set.labels
	for rest := x.head + x.tail; rest != ""; {
		name, n := promwrite.RefOf(rest)
		if n == 0 {
			return false
		}
		isInstance := len(rest)-n == len(x.tail) && e.request.decoder.Says(name, labelInstance) // whose value is elsewhere
		if rest = rest[n:]; isInstance {
			e.names[name] = labelInstance
			continue
		}
		value, m := promwrite.RefOf(rest)
		rest = rest[m:]
		switch {
		case m == 0:
			return false
		case len(labels) > 0 && e.request.decoder.Says(name, labels[0].Name) && e.request.decoder.Says(value, labels[0].Value):
			e.names[name], e.names[value] = labels[0].Name, labels[0].Value
			labels = labels[1:]
		case e.request.decoder.Says(name, labelJob) && e.request.decoder.Says(value, job):
			e.names[name], e.names[value] = labelJob, job
		default:
			return false
		}
	}
	help, unit, ok := promwrite.MetadataRefs(x.metadata)
	for ref, text := range map[uint64]string{help: st.family.help, unit: st.family.unit} {
		if ref != 0 { // which is none
			e.names[ref] = text
		}
	}
	return ok && len(labels) == 0
}
