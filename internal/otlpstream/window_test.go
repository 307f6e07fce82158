// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstream

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
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

// page returns a payload of metrics in stream form, with numbers that depend on the value.
func page(tb testing.TB, host string, value float64) []byte {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("host", host)
	sm := rm.ScopeMetrics().AppendEmpty()
	for i := range 50 {
		m := sm.Metrics().AppendEmpty()
		m.SetName(fmt.Sprintf("metric_%d", i))
		m.SetEmptyGauge().DataPoints().AppendEmpty().SetDoubleValue(value * float64(i))
	}
	data, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
	require.NoError(tb, err)
	require.NoError(tb, ToStream(data))
	return data
}

func TestDeltasComeOutAsPayloads(t *testing.T) {
	for _, keep := range []Keep{{History: 1 << 20}, {Window: LeastWindow, History: 20_000}, {Window: 70_000, History: 1}} {
		packer, unpacker := keep.NewPacker(), keep.NewUnpacker(1<<20)
		var wire, raw int
		for id := uint64(1); id <= 500; id++ {
			payload := page(t, fmt.Sprint("host-", id%7), float64(id/7))
			sent := Request{ID: id, Data: payload}
			packer.Pack(&sent)
			require.NotZero(t, sent.Delta)
			message := append(sent.AppendHeader(nil), sent.Data...)
			var got Request
			require.NoError(t, got.Parse(message))
			require.NoError(t, unpacker.Unpack(&got))
			want, err := InOTLPForm(payload)
			require.NoError(t, err)
			require.True(t, bytes.Equal(want, got.Data))
			require.Zero(t, got.Packed+got.Delta)
			wire, raw = wire+len(message), raw+len(payload)
		}
		if keep.History > 1000 {
			require.Less(t, wire, raw/15)
		}
		unpacker.Close()
	}
}

func TestWhatIsNotAskedForIsNotUnpacked(t *testing.T) {
	packed := func(k Keep) *Request {
		r := &Request{ID: 1, Data: page(t, "host", 1)}
		k.NewPacker().Pack(r)
		return r
	}
	require.ErrorContains(t, Keep{}.NewUnpacker(1<<20).Unpack(packed(Keep{History: 1 << 20})), "deltas")
	require.ErrorContains(t, Keep{Window: NoWindow}.NewUnpacker(1<<20).Unpack(packed(Keep{})), "packed")
	small := Keep{Window: LeastWindow}.NewUnpacker(1 << 20)
	defer small.Close()
	large := Request{ID: 1, Data: resources(strings.Repeat("x", 100), strings.Repeat("y", 100))}
	NewPacker().Pack(&large)
	require.ErrorIs(t, small.Unpack(&large), zstd.ErrWindowSizeExceeded)

	const shrunk = 3*LeastWindow + 16<<10
	require.Equal(t, shrunk+5, Keep{Window: LeastWindow, History: 5}.Memory())
	require.Equal(t, 3*FullWindow+16<<10, Keep{}.Memory())
	require.Zero(t, Keep{Window: NoWindow}.Memory())
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
	require.ErrorContains(t, r.Parse([]byte{0xb0, 1, 1}), "size")
}

func FuzzUnpack(f *testing.F) {
	r := Request{ID: 1, Data: resources("a", "b")}
	p := NewPacker()
	p.Pack(&r)
	f.Add(r.Data, r.Packed, uint64(0), r.Data, r.Packed, uint64(0))
	second := Request{ID: 2, Data: resources("a", "b", "c")}
	p.Pack(&second)
	f.Add(r.Data, r.Packed, uint64(0), second.Data, second.Packed, uint64(0))
	p = Keep{History: 1 << 16}.NewPacker()
	for i := range 3 {
		before := r
		r = Request{Data: page(f, "host", float64(i))}
		p.Pack(&r)
		f.Add(before.Data, before.Packed, before.Delta, r.Data, r.Packed, r.Delta)
	}
	f.Fuzz(func(t *testing.T, a []byte, an, ad uint64, b []byte, bn, bd uint64) {
		const limit = 1 << 16
		u := Keep{History: limit}.NewUnpacker(limit)
		defer u.Close()
		for _, r := range []Request{{Data: bytes.Clone(a), Packed: an, Delta: ad}, {Data: bytes.Clone(b), Packed: bn, Delta: bd}} {
			if u.Unpack(&r) != nil {
				return
			}
			require.LessOrEqual(t, len(r.Data), max(limit, len(a), len(b)))
		}
	})
}
