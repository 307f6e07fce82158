// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/intern"
)

// interner makes equal names, keys and values of data share their memory, so that data which waits in a queue takes
// less. What it is made of stays equal.
type interner struct{ table *intern.Table }

func newInterner(cfg *InterningConfig) *interner {
	if !cfg.Enabled {
		return nil
	}
	return &interner{table: intern.New(cfg.MaxMiB<<20, cfg.Exclude)}
}

// interning is the work on one batch.
type interning struct {
	*interner

	to     pcommon.Map // always empty in between
	values []pcommon.Value
}

func (n *interner) metrics(md pmetric.Metrics) {
	w := interning{interner: n, to: pcommon.NewMap()}
	for _, rm := range md.ResourceMetrics().All() {
		w.attributes(rm.Resource().Attributes())
		for _, sm := range rm.ScopeMetrics().All() {
			scope := sm.Scope()
			n.text(scope.Name(), scope.SetName)
			n.text(scope.Version(), scope.SetVersion)
			w.attributes(scope.Attributes())
			for _, m := range sm.Metrics().All() {
				n.text(m.Name(), m.SetName)
				n.text(m.Unit(), m.SetUnit)
				n.text(m.Description(), m.SetDescription)
				for i := range pointCount(m) {
					w.attributes(attributesAt(m, i))
				}
			}
		}
	}
}

func (n *interner) text(s string, set func(string)) {
	if found, _ := n.table.Text(s); !intern.Same(found, s) {
		set(found)
	}
}

// maxRebuilt is how many attributes a map has at most that is made anew: for each that is put there all before it are
// looked at.
const maxRebuilt = 128

// attributes replaces values. Keys cannot be, so a map whose keys are not the table's is made anew; it is then only as
// large as it needs to be, too.
func (w *interning) attributes(of pcommon.Map) {
	foreign := false
	for key, value := range of.All() {
		k := w.table.Key(key)
		foreign = foreign || k != nil && !intern.Same(k.Name, key)
		if value.Type() != pcommon.ValueTypeStr {
			continue
		}
		if s := value.Str(); !foreign { // else it is done below
			if found := w.table.Value(k, s); !intern.Same(found, s) {
				value.SetStr(found)
			}
		}
	}
	if foreign && of.Len() <= maxRebuilt {
		w.rebuild(of)
	}
}

// rebuild leaves a map alone in which a key is there twice: it would be lost.
func (w *interning) rebuild(of pcommon.Map) {
	w.to.EnsureCapacity(of.Len())
	for key := range of.All() {
		if k := w.table.Key(key); k != nil {
			key = k.Name
		}
		w.to.PutEmpty(key)
	}
	if w.to.Len() < of.Len() {
		w.to.Clear()
		return
	}
	w.values = w.values[:0]
	for _, value := range w.to.All() {
		w.values = append(w.values, value)
	}
	i := 0
	for key, value := range of.All() {
		if value.Type() == pcommon.ValueTypeStr {
			s := value.Str()
			if found := w.table.Value(w.table.Key(key), s); !intern.Same(found, s) {
				value.SetStr(found)
			}
		}
		value.MoveTo(w.values[i])
		i++
	}
	w.to.MoveTo(of)
}
