// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package series decides which series have a place, and remembers them.
package series

import (
	"runtime"
	"slices"
	"sync/atomic"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/moment"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

// A Limiter decides which series are admitted. Its time is a Moment, which Sweep advances.
//
// An admitted series stays admitted until it was silent for IdleEpochs: newcomers never push it out.
type Limiter struct {
	Series *Table
	Values *Table // of labels with a limit
	Groups *registry

	Watched bool // statistics are on

	clock  atomic.Uint64 // a moment
	cursor int           // the next shard to sweep
	gone   []uint32      // sets of series that expired in the last sweep

	Patience int64 // how long a newcomer waits when a pace has no room, in ns

	Admitted, Expired, Ended atomic.Int64

	// Losses counts series that had a place and lost it in other ways than by ending or being idle.
	Losses atomic.Uint64

	// Unplaced counts series that came into the table without taking a place.
	Unplaced atomic.Uint64
}

const (
	// KeptEpochs must pass before something expires: one more than an idle timeout, because it may have been seen at
	// the end of its last epoch, and another one because a batch may have begun in the epoch before.
	KeptEpochs = moment.IdleEpochs + 1
	// KeptValueEpochs is the same for label values, which must expire after all series that have them, even if those
	// are swept last: otherwise such a series could come back to find another value in its value's place.
	KeptValueEpochs = KeptEpochs + 2
)

// New returns a limiter for the given numbers of sets of groups, and of series.
func New(maxGroups, maxSeries int) *Limiter {
	return &Limiter{Series: NewTable(maxSeries), Values: NewTable(maxSeries), Groups: NewRegistry(maxGroups, maxSeries)}
}

// Now is the current time.
func (l *Limiter) Now() moment.Moment { return moment.Moment(l.clock.Load()) }

// Sighting is the input about a point. It is reused from point to point.
type Sighting struct {
	Policy     *policy.Policy
	Hash       *ident.Hasher
	Owner      policy.Owner
	Limits     []*policy.Limit // those that match the metric
	Moment     moment.Moment
	Now        int64
	Attributes pcommon.Map
	Collapsed  []ident.LabelAt // labels whose values no longer count
	Output     bool            // the series is made here
	Promoted   bool            // it is a member of one that is
	Class      amount.Class
	NoValue    bool
	Chosen     moment.Moment // when statistics began to count its metric's labels, if that is recent
	Due        bool          // statistics must be told about it
	Missed     bool          // because it last came before that
	Fresh      bool          // it has just got its place
	AtOnce     bool          // it was refused because a group is full, and was not known

	Parted map[uint64]uint32 // where series are that left, once the batch is accepted

	Places []Place
	Values []labelValue
}

// labelValue is the value of a label with a limit.
type labelValue struct {
	limit *policy.Limit
	label int
	side  ident.Side
	place Place
	fp    uint64
}

// Verdict is the limit that rejects a series, and why. Without a limit it is admitted.
type Verdict struct {
	Limit  *policy.Limit
	Reason policy.Reason
	Label  ident.LabelAt // for reasonLabel

	Waits   bool // it should wait for its fair share
	Last    LastPoint
	Step    Step // to take once the batch is accepted
	Counted bool // it once had a place of its own
}

// Known is the fast path: it returns the set of a series that is admitted if nothing has changed, else nil.
func (l *Limiter) Known(fp uint64, x *Sighting) *Set { return l.KnownAt(fp, Nowhere, x) }

// KnownAt is Known for a fingerprint whose table line was prefetched.
func (l *Limiter) KnownAt(fp uint64, line int32, x *Sighting) *Set {
	id, since := l.Series.TouchAt(fp, line, x.Moment.SeenSince(x.Chosen, fp))
	if id == 0 {
		return nil
	}
	s := l.Groups.Set(id)
	if s != nil && s.Generation == x.Policy.Generation && (since == 0 || !s.labelled && !l.Due(fp, since, x.Moment) && !x.missed(fp, since)) {
		return s
	}
	x.Missed = x.missed(fp, since)
	x.Due = x.Missed || l.Due(fp, since, x.Moment)
	return nil
}

// Placed reports whether a series is admitted, whatever there is to do about it, and is not made here.
func (l *Limiter) Placed(fp uint64, x *Sighting) bool {
	_, placed := l.Standing(fp, x)
	return placed
}

// Standing returns the id of a series' set, 0 if there is none, and whether the series is Placed.
func (l *Limiter) Standing(fp uint64, x *Sighting) (id uint32, placed bool) {
	id, _ = l.Series.Touch(fp, x.Moment)
	if id <= LeftLast {
		return id, false
	}
	s := l.Groups.Set(id)
	return id, s != nil && !s.Output
}

// Peek is Placed without touching anything.
func (l *Limiter) Peek(fp uint64) bool {
	s := l.Groups.Set(l.Series.peek(fp))
	return s != nil && s.left == 0 && !s.Output
}

// Ordinary is for a series that has a place and is no longer a member of another one.
func (l *Limiter) Ordinary(fp uint64, x *Sighting) {
	x.locate()
	sh := l.Series.Lock(fp)
	defer sh.Mu.Unlock()
	l.Groups.Mu.Lock()
	defer l.Groups.Mu.Unlock()
	id, _ := sh.touch(fp, Nowhere, x.Moment.EpochOf(fp))
	if s := l.Groups.Set(id); id == 0 || s == nil || !s.Promoted || l.Groups.exhausted() {
		return
	}
	sh.assign(fp, l.Groups.Join(x.Policy.Generation, x.Places, x.kind(), x.Owner.Account))
	l.Groups.leave(id)
	l.Losses.Add(1)
}

// See decides about a series that is not simply known: new, admitted under earlier rules, or with label values that
// must not expire before it does. It returns the set of an admitted series.
func (l *Limiter) See(fp uint64, x *Sighting) (*Set, Verdict) {
	x.locate()
	v := l.refuseAtOnce(x)
	if x.AtOnce = v.Limit != nil && l.Series.absent(fp); x.AtOnce { // looked for again once there was no room
		x.Fresh = false
		return nil, v
	}
	sh := l.Series.Lock(fp)
	defer sh.Mu.Unlock()
	l.Groups.Mu.Lock()
	defer l.Groups.Mu.Unlock()

	x.Fresh = false
	id, _ := sh.touch(fp, Nowhere, x.Moment.EpochOf(fp))
	left := id != 0 && id <= LeftLast
	if id != 0 && !left {
		id = l.renew(sh, fp, id, x)
		l.describe(x)
		return l.Groups.Set(id), Verdict{}
	}
	if v := l.refuse(fp, x); v.Limit != nil {
		if left {
			x.lastPoint(fp, id, &v)
		}
		return nil, v
	}
	if left { // treated as new
		l.Groups.leave(id)
		sh.remove(fp)
	}
	x.Due, x.Missed, x.Fresh = l.Watched, false, true
	l.keepValues(fp, x)
	id = l.Groups.Join(x.Policy.Generation, x.Places, x.kind(), x.Owner.Account)
	l.Groups.welcome(x.Places, x.Owner.Account, x.Now, l.Patience)
	sh.insert(fp, id, x.Moment, x.Moment.SeenSince(x.Chosen, fp))
	l.describe(x)
	l.Admitted.Add(1)
	return l.Groups.Set(id), Verdict{}
}

func (x *Sighting) kind() SetKind {
	return SetKind{labelled: len(x.Values) > 0, Output: x.Output, Promoted: x.Promoted}
}

// locate finds the places that a series needs.
func (x *Sighting) locate() {
	x.Places, x.Values = x.Places[:0], x.Values[:0]
	for _, limit := range x.Limits {
		if !limit.Match.MatchPoint(&x.Owner, x.Attributes) {
			continue
		}
		limit.Alive.Match(x.Now)
		of := limit.TermsOf(x.Owner.Tenant)
		group := limit.Group(x.Hash, &x.Owner, x.Attributes)
		series := ident.Mix(limit.Series.Key, group)
		if limit.Share != nil {
			x.Places = append(x.Places, PartyOf(limit, x.Hash, series, &x.Owner, x.Attributes))
		}
		x.Places = append(x.Places, Place{Limit: limit, Terms: of, Key: series})
		x.limited(limit, of, group)
	}
}

// refuse returns the first limit without room for a newcomer. The registry's lock is held, here and below.
func (l *Limiter) refuse(fp uint64, x *Sighting) Verdict {
	for i, v := range x.Values {
		label, room := &v.limit.Labels[v.label], v.place.Terms.Labels[v.label]-l.beside(x.Values, i)
		if l.Groups.full(&label.Values, v.place.Key, room) && !l.Values.Has(v.fp) {
			short := l.Groups.short(v.place.Key, room)
			return Verdict{Limit: v.limit, Reason: policy.ReasonLabel, Label: ident.LabelAt{Key: label.Key, Side: v.side}, Waits: !short && l.lately(x)}
		}
	}
	var party *Place
	for i := range x.Places {
		p := &x.Places[i]
		switch {
		case p.party:
			if party = p; l.Groups.satisfied(p) {
				l.Groups.starve(p, fp)
				return Verdict{Limit: p.Limit, Reason: policy.ReasonShare}
			}
		case p.Terms.Max > 0 && l.Groups.full(&p.Limit.Series, p.Key, x.room(p.Terms)):
			short := l.Groups.short(p.Key, x.room(p.Terms))
			return Verdict{
				Limit: p.Limit, Reason: policy.ReasonSeries,
				Waits: p.Limit.Share != nil && l.Groups.starve(party, fp) || !short && l.lately(x),
			}
		}
	}
	for i := range x.Places {
		if p := &x.Places[i]; l.Groups.hurried(p, x.Owner.Account, x.Now) {
			return Verdict{Limit: p.Limit, Reason: policy.ReasonSeriesRate, Waits: l.Groups.brief(p, x.Owner.Account, x.Now, l.Patience)}
		}
	}
	crowded := l.Groups.crowded(x.Policy.Generation, x.Places, x.kind(), x.Owner.Account)
	for i := range x.Values {
		crowded = crowded || l.Groups.crowded(0, []Place{x.Values[i].place}, SetKind{values: true}, x.Owner.Account)
	}
	if crowded {
		return Verdict{Limit: x.Places[len(x.Places)-1].Limit, Reason: policy.ReasonGroups} // the total limit
	}
	return Verdict{}
}

// lately reports whether the rules were changed a short time ago: what counts where will soon be known.
func (l *Limiter) lately(x *Sighting) bool { return x.Now-x.Policy.Begun < l.Patience }

// room is the room of a limit for a newcomer: part of it is reserved for series with collapsed labels.
func (x *Sighting) room(of *policy.Terms) int {
	if x.Output {
		return of.Max
	}
	return of.Max - of.Reserve
}

// Own marks a fingerprint as that of a series made here. It takes no place.
func (l *Limiter) Own(fp uint64, x *Sighting) {
	if s := l.Known(fp, x); s != nil && s.Output {
		return
	}
	sh := l.Series.Lock(fp)
	defer sh.Mu.Unlock()
	l.Groups.Mu.Lock()
	defer l.Groups.Mu.Unlock()
	id, _ := sh.touch(fp, Nowhere, x.Moment.EpochOf(fp))
	if id != 0 && l.Groups.Set(id).Output || l.Groups.exhausted() {
		return
	}
	to := l.Groups.Join(x.Policy.Generation, nil, SetKind{Output: true}, 0)
	if id == 0 {
		l.Unplaced.Add(1)
		sh.Insert(fp, to, x.Moment)
		return
	}
	sh.assign(fp, to) // it came in before: from here on its points are added
	l.Groups.leave(id)
	l.Losses.Add(1)
}

// renew counts an admitted series where the current rules want it, whether there is room or not.
func (l *Limiter) renew(sh *shard, fp uint64, id uint32, x *Sighting) uint32 {
	l.keepValues(fp, x)
	was, kind := l.Groups.Set(id), x.kind()
	kind.Output, kind.Promoted = kind.Output || was.Output, kind.Promoted || was.Promoted
	if was.Generation == x.Policy.Generation && was.Output == kind.Output && was.Promoted == kind.Promoted || l.Groups.exhausted() {
		return id
	}
	to := l.Groups.Join(x.Policy.Generation, x.Places, kind, x.Owner.Account)
	sh.assign(fp, to)
	l.Groups.leave(id)
	if was.Output != kind.Output || was.Promoted != kind.Promoted {
		l.Losses.Add(1)
	}
	return to
}

// keepValues admits or touches the label values of an admitted series. Values are only inserted here, under the
// registry's lock, so none is inserted twice.
func (l *Limiter) keepValues(fp uint64, x *Sighting) {
	now := x.Moment
	if x.Moment.SeenSince(x.Chosen, fp) != now.EpochOf(fp) { // the series is noted to be seen later
		now += moment.In(1, 0, 1)
	}
	for i := range x.Values {
		l.keepValue(&x.Values[i], now, x.Owner.Account)
	}
}

func (l *Limiter) keepValue(v *labelValue, now moment.Moment, account uint64) {
	sh := l.Values.Lock(v.fp)
	defer sh.Mu.Unlock()
	if id, _ := sh.touch(v.fp, Nowhere, now.EpochOf(v.fp)); id == 0 && !l.Groups.exhausted() {
		// Values belong to no generation: their fingerprint covers their definition.
		sh.Insert(v.fp, l.Groups.Join(0, []Place{v.place}, SetKind{values: true}, account), now)
	}
}

// Shards is how many calls of Sweep make an epoch.
func (l *Limiter) Shards() int { return len(l.Series.Shards) }

const (
	// leaveAtOnce is how many series leave their groups while newcomers wait.
	leaveAtOnce = 256
	// Leaving is the work of removing a series from the table and its groups, in units of visited slots.
	Leaving = 8
)

// Sweep expires idle series in the next shard, and returns how much work that was: the slots of the shard, and the
// expired series. An epoch is over when each shard had its turn.
func (l *Limiter) Sweep() (work int) {
	series, values := &l.Series.Shards[l.cursor], &l.Values.Shards[l.cursor]
	work = series.size() + values.size()
	epoch := l.Now().Epoch()
	l.Groups.Mu.Lock()
	room := l.Groups.remembers()
	l.Groups.Mu.Unlock()
	gone, kept := series.Expire(epoch, KeptEpochs, room, l.gone[:0])
	for _, id := range gone {
		if id > LeftLast {
			l.Expired.Add(1)
		}
	}
	gone, _ = values.Expire(epoch, KeptValueEpochs, 0, gone)
	for some := range slices.Chunk(gone, leaveAtOnce) {
		l.Groups.Mu.Lock()
		l.Groups.pass(LeftIdle, kept)
		for _, id := range some {
			l.Groups.depart(id, epoch/moment.IdleEpochs)
		}
		l.Groups.Mu.Unlock()
		kept = 0
		runtime.Gosched() // batches may have no other processor
	}
	if l.cursor++; l.cursor == l.Shards() {
		l.cursor = 0
		epoch++
	}
	l.clock.Store(uint64(moment.In(epoch, l.cursor, l.Shards())))
	l.gone = gone
	return work + Leaving*len(gone)
}
