// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"hash/maphash"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/expo"
)

// slotted returns the target's line for a template, nil if it is not known.
func (c *Catalog) slotted(t *Identity, template []byte, in Setting) *Line {
	return c.Lines.find(maphash.Bytes(seed, template), func(l *Line) bool {
		return l.Setting == in && l.isOf(template) && t.meets(l.Name.Cond)
	}).share()
}

// ownLine returns the line of an entry with the target's own values, nil if it has none. isWhole is set for targets
// that may have a text of its own for each line.
func (c *Catalog) ownLine(t *Identity, e *expo.Entry, in, kept Setting, isWhole bool) (*Line, error) {
	if t.Pin != nil || len(t.Own) == 0 {
		return nil, nil
	}
	b := c.Own.template.write(&c.Own.slots, t, e)
	if b == nil {
		return nil, nil
	}
	if l := c.slotted(t, b, kept); l != nil {
		return l, nil
	}
	hash := maphash.Bytes(seed, b)
	if sh := c.shape(t, e, kept, true); sh != nil {
		x := c.ownText(sh.name, e, isWhole)
		var l *Line
		if sh.isSole() && !x.isShared() {
			l = c.mouldSole(sh, e, kept, x)
		} else {
			l = c.mould(sh, e, kept, x)
		}
		c.Lines.insert(l, hash)
		return l, nil
	}
	exposed := c.expose(e, in)
	set := labels.NewBuilder(exposed)
	for i := range e.Labels() {
		if slot := c.Own.template.slots[i]; slot >= 0 {
			name, _ := e.Label(i)
			set.Set(string(name), OfTarget.Of(ownBase+slot))
		}
	}
	final, cond, err := c.final(set.Labels(), t)
	if err != nil {
		return nil, err
	}
	return c.addSeries(c.ownText(c.nameOf(exposed, final, cond), e, isWhole), kept, final, true), nil
}

// ownText returns the text of the entry whose template was written last, divided into the pieces that it would have
// without slots.
func (c *Catalog) ownText(n *Name, e *expo.Entry, isWhole bool) text {
	w, cuts := &c.Own.template, c.pieces.cut(e)
	if len(cuts) == 0 || !n.startsAll(e.Text[:cuts[0]]) {
		return text{Name: n, body: newPiece(w.keep(e, 0, len(e.Text), bodyPiece)), tail: slotted}
	}
	if c.isKeptWhole(e, isWhole) {
		return text{Name: n, body: newPiece(w.keep(e, cuts[0], len(e.Text), bodyPiece)), tail: slottedAlone}
	}
	end := len(e.Text)
	if len(cuts) > 1 {
		end = cuts[1]
	}
	body := c.pieces.piece(w.keep(e, cuts[0], end, bodyPiece))
	return text{Name: n, body: body, tail: c.pieces.piece(w.keep(e, end, len(e.Text), tailPiece))}
}
