// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"strings"

	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/internal/slab"
)

// keptLabels are the labels of the series of a run of 1.0 in one text, without those of the target: what comes before
// these and after, in turn, then keptSlack. Comparing with the labels of each set instead would read as much again from
// scattered memory.
type keptLabels struct {
	text  string
	steps []keptLabel
}

// keptLabel is the lengths of the labels before and after those of the target, at most maxKnownText.
type keptLabel struct{ head, tail uint16 }

// keptLabelSize is what one takes up beside its text.
const keptLabelSize = 4

// keepLabels copies the labels of the series of a run, except those that are parted.
func keepLabels(steps []step) (k keptLabels) {
	var text strings.Builder
	k.steps = make([]keptLabel, len(steps))
	for i := range steps {
		if steps[i].parted {
			continue
		}
		raw := steps[i].set.raw
		head, tail := raw.parts[0], ""
		if raw.n > 0 {
			tail = raw.parts[raw.n]
		}
		text.WriteString(head)
		text.WriteString(tail)
		k.steps[i] = keptLabel{uint16(len(head)), uint16(len(tail))}
	}
	text.WriteString(keptSlack)
	k.text = text.String()
	return k
}

func (k *keptLabels) bytes() int { return len(k.steps)*keptLabelSize + len(k.text) }

// follow compares the series at the start of a message with the labels of steps, starting with step i whose texts begin
// at an offset, and with those of the target, which must be followed by keptSlack. It stores their values, and returns
// the first step that differs, where its texts begin, and the rest of the message. Bytes are compared eight at a time:
// most parts are short, and a call for each would take longer.
func (k *keptLabels) follow(i, at int, msg, target string, samples *promwrite.SampleReader, steps []step, floats []slab.Float) (next, text int, rest string) {
	own := len(target) - len(keptSlack)
	for ; i < len(k.steps) && !steps[i].parted; i++ {
		x := k.steps[i]
		head, tail := int(x.head), int(x.tail)
		series, behind, ok := promwrite.SeriesAt(promwrite.V1, msg)
		end := head + own + tail
		if !ok || len(series) < end+8 { // the least size of a sample that is read here
			break
		}
		if !alike(series, 0, k.text, at, head) || !alike(series, head, target, 0, own) || !alike(series, head+own, k.text, at+head, tail) {
			break
		}
		sample, more, ok := samples.Next(series[end:])
		if !ok || more != "" || isStale(sample.Value) {
			break
		}
		floats[i] = slab.Float{Value: sample.Value, At: sample.Timestamp}
		at += head + tail
		msg = behind
	}
	return i, at, msg
}

// alike reports whether n bytes at two offsets are equal. Both texts must have eight more.
func alike(a string, from int, b string, begin, n int) bool {
	const most = 32 // at a time
	if n >= most {
		for i := 0; i < n; i += most {
			at := min(i, n-most)
			x, y := a[from+at:from+at+most], b[begin+at:begin+at+most]
			if (eight(x)^eight(y))|(eight(x[8:])^eight(y[8:]))|(eight(x[16:])^eight(y[16:]))|(eight(x[24:])^eight(y[24:])) != 0 {
				return false
			}
		}
		return true
	}
	for ; n > 8; n -= 8 {
		if eight(a[from:from+8]) != eight(b[begin:begin+8]) {
			return false
		}
		from += 8
		begin += 8
	}
	return (eight(a[from:from+8])^eight(b[begin:begin+8]))<<(8*(8-n)&127) == 0
}
