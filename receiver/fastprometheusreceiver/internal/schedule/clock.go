// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// tolerance is how late a run may begin and still be given the time it was due: at most 1 % of its interval and this.
// Regular timestamps compress better than honest ones.
const tolerance = 2 * time.Millisecond

// Runs begin on a grid of a hundredth of their interval, and no coarser than maxGrain: a process that wakes up for ten
// runs at once spends far less on waking than one that wakes up for each, and targets that share a timestamp compress
// better.
const (
	grains   = 100
	maxGrain = 100 * time.Millisecond
)

// maxParked is how many goroutines wait for the next run, with the stacks that the last one needed. More than these
// come and go.
const maxParked = 16

// A Clock runs tasks. Stop ends it.
type Clock struct {
	start time.Time
	limit int
	ready chan *Task // to goroutines that are parked
	wake  chan struct{}
	quit  chan struct{}
	runs  sync.WaitGroup
	loop  sync.WaitGroup

	mu      sync.Mutex
	tasks   queue
	running int
	parked  int
	offset  time.Duration // of the wall clock from this one, in Unix nanoseconds
	stopped bool
}

// A Task is something a Clock does. Its fields are the Clock's.
type Task struct {
	run      func(at time.Time)
	interval time.Duration // 0: once
	due      time.Duration // since the Clock's start
	index    int           // in the heap; -1 outside
	canceled bool
}

// New returns a running Clock. No more than limit tasks run at a time; 0 means no limit.
func New(limit int) *Clock {
	now := time.Now()
	c := &Clock{
		start: now, offset: time.Duration(now.UnixNano()), limit: limit,
		ready: make(chan *Task), wake: make(chan struct{}, 1), quit: make(chan struct{}),
	}
	c.loop.Go(c.tick)
	return c
}

// Every runs a task at a time of the wall clock, and from then on each interval. A run that lasts beyond its interval is
// followed by the next at once; more ticks than one are not made up for. A task never runs twice at a time.
//
// A run is given the time it was due if it begins within the tolerance, else the time at which it begins.
func (c *Clock) Every(interval time.Duration, first time.Time, run func(at time.Time)) *Task {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.follow(time.Now())
	return c.add(&Task{run: run, interval: interval, due: time.Duration(first.UnixNano()) - c.offset})
}

// Once runs a task after a delay. It is given the time at which it begins.
func (c *Clock) Once(delay time.Duration, run func(at time.Time)) *Task {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.add(&Task{run: run, due: c.now() + max(delay, 0)})
}

func (c *Clock) add(t *Task) *Task {
	t.index = -1
	c.push(t)
	return t
}

// Cancel keeps a task from running again. A run that has begun goes on. It returns the time at which the task would
// have run next, and whether it was waiting for it.
func (c *Clock) Cancel(t *Task) (next time.Time, waiting bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.follow(time.Now())
	due := t.due
	if waiting = t.index >= 0; waiting {
		heap.Remove(&c.tasks, t.index)
	} else {
		due += t.interval
	}
	t.canceled = true
	return c.wall(due), waiting
}

// Stop cancels all tasks and waits, within ctx, for those that run.
func (c *Clock) Stop(ctx context.Context) error {
	c.mu.Lock()
	if !c.stopped {
		c.stopped = true
		c.tasks = nil
		close(c.quit)
	}
	c.mu.Unlock()
	c.loop.Wait()

	done := make(chan struct{})
	go func() {
		c.runs.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tick starts what is due and sleeps until something is.
func (c *Clock) tick() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(c.startDue())
		select {
		case <-timer.C:
		case <-c.wake:
		case <-c.quit:
			return
		}
	}
}

// startDue returns how long there is nothing to do, unless c.wake says otherwise.
func (c *Clock) startDue() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	for len(c.tasks) > 0 && (c.limit == 0 || c.running < c.limit) {
		t := c.tasks[0]
		if t.due > now {
			return t.due - now
		}
		heap.Pop(&c.tasks)
		c.running++
		select {
		case c.ready <- t:
		default:
			c.runs.Go(func() { c.work(t) })
		}
	}
	return time.Hour
}

// work runs a task, and further ones as long as there is room to wait for them.
func (c *Clock) work(t *Task) {
	for {
		c.run(t)
		if !c.park() {
			return
		}
		select {
		case t = <-c.ready:
			c.unpark()
		case <-c.quit:
			return
		}
	}
}

func (c *Clock) park() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parked == maxParked {
		return false
	}
	c.parked++
	return true
}

func (c *Clock) unpark() {
	c.mu.Lock()
	c.parked--
	c.mu.Unlock()
}

func (c *Clock) run(t *Task) {
	at, began := c.stamp(t)
	t.run(at)

	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running == c.limit {
		c.alarm() // others may be waiting for a place
	}
	c.running--
	if t.canceled || t.interval == 0 {
		return
	}
	// Ticks that passed before it began are its own: the next has a later time than this one's. Of those that passed
	// since, one is made up for, the latest.
	t.due += max(began-t.due, 0).Truncate(t.interval) + t.interval
	t.due += max(c.now()-t.due, 0).Truncate(t.interval)
	c.push(t)
}

// stamp returns the timestamp of a run that begins now, and when that is since the Clock's start.
func (c *Clock) stamp(t *Task) (at time.Time, since time.Duration) {
	now := time.Now()
	since = now.Sub(c.start)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.follow(now)
	if t.interval == 0 || since-t.due > min(t.interval/100, tolerance) {
		return now.Round(0), since
	}
	return c.wall(t.due), since
}

// follow takes up where the wall clock is. The two drift apart only when someone sets it, which may be years: machines
// without a clock of their own start somewhere in the past.
func (c *Clock) follow(now time.Time) {
	if offset := time.Duration(now.UnixNano()) - now.Sub(c.start); (offset - c.offset).Abs() > tolerance {
		c.offset = offset
	}
}

func (c *Clock) push(t *Task) {
	if c.stopped {
		return
	}
	heap.Push(&c.tasks, t)
	if t.index == 0 {
		c.alarm()
	}
}

func (c *Clock) alarm() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *Clock) now() time.Duration { return time.Since(c.start) }

func (c *Clock) wall(due time.Duration) time.Time { return time.Unix(0, int64(c.offset+due)) }

// Next spreads tasks over their interval: it returns the next time at the point of the interval that hash stands for,
// on the grid. Points are fixed in time, so a task keeps its own across restarts.
func Next(now time.Time, interval time.Duration, hash uint64) time.Time {
	point := time.Duration(hash % uint64(interval)).Truncate(min(interval/grains, maxGrain))
	wait := interval - (time.Duration(now.UnixNano())-point)%interval
	return now.Add(wait % interval)
}

type queue []*Task

func (q *queue) Len() int           { return len(*q) }
func (q *queue) Less(i, j int) bool { return (*q)[i].due < (*q)[j].due }

func (q *queue) Swap(i, j int) {
	tasks := *q
	tasks[i], tasks[j] = tasks[j], tasks[i]
	tasks[i].index, tasks[j].index = i, j
}

func (q *queue) Push(x any) {
	t := x.(*Task)
	t.index = len(*q)
	*q = append(*q, t)
}

func (q *queue) Pop() any {
	last := len(*q) - 1
	t := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	t.index = -1
	return t
}
