// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package reuse

import (
	"hash/maphash"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/internal/slab"
)

// Attributes are attributes that the points of many requests share. Nobody may change them: if a component does,
// although it promised not to, their seal shows it when metrics are taken back.
type Attributes struct {
	list  pcommon.Map
	seal  seal
	texts *texts
}

// texts are the names and values of attributes in turn; nil if some values are no strings. They are the same strings as
// in the attributes, so unchanged ones are recognised by their address.
type texts struct{ all []string }

// seal detects changes of attributes.
type seal struct {
	length int32 // their number, or unshared
	sum    uint32
}

const (
	unshared = -1
	// lookEvery: the attributes of one point in this many are compared each time, in turn. For the others, only
	// additions and removals are detected.
	lookEvery = 16
)

// None stands for no shared attributes.
var None = Attributes{list: pcommon.NewMap(), seal: seal{length: unshared}}

// Seal makes Attributes of a map, which they own from then on.
func Seal(m pcommon.Map) Attributes {
	return Attributes{m, seal{int32(m.Len()), sumOf(m)}, textsOf(m)}
}

func textsOf(m pcommon.Map) *texts {
	t := &texts{make([]string, 0, 2*m.Len())}
	for k, v := range m.All() {
		if v.Type() != pcommon.ValueTypeStr {
			return nil
		}
		t.all = append(t.all, k, v.Str())
	}
	return t
}

// are reports whether as many attributes have these names and values.
func (t *texts) are(all []slab.Attribute) bool {
	for i := range all {
		k, isHere := all[i].Key()
		text, isText := all[i].Str()
		if !isHere || !isText || k != t.all[2*i] || text != t.all[2*i+1] {
			return false
		}
	}
	return true
}

// Are reports whether a is set: the zero value is not, but no attributes are.
func (a Attributes) Are() bool { return a.list != (pcommon.Map{}) }

// Intact reports whether attributes are the same as when they were sealed.
func (a Attributes) Intact() bool {
	return !a.Are() || a.list.Len() == int(a.seal.length) && sumOf(a.list) == a.seal.sum
}

var seed = maphash.MakeSeed()

// sumOf is a checksum of names and values.
func sumOf(m pcommon.Map) uint32 {
	sum := uint64(0)
	for k, v := range m.All() {
		text := v.Str() // empty if it is no string
		if v.Type() != pcommon.ValueTypeStr {
			text = v.AsString()
		}
		sum = sum*31 + maphash.String(seed, k)
		sum = sum*31 + maphash.String(seed, text) + uint64(v.Type())
	}
	return uint32(sum ^ sum>>32)
}
