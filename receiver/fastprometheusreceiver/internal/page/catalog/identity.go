// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// An Identity is what a catalog knows about one target: the values that lines take from it.
type Identity struct {
	Catalog *Catalog
	Job     string
	Host    string     // the instance
	Values  []string   // of the labels with marks, followed by those that rules derive from them
	answers []uint16   // to the catalog's questions, by their numbers, plus one
	Pin     *Condition // of lines that are the target's alone; nil while it shares them
	Turned  bool       // its last page still has lines that it shared
	Own     []string   // values that most lines of its page have, by slot
	Version int        // incremented when these change

	ownCounted int64  // bytes of its own values, as the catalog counted them
	first      uint64 // the kind of pages of which its own was the first; 0 if it was not
}

// meets reports whether the target has the line with this condition.
func (t *Identity) meets(cond *Condition) bool {
	if cond == nil || cond == t.Pin {
		return t.Pin == nil || cond == t.Pin
	}
	if t.Pin != nil || cond.pin != 0 {
		return false
	}
	for _, g := range cond.answers {
		if n, err := t.answer(g.question); err != nil || n != g.answer {
			return false
		}
	}
	return true
}

// MeetsAll reports whether the target has the lines with all these conditions.
func (t *Identity) MeetsAll(conds []*Condition) bool {
	for _, cond := range conds {
		if !t.meets(cond) {
			return false
		}
	}
	return true
}

// answer returns the number of the target's answer.
func (t *Identity) answer(q *question) (int, error) {
	for len(t.answers) <= q.id {
		t.answers = append(t.answers, 0)
	}
	if n := t.answers[q.id]; n > 0 {
		return int(n) - 1, nil
	}
	text, value := q.ask(t)
	n := slices.Index(q.answers, text)
	if n < 0 {
		if n = len(q.answers); n == mostAnswers {
			return 0, errPinned
		}
		q.answers = append(q.answers, strings.Clone(text))
	}
	if text == answerValue {
		if q.number < 0 {
			if t.Catalog.variables+t.Catalog.derived == MostVariables {
				return 0, errPinned
			}
			q.number = t.Catalog.variables + t.Catalog.derived
			t.Catalog.derived++
		}
		for len(t.Values) <= q.number {
			t.Values = append(t.Values, "")
		}
		t.Values[q.number] = value
	}
	t.answers[q.id] = uint16(n) + 1
	return n, nil
}

// resolve returns the value that a mark stands for.
func (t *Identity) resolve(v string) string {
	if i := marked(v); i >= 0 {
		return t.Value(i)
	}
	return v
}

// Value returns a value of the target by its number, empty if it has none: it may have borrowed a plan without having
// its lines.
func (t *Identity) Value(i int) string {
	values := t.Values
	if i >= ownBase {
		i, values = i-ownBase, t.Own
	}
	if i >= len(values) {
		return ""
	}
	return values[i]
}

// Of returns the job and the instance that name a resource, empty if its series have none.
func (t *Identity) Of(r *Resource) (job, instance string) {
	return t.orOwn(r.job, t.Job), t.orOwn(r.instance, t.Host)
}

func (t *Identity) orOwn(v, own string) string {
	if v == noLabel {
		return ""
	}
	return cmp.Or(t.resolve(v), own)
}

// SeriesHash is a hash of the text as on the target's page.
func (t *Identity) SeriesHash(l *Line) uint64 {
	if !l.IsSlotted() {
		return l.text.hash()
	}
	return maphash.Bytes(seed, l.AppendSpelled(nil, t.Own))
}

// PointHash is a hash of what identifies a point behind the receiver, the same in all catalogs. Its type is not part of
// that, since it may change. But histograms and summaries are different series from numbers of the same name.
func (t *Identity) PointHash(q *Point) uint64 {
	b, scope := q.Family.Base, q.Family.Scope
	job, instance := t.Of(q.Family.Resource)
	h := t.attributesHash(q)
	for _, s := range [...]string{b.Name, job, instance, scope.Name, scope.Version} {
		h = mixed(h, s)
	}
	switch b.Kind {
	case pmetric.MetricTypeHistogram, pmetric.MetricTypeSummary:
		h++
	case pmetric.MetricTypeExponentialHistogram:
		h += 2
	default:
	}
	return h
}

// attributesHash is a hash of the attributes of a point.
func (t *Identity) attributesHash(q *Point) (h uint64) {
	at := 0
	for i, name := range q.Form.Keys.Names {
		v, next := q.Value(i, at, t)
		at = next
		h = mixed(mixed(h, name), v)
	}
	return h
}

// mixed is a hash of a string and another hash.
func mixed(h uint64, s string) uint64 {
	h = (h ^ maphash.String(seed, s)) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}
