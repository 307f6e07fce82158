// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

// What the things in a catalog take, in bytes, without their texts, but with their slots in tables and their share of
// maps.
const (
	slotBytes        = 14
	LineBytes        = 48 + slotBytes
	PointBytes       = 32 + slotBytes
	NameBytes        = 88 + slotBytes
	BaseBytes        = 144 + slotBytes
	FamilyBytes      = 48
	MetaBytes        = 88
	unspelledBytes   = 64
	formBytes        = 40
	formSlotBytes    = 40
	shapeBytes       = 256
	shapedValueBytes = 24
	keysBytes        = 160
	keyBytes         = 18
	attributeBytes   = 64
	resourceBytes    = 112
	scopeBytes       = 200
	SaidBytes        = 96
	conditionBytes   = 160
	givenBytes       = 24
)

func (l *Line) bytes() int64 {
	if l.isShared() || l.body == bare {
		return LineBytes
	}
	return LineBytes + PieceBytes + int64(len(l.body.text()))
}

func (n *Name) bytes() int64 {
	if n.exposed != n.Final {
		return NameBytes + int64(len(n.Final)+len(n.exposed))
	}
	return NameBytes + int64(len(n.Final))
}

func (k *keys) bytes(key int) int64 { return keysBytes + int64(key) + keyBytes*int64(len(k.Names)) }

func (cond *Condition) bytes() int64 { return conditionBytes + givenBytes*int64(len(cond.answers)) }

func (r *Resource) bytes() int64 { return resourceBytes + int64(len(r.job)+len(r.instance)) }

func (s *Scope) bytes(key int) int64 {
	return scopeBytes + 2*int64(key) + attributeBytes*int64(len(s.Attributes))
}

// Held returns about how many bytes the catalog takes.
func (c *Catalog) Held() int64 {
	return c.size + c.pieces.held + c.shapes.held + c.metrics.held + c.points.held + c.points.heldByForms + c.heldByConditions + c.Own.held
}

// Counts is how many of each thing a catalog has.
type Counts struct {
	Lines, Points, Pieces, Shapes int
	RareBounds                    int // lines whose bound is not a common one
	Swept                         int // lines left by the last sweep
}

// Counts returns how many of each thing the catalog has.
func (c *Catalog) Counts() Counts {
	return Counts{
		Lines: c.Lines.count, Points: c.points.known.count, Pieces: c.pieces.known.count, Shapes: len(c.shapes.known), RareBounds: len(c.Bounds.rare),
		Swept: c.unused.swept,
	}
}

// Weigh returns about how many bytes a page of lines takes, whether they are known already or not, with so much in
// addition for each line and each metric.
func (c *Catalog) Weigh(lines []*Line, perLine, perMetric int64) (n int64) {
	mark := c.MarkLines()
	for _, l := range lines {
		n += LineBytes + PointBytes + PieceBytes + perLine + int64(l.len())
		if l.Name.Epoch != mark {
			l.Name.Epoch = mark
			n += l.Name.bytes() + BaseBytes + FamilyBytes + perMetric
		}
		if m, ok := c.metas[l]; ok {
			n += MetaBytes + SaidBytes + int64(len(m.Text))
		}
	}
	return n
}
