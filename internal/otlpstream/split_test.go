// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstream

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
)

// message is a message of an OTLP payload: a text of its own, and nested messages.
type message struct {
	text   string
	field  protowire.Number // of the nested messages
	within []message
}

func (m message) encode() (b []byte) {
	// Common fields may be on both sides of the divided ones, like schema URLs.
	b = protowire.AppendString(protowire.AppendTag(nil, 15, protowire.BytesType), m.text)
	for _, w := range m.within {
		b = protowire.AppendBytes(protowire.AppendTag(b, m.field, protowire.BytesType), w.encode())
	}
	return protowire.AppendVarint(protowire.AppendTag(b, 14, protowire.VarintType), uint64(len(m.text)))
}

// random returns a message with a maximum number of nested levels.
func random(r *rand.Rand, n nesting, name string) message {
	m := message{text: name + strings.Repeat("x", r.IntN(30))}
	if len(n) == 0 {
		return m
	}
	m.field = n[0][r.IntN(len(n[0]))]
	count := r.IntN(6)
	if n[0][0] == whole {
		m.field = n[0][1]
	} else if len(n[0]) > 1 {
		count = 1 // one of several
	}
	for i := range count {
		m.within = append(m.within, random(r, n[1:], fmt.Sprintf("%s/%d", name, i)))
	}
	return m
}

// paths lists the items of a message, each with everything that contains it.
func paths(t *testing.T, n nesting, encoded []byte, above string) (all []string) {
	common, ok := n.commonOrAll(encoded)
	require.True(t, ok)
	above += "|" + string(common)
	if len(n) == 0 {
		return []string{above}
	}
	for rest := encoded; len(rest) > 0; {
		_, content, size := n.next(rest)
		require.Positive(t, size)
		if content != nil {
			all = append(all, paths(t, n[1:], content, above)...)
		}
		rest = rest[size:]
	}
	return all
}

func (n nesting) commonOrAll(encoded []byte) ([]byte, bool) {
	if len(n) == 0 {
		return encoded, true
	}
	return n.common(encoded)
}

func TestSplitPayloadsHoldTheSameItems(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, signal := range Signals() {
		n := nestings[signal]
		for range 500 {
			var payload []byte
			for i := range 1 + r.IntN(5) {
				payload = protowire.AppendTag(payload, fieldData, protowire.BytesType)
				payload = protowire.AppendBytes(payload, random(r, n[1:], fmt.Sprint(i)).encode())
			}
			before := slices.Clone(payload)
			limit := 1 + r.IntN(len(payload)+100)
			want := paths(t, n, payload, "")
			require.Len(t, want, n.count(payload))
			var got []string
			for part, items := range Split(signal, payload, limit) {
				divisible := n
				if last := len(n) - 1; n[last][0] == whole {
					divisible = n[:last]
				}
				if divisible.count(part) > 1 {
					require.LessOrEqual(t, len(part), limit)
				}
				in := paths(t, n, part, "")
				require.Len(t, in, items)
				got = append(got, in...)
			}
			require.Equal(t, want, got, "in order, each with all it was in")
			require.Equal(t, before, payload)
		}
	}
}

func TestSplitMakesNoMorePartsThanItHasTo(t *testing.T) {
	payload := resources(slices.Repeat([]string{"12345678"}, 100)...)
	var sizes []int
	for part := range Split(Traces, payload, 95) {
		sizes = append(sizes, len(part))
	}
	require.Equal(t, append(slices.Repeat([]int{90}, 11), 10), sizes)
}

func FuzzSplit(f *testing.F) {
	f.Add(uint8(0), resources("a", "bcd"), 4)
	f.Add(uint8(1), random(rand.New(rand.NewPCG(1, 1)), nestings[Metrics], "m").encode(), 10)
	f.Fuzz(func(t *testing.T, signal uint8, payload []byte, limit int) {
		if len(payload) > 1<<10 {
			return // many items, each alone with all common fields: correct, but slow
		}
		s := Signals()[int(signal)%len(Signals())]
		items := 0
		for part, n := range Split(s, payload, limit) {
			require.Equal(t, n, nestings[s].count(part))
			items += n
		}
		require.LessOrEqual(t, items, nestings[s].count(payload))
	})
}
