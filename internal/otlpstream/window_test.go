// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstream

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func resources(names ...string) (payload []byte) {
	for _, name := range names {
		payload = append(append(payload, streamTag, byte(len(name))), name...)
	}
	return payload
}

func TestWhatIsPackedComesOutAgain(t *testing.T) {
	packer, unpacker := NewPacker(), NewUnpacker(1<<20)
	defer unpacker.Close()
	random := rand.New(rand.NewPCG(1, 2))
	var message []byte
	var wire, raw int
	for id := uint64(1); id <= 2000; id++ {
		var names []string
		for i := range random.IntN(60) {
			names = append(names, fmt.Sprintf("resource %d of host-%d", i, random.IntN(1000)))
		}
		payload := resources(names...)
		sent := Request{ID: id, Items: 5, Data: payload}
		before := slices.Clone(payload)
		packer.Pack(&sent)
		require.Equal(t, before, payload, "payloads are shared")
		message = append(sent.AppendHeader(message[:0]), sent.Data...)

		var got Request
		require.NoError(t, got.Parse(message))
		require.NoError(t, unpacker.Unpack(&got))
		require.NoError(t, retag(before, streamTag, otlpTag))
		require.Equal(t, Request{ID: id, Items: 5, Data: before}, Request{ID: got.ID, Data: append([]byte(nil), got.Data...), Items: got.Items, Attempt: got.Attempt, Packed: got.Packed})
		wire, raw = wire+len(message), raw+len(payload)
	}
	require.Less(t, wire, raw/4)
	require.True(t, unpacker.Used())
}

func TestPayloadsThatAreNotPackedPassThrough(t *testing.T) {
	unpacker := NewUnpacker(10)
	r := Request{ID: 1, Data: []byte("anything")}
	require.NoError(t, unpacker.Unpack(&r))
	require.Equal(t, "anything", string(r.Data))
	require.False(t, unpacker.Used())
	unpacker.Close()

	empty := Request{ID: 1}
	NewPacker().Pack(&empty)
	require.Equal(t, Request{ID: 1}, empty)
}

func TestMalformedPacksAreErrors(t *testing.T) {
	packed := func() Request {
		r := Request{ID: 1, Data: resources("a resource")}
		NewPacker().Pack(&r)
		return r
	}
	for name, spoil := range map[string]func(*Request){
		"too large":  func(r *Request) { r.Packed = 1 << 40 },
		"too little": func(r *Request) { r.Packed++ },
		"too much":   func(r *Request) { r.Data = append(r.Data, packed().Data...) },
		"cut":        func(r *Request) { r.Data = r.Data[:len(r.Data)-3] },
		"no zstd":    func(r *Request) { r.Data = []byte("no zstd") },
		"no payload": func(r *Request) {
			*r = Request{Data: []byte("no resources")}
			NewPacker().Pack(r)
		},
	} {
		u := NewUnpacker(1000)
		r := packed()
		spoil(&r)
		require.Error(t, u.Unpack(&r), name)
		u.Close()
	}
	var r Request
	require.ErrorContains(t, r.Parse([]byte{0xa2, 1, 1, 'x'}), "size")
	require.ErrorContains(t, r.Parse([]byte{0xa8, 1, 1}), "size")
}

func FuzzUnpack(f *testing.F) {
	r := Request{ID: 1, Data: resources("a", "b")}
	p := NewPacker()
	p.Pack(&r)
	f.Add(r.Data, r.Packed, r.Data, r.Packed)
	second := Request{ID: 2, Data: resources("a", "b", "c")}
	p.Pack(&second)
	f.Add(r.Data, r.Packed, second.Data, second.Packed)
	f.Fuzz(func(t *testing.T, a []byte, an uint64, b []byte, bn uint64) {
		const limit = 1 << 16
		u := NewUnpacker(limit)
		defer u.Close()
		for _, r := range []Request{{Data: bytes.Clone(a), Packed: an}, {Data: bytes.Clone(b), Packed: bn}} {
			if u.Unpack(&r) != nil {
				return
			}
			require.LessOrEqual(t, len(r.Data), max(limit, len(a), len(b)))
		}
	})
}
