// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/internal/slab"
)

// follow compares the series of 2.0 at the start of a message with kept steps, starting with step i whose texts begin
// at an offset, and stores their values. It returns the first step that differs, where its texts begin, and the rest of
// the message. Bytes are compared eight at a time: most parts are no longer, and a call for each would take longer.
func (k *keptSteps) follow(i, at int, msg, instance string, samples *promwrite.SampleReader, floats []slab.Float) (next, text int, rest string) {
	if len(instance) > 8 {
		return i, at, msg
	}
	named := uint64(0)
	for j := range len(instance) {
		named |= uint64(instance[j]) << (8 * j)
	}
	for ; i < len(k.steps); i++ {
		x, kept := k.steps[i], k.text[at:]
		head, own := int(x.head), int(x.head)+int(x.tail)
		series, behind, ok := promwrite.SeriesAt(promwrite.V2, msg)
		if !ok {
			break
		}
		refs, sampled, ok := promwrite.RefsAt(series)
		if !ok || len(refs) != own+len(instance) || len(sampled) < 8 {
			break
		}
		refs = series[len(series)-len(sampled)-len(refs):] // and what may be read beyond
		if !begin(refs, kept, head) || !begins(refs[head:], named, len(instance)) || !begin(refs[head+len(instance):], kept[head:], int(x.tail)) {
			break
		}
		sample, metadata, ok := samples.Next(sampled)
		if !ok || isStale(sample.Value) || metadata != kept[own:own+int(x.metadata)] {
			break
		}
		floats[i] = slab.Float{Value: sample.Value, At: sample.Timestamp, Start: sample.StartTimestamp}
		at += x.length()
		msg = behind
	}
	return i, at, msg
}

// begin reports whether two texts begin with the same n bytes. Both must have eight more, or fill the last eight.
func begin(a, b string, n int) bool {
	for ; n > 8; n -= 8 {
		if eight(a) != eight(b) {
			return false
		}
		a, b = a[8:], b[8:]
	}
	return (eight(a)^eight(b))<<(8*(8-n)&127) == 0
}

// begins reports whether a text begins with the first n bytes of a word.
func begins(text string, with uint64, n int) bool { return (eight(text)^with)<<(8*(8-n)&127) == 0 }

func eight(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}
