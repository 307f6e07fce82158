// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import "strings"

// differences are the labels of series of 1.0 that come one after the other, by what each has in common with the one before. What it has in
// common is compared with the series before, which was compared itself and was just read; only what is its own is kept here, side by side.
// To compare it with the labels of its set would be to read as much again of memory that is elsewhere for each.
type differences struct {
	steps []difference
	own   string // of all steps
}

// difference is what labels are before and behind those of the target, beside the series before.
type difference struct{ head, tail likeness }

// likeness is how a text begins as another does, how much is its own, and how it ends as the other does.
type likeness struct{ begin, own, end uint16 }

func (l likeness) length() int { return int(l.begin) + int(l.own) + int(l.end) }

// likenessOf is that of a text beside another. Neither is longer than maxKnownText.
func likenessOf(text, other string) (l likeness) {
	most := min(len(text), len(other))
	begin, end := 0, 0
	for begin < most && text[begin] == other[begin] {
		begin++
	}
	for end < most-begin && text[len(text)-1-end] == other[len(other)-1-end] {
		end++
	}
	return likeness{uint16(begin), uint16(len(text) - begin - end), uint16(end)}
}

// differencesOf are those of the series of a run. Of those that are parted it says nothing, and the one behind has all as its own.
func differencesOf(steps []step) (d differences) {
	var own strings.Builder
	head, tail := "", ""
	d.steps = make([]difference, len(steps))
	for i := range steps {
		if steps[i].parted {
			head, tail = "", ""
			continue
		}
		raw := steps[i].set.raw
		nextTail := ""
		if raw.n > 0 {
			nextTail = raw.parts[raw.n]
		}
		x := difference{likenessOf(raw.parts[0], head), likenessOf(nextTail, tail)}
		head, tail = raw.parts[0], nextTail
		own.WriteString(head[x.head.begin:][:x.head.own])
		own.WriteString(tail[x.tail.begin:][:x.tail.own])
		d.steps[i] = x
	}
	d.own = own.String()
	return d
}

// differenceSize is what one takes up beside what is its own.
const differenceSize = 12

func (d *differences) bytes() int { return len(d.steps)*differenceSize + len(d.own) }

// labelsBefore are those of the series before, and where the target's begin. Where there is none, these are all.
type labelsBefore struct {
	text   string
	target int
}

// comes says whether a series begins with the labels that a difference makes of those before and with so many bytes of the target's, and where they
// end. What is left of others' own follows.
func (x *difference) comes(series, own string, target int, before *labelsBefore) (end int, rest string, ok bool) {
	head := x.head.length()
	end = head + target + x.tail.length()
	if len(series) < end {
		return 0, "", false
	}
	at, there := 0, 0
	if x.head.own > 0 || head != before.target {
		begin, n := int(x.head.begin), int(x.head.own)
		if series[:begin] != before.text[:begin] || series[begin:begin+n] != own[:n] {
			return 0, "", false
		}
		own = own[n:]
		at, there = begin+n, before.target-int(x.head.end)
	}
	behind := head + target + int(x.tail.begin)
	if series[at:behind] != before.text[there:there+behind-at] {
		return 0, "", false
	}
	if behind < end {
		n := int(x.tail.own)
		if series[behind:behind+n] != own[:n] || series[behind+n:end] != before.text[len(before.text)-int(x.tail.end):] {
			return 0, "", false
		}
		own = own[n:]
	}
	*before = labelsBefore{series[:end], head}
	return end, own, true
}
