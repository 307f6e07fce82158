// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package decode

const (
	// usual is how much the messages of a payload weigh at the most for each of its bytes, if they hold what is of use, and little
	// is how much more they may weigh in all.
	usual, little = 8, 16 << 10
)

// Room is the most that the messages of a payload may weigh: a multiple that leaves room for points with a time and nothing
// else, and not for those that have nothing at all.
func Room(size int) int { return 1<<20 + 32*size }

// Charge is of how many bytes a payload usually is whose messages weigh that much.
func Charge(weight int) int { return max(0, weight-little) / usual }

// fit weighs a message before it is decoded. What weighs more than what is of use, up to the end of the message, is not for here: it is
// noticed before much is made of it. The message is a part of the payload which has all that follows it in its capacity.
func (d *Decoder) fit(message []byte, weight int) bool {
	d.weight += weight
	return d.fits(message, 0)
}

// fits reports whether what is in a message may weigh that much.
func (d *Decoder) fits(message []byte, weight int) bool {
	return d.weight+weight <= little+usual*(d.end-cap(message)+len(message))
}

// ahead makes room for all messages of a field of a message at once.
func ahead[L interface{ EnsureCapacity(n int) }](d *Decoder, message []byte, tag uint64, weight int, list L) (ok bool) {
	c := cursor{message: message}
	n := c.count(tag)
	if !d.fits(message, n*weight) {
		return false
	}
	list.EnsureCapacity(n)
	return true
}
