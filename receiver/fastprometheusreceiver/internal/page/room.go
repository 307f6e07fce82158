// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"sync/atomic"
)

// A Room is the memory that the series of all targets, and all pages that are being read, may take together. A nil Room
// has no limit.
//
// A limit for each page does not suffice: pages of many targets are read at the same time. When there is no room, pages
// whose series are known go on, and so do those with little that is new: each target may exceed the Room by littlePage
// for each scrape until a sweep.
type Room struct {
	most     int64
	catalogs atomic.Int64 // what is known of series
	pages    atomic.Int64 // what pages that are being read take besides
}

// NewRoom returns a Room of that many bytes.
func NewRoom(most int64) *Room { return &Room{most: most} }

// isFull reports whether nothing more may come.
func (r *Room) isFull() bool { return r != nil && r.catalogs.Load()+r.pages.Load() > r.most }

// A RoomError is the size of a Room that had no room for a page.
type RoomError int64

func (e RoomError) Error() string {
	return fmt.Sprintf("cannot read page: the series of all targets would take more memory than there is for them (%d bytes): scrape less, or with more memory", int64(e))
}

// Is makes the error match ErrMemory.
func (e RoomError) Is(target error) bool { return target == ErrMemory }

const (
	// littlePage is how much a page may take whether or not there is room.
	littlePage = 256 << 10
	// roomStep is how much a page takes from the room at once.
	roomStep = 64 << 10
)

// enter takes room for what a page has come to take besides the catalog, and returns an error if there is none.
func (b *budget) enter() error {
	if b.room == nil {
		return nil
	}
	if more := b.apart - b.entered; more >= roomStep {
		b.room.pages.Add(more)
		b.entered = b.apart
	}
	if b.begun-b.left-min(b.passing, b.usual) <= littlePage || !b.room.isFull() {
		return nil
	}
	return RoomError(b.room.most)
}

// leave gives back what the page took.
func (b *budget) leave() {
	if b.room != nil {
		b.room.pages.Add(-b.entered)
		b.entered = 0
	}
}

// settleUp tells the room what the catalog takes by now.
func (c *cohort) settleUp() {
	if r := c.job.cfg.Room; r != nil {
		now := c.Held()
		r.catalogs.Add(now - c.told)
		c.told = now
	}
}

// depart tells the room that the catalog ends with its last target.
func (c *cohort) depart() {
	if r := c.job.cfg.Room; r != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		r.catalogs.Add(-c.told)
		c.told = 0
	}
}

// isCramped reports whether memory is short, and the catalog has grown by enough since the last sweep for another to
// free some.
func (c *cohort) isCramped() bool {
	return c.job.cfg.Room.isFull() && c.Held() > c.swept+c.swept/8+littlePage
}
