// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package websocket

import "crypto/subtle"

const keySize = 4

// keystream is a frame's key repeated, so that many bytes are masked at once.
type keystream struct {
	keys [streamSize + keySize]byte
	at   int // position in the key
}

const streamSize = 1 << 10

// begin begins a frame of the given length in bytes.
func (k *keystream) begin(key [keySize]byte, length int) {
	k.at = 0
	for i := 0; i < len(k.keys) && i < length+keySize; i += keySize {
		copy(k.keys[i:i+keySize], key[:])
	}
}

// mask masks or unmasks the next bytes of the frame, which is the same operation.
func (k *keystream) mask(dst, src []byte) {
	for len(src) > 0 {
		n := subtle.XORBytes(dst, src, k.keys[k.at:k.at+streamSize])
		dst, src = dst[n:], src[n:]
		k.at = (k.at + n) % keySize
	}
}
