// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package decode

const (
	// usual is the most that the messages of a useful payload weigh for each of its bytes, and little is how much more
	// they may weigh in all.
	usual, little = 8, 16 << 10
)

// Room returns the most that the messages of a payload may weigh: enough for points with only a time, but not for empty
// ones.
func Room(size int) int { return 1<<20 + 32*size }

// Charge returns the usual size of a payload whose messages have the given weight.
func Charge(weight int) int { return max(0, weight-little) / usual }

// fit weighs a message before it is decoded. If it weighs more than useful data up to its end would, it is left to the
// complete decoder: that shows before much memory is taken. The message must be a part of the payload that has the rest
// of it in its capacity.
func (d *Decoder) fit(message []byte, weight int) bool {
	d.weight += weight
	return d.fits(message, 0)
}

// fits reports whether the content of a message may weigh that much.
func (d *Decoder) fits(message []byte, weight int) bool {
	return d.weight+weight <= little+usual*(d.end-cap(message)+len(message))
}

// ahead reserves capacity for all messages of a field at once.
func ahead[L interface{ EnsureCapacity(n int) }](d *Decoder, message []byte, tag uint64, weight int, list L) (ok bool) {
	c := cursor{message: message}
	n := c.count(tag)
	if !d.fits(message, n*weight) {
		return false
	}
	list.EnsureCapacity(n)
	return true
}
