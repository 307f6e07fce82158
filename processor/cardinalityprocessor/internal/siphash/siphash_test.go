// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package siphash

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// reference is SipHash as in its paper, with c rounds per word and d at the end.
func reference(c, d int, key [KeySize]byte, message []byte) uint64 {
	k0, k1 := binary.LittleEndian.Uint64(key[:8]), binary.LittleEndian.Uint64(key[8:])
	v := [4]uint64{k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573}
	rounds := func(n int) {
		for range n {
			v[0] += v[1]
			v[1] = bits.RotateLeft64(v[1], 13)
			v[1] ^= v[0]
			v[0] = bits.RotateLeft64(v[0], 32)
			v[2] += v[3]
			v[3] = bits.RotateLeft64(v[3], 16)
			v[3] ^= v[2]
			v[0] += v[3]
			v[3] = bits.RotateLeft64(v[3], 21)
			v[3] ^= v[0]
			v[2] += v[1]
			v[1] = bits.RotateLeft64(v[1], 17)
			v[1] ^= v[2]
			v[2] = bits.RotateLeft64(v[2], 32)
		}
	}
	padded := append([]byte{}, message...)
	for len(padded)%8 != 7 {
		padded = append(padded, 0)
	}
	padded = append(padded, byte(len(message)))
	for ; len(padded) > 0; padded = padded[8:] {
		word := binary.LittleEndian.Uint64(padded)
		v[3] ^= word
		rounds(c)
		v[0] ^= word
	}
	v[2] ^= 0xff
	rounds(d)
	return v[0] ^ v[1] ^ v[2] ^ v[3]
}

func testKey() (key [KeySize]byte) {
	for i := range key {
		key[i] = byte(i)
	}
	return key
}

// TestReference checks the paper's example of SipHash-2-4.
func TestReference(t *testing.T) {
	var message []byte
	for i := range 15 {
		message = append(message, byte(i))
	}
	require.Equal(t, uint64(0xa129ca6149be45e5), reference(2, 4, testKey(), message))
}

type sequence []byte

func (s sequence) Len() int      { return len(s) }
func (s sequence) At(i int) byte { return s[i] }

func TestAllLengths(t *testing.T) {
	for _, key := range [][KeySize]byte{testKey(), {}, {0xff, 15: 0x80}} {
		k := NewKey(key)
		require.Equal(t, key, k.Bytes())
		var message []byte
		for i := range 600 {
			want := reference(1, 3, key, message)
			require.Equal(t, want, k.String(string(message)), "%d bytes", i)
			require.Equal(t, want, OfBytes(k, sequence(message)), "%d bytes", i)
			if i == 8 {
				require.Equal(t, want, k.Word(binary.LittleEndian.Uint64(message)))
			}
			message = append(message, byte(i*131))
		}
	}
}

func BenchmarkString(b *testing.B) {
	k := NewKey(testKey())
	for _, n := range []int{4, 8, 20, 40, 100} {
		s := strings.Repeat("x", n)
		b.Run(fmt.Sprintf("bytes=%d", n), func(b *testing.B) {
			var sum uint64
			for b.Loop() {
				sum += k.String(s)
			}
			require.NotZero(b, sum)
		})
	}
}
