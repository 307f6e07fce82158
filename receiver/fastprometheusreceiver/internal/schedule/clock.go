// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"container/heap"
	"context"
	"slices"
	"sync"
	"time"
)

// tolerance is how late a run may begin and still get the time at which it was due: at most 1 % of its interval and
// this. Regular timestamps compress better than exact ones.
const tolerance = 2 * time.Millisecond

// Runs begin at multiples of a hundredth of their interval, or of maxGrain if that is less: waking up once for ten runs
// costs far less than ten times for one, and targets that share a timestamp compress better.
const (
	grains   = 100
	maxGrain = 100 * time.Millisecond
)

// maxParked is how many goroutines wait for the next run, with the stacks that they have grown. Further ones end after
// their run.
const maxParked = 16

// A Clock runs tasks. Stop ends it.
type Clock struct {
	start time.Time
	limit int
	ready chan *Task // for goroutines that are parked
	wake  chan struct{}
	quit  chan struct{}
	runs  sync.WaitGroup
	loop  sync.WaitGroup

	mu      sync.Mutex
	tasks   queue         // ordered by next tick, including those that run or wait for a place
	waiting []*Task       // waiting for a place, in the order in which they were due
	late    []*Task       // whose last run took too long, in the order in which they may begin
	missed  []*Task       // whose miss is to be called, once for each tick
	rate    float64       // runs per second, if each task keeps its interval
	turn    time.Duration // when the next late run may begin
	running int
	parked  int
	offset  time.Duration // from the wall clock to this one, in Unix nanoseconds
	stopped bool
}

// A Task is something that a Clock runs. Its fields are guarded by the Clock.
type Task struct {
	run      func(at time.Time)
	miss     func()        // may be nil
	interval time.Duration // 0: once
	due      time.Duration // the next tick, since the Clock's start
	then     time.Duration // the one after it, if that is not an interval later, else 0
	tick     time.Duration // the tick of the run that is in progress or waits for a place
	state    state
	passed   int           // ticks since the run began
	turn     time.Duration // when it may begin, if it is late
	index    int           // in the heap; -1 outside
	canceled bool
}

// state is what a task is doing.
type state uint8

const (
	idle    state = iota // until its next tick
	waiting              // for a place
	running
)

// New returns a running Clock. No more than limit tasks run at a time; 0 means no limit. Those that wait for a place get
// one in the order in which they were due.
func New(limit int) *Clock {
	now := time.Now()
	c := &Clock{
		start: now, offset: time.Duration(now.UnixNano()), limit: limit,
		ready: make(chan *Task), wake: make(chan struct{}, 1), quit: make(chan struct{}),
	}
	c.loop.Go(c.loopUntilStopped)
	return c
}

// Every runs a task at a time of the wall clock, and from then on each interval. It never runs twice at the same time.
// If a run is still in progress at the next tick, another one follows when it ends; further ticks are skipped. When
// very many delayed runs end at the same moment, those that follow begin one after another, at twice the usual rate of
// all tasks.
//
// miss is called for every tick that is skipped, soon after the tick or when the run that delayed it ends. It may be
// nil, and must not block.
//
// A run gets the time at which it was due if it begins within the tolerance, else the time at which it begins.
func (c *Clock) Every(interval time.Duration, first time.Time, run func(at time.Time), miss func()) *Task {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.follow(time.Now())
	c.rate += 1 / interval.Seconds()
	return c.add(&Task{run: run, miss: miss, interval: interval, due: time.Duration(first.UnixNano()) - c.offset})
}

// Ahead makes a task that waits for its next tick run at an earlier time, too.
func (c *Clock) Ahead(t *Task, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.follow(time.Now())
	due := time.Duration(at.UnixNano()) - c.offset
	if t.index < 0 || t.then != 0 || t.state != idle || due >= t.due {
		return
	}
	t.due, t.then = due, t.due
	heap.Fix(&c.tasks, t.index)
	if t.index == 0 {
		c.alarm()
	}
}

// Once runs a task after a delay. It gets the time at which it begins.
func (c *Clock) Once(delay time.Duration, run func(at time.Time)) *Task {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.add(&Task{run: run, due: c.now() + max(delay, 0)})
}

func (c *Clock) add(t *Task) *Task {
	t.index = -1
	if c.stopped {
		return t
	}
	heap.Push(&c.tasks, t)
	if t.index == 0 {
		c.alarm()
	}
	return t
}

// Cancel keeps a task from running again. A run that has begun continues. It returns the time at which the task would
// have run next, and whether it was waiting for it.
func (c *Clock) Cancel(t *Task) (next time.Time, wasWaiting bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.follow(time.Now())
	if t.index >= 0 {
		heap.Remove(&c.tasks, t.index)
	}
	if !t.canceled && t.interval > 0 {
		c.rate -= 1 / t.interval.Seconds()
	}
	t.canceled = true
	switch t.state {
	case idle:
		return c.wall(t.due), true
	case waiting:
		isTask := func(other *Task) bool { return other == t }
		c.waiting, c.late = slices.DeleteFunc(c.waiting, isTask), slices.DeleteFunc(c.late, isTask)
		t.state = idle
		return c.wall(t.tick), true
	default:
		return c.wall(min(t.tick+t.interval, t.due)), false
	}
}

// Stop cancels all tasks and waits, within ctx, for those that run.
func (c *Clock) Stop(ctx context.Context) error {
	c.mu.Lock()
	if !c.stopped {
		c.stopped = true
		for _, t := range c.tasks {
			t.index = -1
		}
		c.tasks, c.waiting, c.late = nil, nil, nil
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

// loopUntilStopped starts what is due and sleeps until something is.
func (c *Clock) loopUntilStopped() {
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

// startDue starts what is due, and returns the time until the next tick, at which c.wake may come first.
func (c *Clock) startDue() time.Duration {
	c.mu.Lock()
	now := c.now()
	for len(c.tasks) > 0 && c.tasks[0].due <= now {
		c.tick(c.tasks[0])
	}
	n := 0
	for n < len(c.late) && c.late[n].turn <= now {
		n++
	}
	c.waiting = append(c.waiting, c.late[:n]...)
	c.late = slices.Delete(c.late, 0, n)
	c.fillPlaces()
	rest := time.Hour
	if len(c.tasks) > 0 {
		rest = c.tasks[0].due - now
	}
	if len(c.late) > 0 {
		rest = min(rest, c.late[0].turn-now)
	}
	missed := c.missed
	c.missed = nil
	c.mu.Unlock()
	tell(missed)
	return rest
}

// tell calls miss of tasks whose tick was skipped.
func tell(missed []*Task) {
	for _, t := range missed {
		if t.miss != nil {
			t.miss()
		}
	}
}

// tick handles the task's next tick, whatever the task is doing.
func (c *Clock) tick(t *Task) {
	tick := t.due
	if t.interval == 0 {
		heap.Remove(&c.tasks, t.index)
	} else {
		if t.due += t.interval; t.then != 0 {
			t.due, t.then = t.then, 0
		}
		heap.Fix(&c.tasks, t.index)
	}
	switch t.state {
	case idle:
		t.tick, t.state = tick, waiting
		c.waiting = append(c.waiting, t)
	case waiting: // its run, once there is a place, is the one for this tick, too
		c.missed = append(c.missed, t)
	case running:
		if t.passed++; t.passed > 1 {
			c.missed = append(c.missed, t)
		}
	}
}

// tickUntil handles the ticks of a running task that the loop has not reached yet.
func (c *Clock) tickUntil(t *Task, now time.Duration) {
	for t.interval > 0 && t.index >= 0 && t.due <= now {
		c.tick(t)
	}
}

// fillPlaces starts tasks that wait, as far as there are places.
func (c *Clock) fillPlaces() {
	n := 0
	for n < len(c.waiting) && (c.limit == 0 || c.running < c.limit) {
		t := c.waiting[n]
		n++
		c.running++
		t.state, t.passed = running, 0
		select {
		case c.ready <- t:
		default:
			c.runs.Go(func() { c.work(t) })
		}
	}
	c.waiting = slices.Delete(c.waiting, 0, n)
}

// work runs a task, and further ones as long as its goroutine may park between them.
func (c *Clock) work(t *Task) {
	for {
		at := c.stamp(t)
		t.run(at)
		c.finish(t)
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

// finish handles the end of a run.
func (c *Clock) finish(t *Task) {
	c.mu.Lock()
	now := c.now()
	c.tickUntil(t, now)
	t.state = idle
	c.running--
	if t.passed > 0 && !t.canceled && !c.stopped {
		t.tick, t.state = t.due-t.interval, waiting
		t.turn = max(now, c.turn)
		c.turn = t.turn + time.Duration(float64(time.Second)/(2*c.rate))
		c.late = append(c.late, t)
	}
	if len(c.waiting)+len(c.late)+len(c.missed) > 0 {
		c.alarm()
	}
	c.mu.Unlock()
}

// isOnTime reports whether a run that begins this late still gets the time at which it was due.
func (*Clock) isOnTime(t *Task, late time.Duration) bool {
	return late <= min(t.interval/100, tolerance)
}

// stamp returns the timestamp of a run that begins now. Ticks that passed before belong to the run: the next one has a
// later time.
func (c *Clock) stamp(t *Task) time.Time {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.follow(now)
	since := now.Sub(c.start)
	if t.interval > 0 {
		c.tickUntil(t, since)
		if t.passed > 0 {
			t.passed = 0
			c.missed = append(c.missed, t)
			c.alarm()
		}
		if c.isOnTime(t, since-t.tick) {
			return c.wall(t.tick)
		}
	}
	return now.Round(0)
}

// follow adjusts to the wall clock. The two differ only when somebody sets the clock, possibly by years: machines
// without a battery start somewhere in the past.
func (c *Clock) follow(now time.Time) {
	if offset := time.Duration(now.UnixNano()) - now.Sub(c.start); (offset - c.offset).Abs() > tolerance {
		c.offset = offset
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

// Next spreads tasks over their interval: it returns the next time, on the grid, at the point of the interval that hash
// selects. Points are fixed in time, so a task keeps its point across restarts.
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
