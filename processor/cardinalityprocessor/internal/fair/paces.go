// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fair

// Paces divide what a limit gives within a minute among those who share it. All of it is one instant, up to which it is used
// (policy.Pace); here is whose that is. It drains with time, and each one's part of it at the same rate. Nobody may have so much that
// others find none: who comes later is not kept out by who takes all that there is.
type Paces struct {
	parts map[uint64]*Part
	scale float64 // of all parts: to drain is to change this one number
	used  int64   // ns that were used when it was last looked at
	tidy  int     // parts at which those are looked for that have nothing
}

// Part is what one of them took, and since when there was nothing for it.
type Part struct {
	taken           float64 // ns, divided by the scale
	Pressed, Denied int64
}

const (
	fewParts   = 64
	leastScale = 1e-9
)

// drain lets time pass, after which so much is used still.
func (p *Paces) drain(used int64) {
	switch {
	case used <= 0 || p.used <= 0:
		p.scale = 1
		for _, part := range p.parts {
			part.taken = 0
		}
	case used < p.used:
		p.scale *= float64(used) / float64(p.used)
	}
	p.used = max(0, used)
	if p.scale < leastScale {
		p.rescale()
	}
}

func (p *Paces) rescale() {
	for _, part := range p.parts {
		part.taken *= p.scale
	}
	p.scale = 1
}

// MayTake says whether somebody may take some more, of what so much is used of, when so much is left after that. Who has none may in
// any case.
func (p *Paces) MayTake(who uint64, used, left, more int64) bool {
	p.drain(used)
	part := p.parts[who]
	if part == nil {
		return true
	}
	has := int64(part.taken * p.scale)
	return has == 0 || has+more <= Most(left)
}

// Take notes that somebody took some of it, after he was told that he may.
func (p *Paces) Take(part *Part, more int64) {
	if part != nil {
		part.taken += float64(more) / p.scale
	}
	p.used += more
}

// Of is the part of somebody. If there is none it is made, unless there is no room for one.
func (p *Paces) Of(who uint64, room bool, patience, now int64) *Part {
	part := p.parts[who]
	if part != nil {
		return part
	}
	p.forget(patience, now)
	if !room {
		return nil
	}
	if p.parts == nil {
		p.parts, p.scale = map[uint64]*Part{}, 1
	}
	part = &Part{}
	p.parts[who] = part
	return part
}

// Len is how many parts there are.
func (p *Paces) Len() int { return len(p.parts) }

// forget forgets those that have nothing any more, and have not been denied anything lately.
func (p *Paces) forget(patience, now int64) {
	if len(p.parts) < p.tidy || len(p.parts) < fewParts {
		return
	}
	for who, part := range p.parts {
		if part.taken*p.scale < 1 && (now-part.Denied > patience || now < part.Denied) {
			delete(p.parts, who)
		}
	}
	p.tidy = 2 * len(p.parts)
}
