// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fair

// Paces divide what a limit allows per minute among those who share it. The total is a single instant, up to which it
// is used (policy.Pace); Paces records whose parts these are. The total drains with time, and each part at the same
// rate. Nobody may have so much that others find none.
type Paces struct {
	parts map[uint64]*Part
	scale float64 // of all parts: draining changes only this number
	used  int64   // ns used when it was last looked at
	tidy  int     // number of parts at which unused ones are removed
}

// Part is what one of them took, and since when it was denied.
type Part struct {
	taken           float64 // ns, divided by the scale
	Pressed, Denied int64
}

const (
	fewParts   = 64
	leastScale = 1e-9
)

// drain lets time pass; used is how much is still used afterwards.
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

// MayTake reports whether somebody may take more, given how much is used, and left after that. Those who have none
// always may.
func (p *Paces) MayTake(who uint64, used, left, more int64) bool {
	p.drain(used)
	part := p.parts[who]
	if part == nil {
		return true
	}
	has := int64(part.taken * p.scale)
	return has == 0 || has+more <= Most(left)
}

// Take records that somebody took some, as allowed by MayTake.
func (p *Paces) Take(part *Part, more int64) {
	if part != nil {
		part.taken += float64(more) / p.scale
	}
	p.used += more
}

// Of returns somebody's part, and makes it if there is room.
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

// Len is the number of parts.
func (p *Paces) Len() int { return len(p.parts) }

// forget removes parts that are empty and were not denied anything lately.
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
