// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"hash/maphash"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/expo"
)

// slotted returns the target's line of a template, if it is known.
func (c *Catalog) slotted(t *Identity, template []byte, in Setting) *Line {
	return c.Lines.find(maphash.Bytes(seed, template)^slottedSalt, func(l *Line) bool {
		return l.Setting == in && l.IsSlotted() && string(*l.body) == string(template) && t.meets(l.Name.Cond)
	}).share()
}

// ownLine returns the line of an entry that has values of the target's own, nil if it has none.
func (c *Catalog) ownLine(t *Identity, e *expo.Entry, in, kept Setting) (*Line, error) {
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
	body := piece(b)
	if sh := c.shape(t, e, kept, true); sh != nil {
		var l *Line
		if sh.isSole() {
			l = c.mouldSole(sh, e, kept, &body, slotted)
		} else {
			l = c.mould(sh, e, kept, text{Name: sh.name, body: &body, tail: slotted})
		}
		c.Lines.insert(l, l.hash())
		return l, nil
	}
	own := text{body: &body, tail: slotted}
	exposed := c.expose(e, in)
	set := labels.NewBuilder(exposed)
	for i := range e.Labels() {
		name, value := e.Label(i)
		if slot := c.Own.of(t, name, value); slot >= 0 {
			set.Set(string(name), OfTarget.Of(ownBase+slot))
		}
	}
	final, cond, err := c.final(set.Labels(), t)
	if err != nil {
		return nil, err
	}
	own.Name = c.nameOf(exposed, final, cond)
	return c.addSeries(own, kept, final, true), nil
}
