// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package reuse

import (
	"hash/maphash"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/internal/slab"
)

// Attributes are attributes that the points of many requests share. Nobody changes them: who does, and said that it does not keep metrics,
// is found out by their seal when metrics are taken back.
type Attributes struct {
	list  pcommon.Map
	seal  seal
	texts *texts
}

// texts are what attributes say, names and values in turn; nil if some are no texts. They are those of the attributes, where these say what they
// did: then a look at where they are is enough to tell.
type texts struct{ all []string }

// seal tells attributes that were changed.
type seal struct {
	length int32 // how many there are, or unshared
	sum    uint32
}

const (
	unshared = -1
	// lookEvery is one point of how many is looked through each time, others in turn. Of the others it is seen that attributes
	// were added or removed.
	lookEvery = 16
)

// None is the attributes of who has none of others.
var None = Attributes{list: pcommon.NewMap(), seal: seal{length: unshared}}

// Seal makes attributes of a map, which is theirs from then on.
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

// are reports whether attributes, of which there are as many, say that.
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

// Are reports whether there are attributes at all, if only none of them: the zero value is not that.
func (a Attributes) Are() bool { return a.list != (pcommon.Map{}) }

// Intact reports whether attributes say what they did when they were sealed.
func (a Attributes) Intact() bool {
	return !a.Are() || a.list.Len() == int(a.seal.length) && sumOf(a.list) == a.seal.sum
}

var seed = maphash.MakeSeed()

// sumOf is a checksum of what attributes say.
func sumOf(m pcommon.Map) uint32 {
	sum := uint64(0)
	for k, v := range m.All() {
		text := v.Str() // none, of what is no string
		if v.Type() != pcommon.ValueTypeStr {
			text = v.AsString()
		}
		sum = sum*31 + maphash.String(seed, k)
		sum = sum*31 + maphash.String(seed, text) + uint64(v.Type())
	}
	return uint32(sum ^ sum>>32)
}
