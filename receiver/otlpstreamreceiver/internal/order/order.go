// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package order makes requests about the same resources wait for each other.
package order

import (
	"hash/maphash"

	"google.golang.org/protobuf/encoding/protowire"
)

// Order makes the requests of a stream wait for earlier ones about the same resources; all others may overtake each
// other. It belongs to the receiving goroutine, except for the state of its turns. A nil Order keeps no order.
type Order struct {
	seed maphash.Seed
	// last is the last request about each resource, and barrier the last one about too many resources, which nobody
	// overtakes. Finished ones stay until they are met, or swept.
	last    map[uint64]*Turn
	barrier *Turn
	swept   int // number of entries after the last sweep
}

// Turn is a request's place in the order.
type Turn struct {
	before []*Turn
	done   chan struct{} // closed when the pipeline has answered
}

// MaxResources is how many resources of a request are told apart.
const MaxResources = 4096

// New returns an empty order.
func New() *Order {
	return &Order{seed: maphash.MakeSeed(), last: map[uint64]*Turn{}}
}

// Next gives a request its turn, in the order of arrival.
func (o *Order) Next(data []byte) *Turn {
	if o == nil {
		return nil
	}
	t := &Turn{done: make(chan struct{})}
	t.after(o.barrier)
	keys, ok := o.resources(data)
	if !ok {
		for _, other := range o.last {
			t.after(other)
		}
		o.barrier = t
		clear(o.last)
		return t
	}
	for _, key := range keys {
		t.after(o.last[key])
		o.last[key] = t
	}
	o.sweep()
	return t
}

// sweep forgets finished requests, each time the number of resources has doubled.
func (o *Order) sweep() {
	if len(o.last) < 2*o.swept+64 {
		return
	}
	for key, t := range o.last {
		if t.isDone() {
			delete(o.last, key)
		}
	}
	o.swept = len(o.last)
}

// resources returns hashes of the resources of a payload in OTLP form; none if there are too many, or it is malformed.
func (o *Order) resources(data []byte) (keys []uint64, ok bool) {
	const fieldResource = 1 // of a payload, and in it, of what belongs to a resource
	for len(data) > 0 {
		number, _, tag := protowire.ConsumeTag(data)
		if tag < 0 || len(keys) == MaxResources {
			return nil, false
		}
		content, n := protowire.ConsumeBytes(data[tag:])
		if n < 0 {
			return nil, false
		}
		data = data[tag+n:]
		if number != fieldResource { // such as the dictionary of profiles
			continue
		}
		var resource []byte
		for len(content) > 0 { // it usually comes first
			number, kind, tag := protowire.ConsumeTag(content)
			if tag < 0 {
				return nil, false
			}
			n := protowire.ConsumeFieldValue(number, kind, content[tag:])
			if n < 0 {
				return nil, false
			}
			if number == fieldResource && kind == protowire.BytesType {
				resource, _ = protowire.ConsumeBytes(content[tag:])
				break
			}
			content = content[tag+n:]
		}
		keys = append(keys, maphash.Bytes(o.seed, resource))
	}
	return keys, true
}

// after makes a request wait for another, unless that is finished.
func (t *Turn) after(other *Turn) {
	if other == nil || other == t || other.isDone() || len(t.before) > 0 && t.before[len(t.before)-1] == other {
		return
	}
	t.before = append(t.before, other)
}

func (t *Turn) isDone() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// Wait returns when it is the request's turn.
func (t *Turn) Wait() {
	if t == nil {
		return
	}
	for _, other := range t.before {
		<-other.done
	}
	t.before = nil
}

// End lets waiting requests continue.
func (t *Turn) End() {
	if t != nil {
		close(t.done)
	}
}
