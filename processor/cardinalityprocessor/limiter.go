// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"runtime"
	"slices"
	"sync/atomic"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// A limiter decides which series are admitted. It knows the time only as moments, which sweep moves on.
//
// What is admitted stays so until it was silent for idleEpochs: newcomers never push it out.
type limiter struct {
	series *table
	values *table // of labels with a limit
	groups *registry

	watched bool // by statistics

	clock  atomic.Uint64 // a moment
	cursor int           // the next shard to sweep
	gone   []uint32      // by the last sweep

	patience int64 // for how long a newcomer waits that a pace has no room for, in ns

	admitted, expired, ended atomic.Int64
}

const (
	// idleEpochs is how many epochs an idle timeout has. One more has to pass before something expires, because it may have
	// been seen at the end of its last one, and another because a batch may have begun in the one before.
	idleEpochs = 16
	keptEpochs = idleEpochs + 1
	// Values go after all series that have them, even if those are the last to be swept: else one could come back to find
	// its value gone and another in the value's place.
	keptValueEpochs = keptEpochs + 2
)

func newLimiter(maxGroups, maxSeries int) *limiter {
	return &limiter{series: newTable(maxSeries), values: newTable(maxSeries), groups: newRegistry(maxGroups, maxSeries)}
}

// now is what the time is.
func (l *limiter) now() moment { return moment(l.clock.Load()) }

// sighting is what the limiter has to know about a point. It is reused from point to point.
type sighting struct {
	policy     *policy
	hash       *hasher
	owner      owner
	limits     []*limit // that match the metric
	moment     moment
	now        int64
	attributes pcommon.Map
	collapsed  []labelAt // whose values do not count any more
	output     bool      // it is a series that is made here
	promoted   bool      // it is a member of one
	class      class
	noValue    bool
	due        bool // statistics are to be told of it
	fresh      bool // it was given its place just now

	parted map[uint64]uint32 // where series that left are once the batch is accepted

	places []place
	values []labelValue
}

// labelValue is the value of a label with a limit.
type labelValue struct {
	limit *limit
	label int
	side  side
	place place
	fp    uint64
}

// verdict says which limit rejects a series, and why. Without a limit it is admitted.
type verdict struct {
	limit  *limit
	reason reason
	label  labelAt // for reasonLabel

	waits    bool    // for a place that is its due
	held     *output // the series is a member
	farewell farewell
	step     step // once the batch is accepted
	counted  bool // as a series of its own, some time
}

// known is the fast path: it returns the set of a series that is admitted when all is as it was, else nil.
func (l *limiter) known(fp uint64, x *sighting) *set {
	id, since := l.series.touch(fp, x.moment)
	if id == 0 {
		return nil
	}
	s := l.groups.set(id)
	if s != nil && s.generation == x.policy.generation && (since == 0 || !s.labelled && !l.due(fp, since, x.moment)) {
		return s
	}
	x.due = l.due(fp, since, x.moment)
	return nil
}

// placed says whether a series is admitted, whatever there is to do about it, and is not made here.
func (l *limiter) placed(fp uint64, x *sighting) bool {
	id, _ := l.series.touch(fp, x.moment)
	if id <= leftLast {
		return false
	}
	s := l.groups.set(id)
	return s != nil && !s.output
}

// peek is placed without renewing anything.
func (l *limiter) peek(fp uint64) bool {
	s := l.groups.set(l.series.peek(fp))
	return s != nil && s.left == 0 && !s.output
}

// ordinary is for a series that has a place and is no member of another one any more.
func (l *limiter) ordinary(fp uint64, x *sighting) {
	x.locate()
	sh := l.series.lock(fp)
	defer sh.mu.Unlock()
	l.groups.mu.Lock()
	defer l.groups.mu.Unlock()
	id, _ := sh.touch(fp, x.moment)
	if s := l.groups.set(id); id == 0 || s == nil || !s.promoted || l.groups.exhausted() {
		return
	}
	sh.assign(fp, l.groups.join(x.policy.generation, x.places, x.kind(), x.owner.account))
	l.groups.leave(id)
}

// see decides about a series that is not simply known: new, admitted under earlier rules, or with label values that must
// not expire before it does. It returns the set of what it admits.
func (l *limiter) see(fp uint64, x *sighting) (*set, verdict) {
	x.locate()
	if v := l.refuseAtOnce(x); v.limit != nil && l.series.absent(fp) { // looked for after there was no room
		x.fresh = false
		return nil, v
	}
	sh := l.series.lock(fp)
	defer sh.mu.Unlock()
	l.groups.mu.Lock()
	defer l.groups.mu.Unlock()

	x.fresh = false
	id, _ := sh.touch(fp, x.moment)
	left := id != 0 && id <= leftLast
	if id != 0 && !left {
		id = l.renew(sh, fp, id, x)
		l.describe(x)
		return l.groups.set(id), verdict{}
	}
	if v := l.refuse(fp, x); v.limit != nil {
		if left {
			x.farewell(fp, id, &v)
		}
		return nil, v
	}
	if left { // it is as new as any other
		l.groups.leave(id)
		sh.remove(fp)
	}
	x.due, x.fresh = l.watched, true
	l.keepValues(x)
	id = l.groups.join(x.policy.generation, x.places, x.kind(), x.owner.account)
	l.groups.welcome(x.places, x.now)
	sh.insert(fp, id, x.moment)
	l.describe(x)
	l.admitted.Add(1)
	return l.groups.set(id), verdict{}
}

func (x *sighting) kind() setKind {
	return setKind{labelled: len(x.values) > 0, output: x.output, promoted: x.promoted}
}

// locate finds the places that a series needs.
func (x *sighting) locate() {
	x.places, x.values = x.places[:0], x.values[:0]
	for _, limit := range x.limits {
		if !limit.match.matchPoint(&x.owner, x.attributes) {
			continue
		}
		limit.alive.match(x.now)
		of := limit.termsOf(x.owner.tenant)
		group := limit.group(x.hash, &x.owner, x.attributes)
		series := mix(limit.series.key, group)
		if limit.share != nil {
			x.places = append(x.places, limit.party(x.hash, series, &x.owner, x.attributes))
		}
		x.places = append(x.places, place{limit: limit, terms: of, key: series})
		x.limited(limit, of, group)
	}
}

// refuse returns the first limit that has no room for a newcomer. The registry's lock is held, here and below.
func (l *limiter) refuse(fp uint64, x *sighting) verdict {
	for i, v := range x.values {
		label, room := &v.limit.labels[v.label], v.place.terms.labels[v.label]-l.beside(x.values, i)
		if l.groups.full(&label.values, v.place.key, room) && !l.values.has(v.fp) {
			short := l.groups.short(v.place.key, room)
			return verdict{limit: v.limit, reason: reasonLabel, label: labelAt{label.key, v.side}, waits: !short && l.lately(x)}
		}
	}
	var party *place
	for i := range x.places {
		p := &x.places[i]
		switch {
		case p.party:
			if party = p; l.groups.satisfied(p) {
				l.groups.starve(p, fp)
				return verdict{limit: p.limit, reason: reasonShare}
			}
		case p.terms.max > 0 && l.groups.full(&p.limit.series, p.key, x.room(p.terms)):
			short := l.groups.short(p.key, x.room(p.terms))
			return verdict{
				limit: p.limit, reason: reasonSeries,
				waits: p.limit.share != nil && l.groups.starve(party, fp) || !short && l.lately(x),
			}
		}
	}
	for _, p := range x.places {
		if l.groups.hurried(&p, x.now) {
			return verdict{limit: p.limit, reason: reasonSeriesRate, waits: l.groups.brief(p.key, x.now, l.patience)}
		}
	}
	crowded := l.groups.crowded(x.policy.generation, x.places, x.kind(), x.owner.account)
	for i := range x.values {
		crowded = crowded || l.groups.crowded(0, []place{x.values[i].place}, setKind{values: true}, x.owner.account)
	}
	if crowded {
		return verdict{limit: x.places[len(x.places)-1].limit, reason: reasonGroups} // the total's
	}
	return verdict{}
}

// lately says whether the rules were changed a short time ago: by then it is soon known what counts where.
func (l *limiter) lately(x *sighting) bool { return x.now-x.policy.begun < l.patience }

// room is what there is of a limit for a newcomer: some of it is for series of collapsed labels.
func (x *sighting) room(of *terms) int {
	if x.output {
		return of.max
	}
	return of.max - of.reserve
}

// own makes the series of a fingerprint one that is made here. It takes no place.
func (l *limiter) own(fp uint64, x *sighting) {
	if s := l.known(fp, x); s != nil && s.output {
		return
	}
	sh := l.series.lock(fp)
	defer sh.mu.Unlock()
	l.groups.mu.Lock()
	defer l.groups.mu.Unlock()
	id, _ := sh.touch(fp, x.moment)
	if id != 0 && l.groups.set(id).output || l.groups.exhausted() {
		return
	}
	to := l.groups.join(x.policy.generation, nil, setKind{output: true}, 0)
	if id == 0 {
		sh.insert(fp, to, x.moment)
		return
	}
	sh.assign(fp, to) // it came in before: from here on its points are added
	l.groups.leave(id)
}

// renew sees to it that an admitted series is counted where the present rules want it, whether there is room or not.
func (l *limiter) renew(sh *shard, fp uint64, id uint32, x *sighting) uint32 {
	l.keepValues(x)
	was, kind := l.groups.set(id), x.kind()
	kind.output, kind.promoted = kind.output || was.output, kind.promoted || was.promoted
	if was.generation == x.policy.generation && was.output == kind.output && was.promoted == kind.promoted || l.groups.exhausted() {
		return id
	}
	to := l.groups.join(x.policy.generation, x.places, kind, x.owner.account)
	sh.assign(fp, to)
	l.groups.leave(id)
	return to
}

// keepValues admits or touches the label values of an admitted series. Only here values are inserted, under the
// registry's lock, so none is inserted twice.
func (l *limiter) keepValues(x *sighting) {
	for i := range x.values {
		l.keepValue(&x.values[i], x.moment, x.owner.account)
	}
}

func (l *limiter) keepValue(v *labelValue, now moment, account uint64) {
	sh := l.values.lock(v.fp)
	defer sh.mu.Unlock()
	if id, _ := sh.touch(v.fp, now); id == 0 && !l.groups.exhausted() {
		// Values belong to no generation: what defines them is in their fingerprint.
		sh.insert(v.fp, l.groups.join(0, []place{v.place}, setKind{values: true}, account), now)
	}
}

// shards is how many times sweep has to be called for an epoch to be over.
func (l *limiter) shards() int { return len(l.series.shards) }

const (
	// leaveAtOnce is how many leave their groups while newcomers wait.
	leaveAtOnce = 256
	// leaving is the work of taking out a series and counting it out of its groups, in slots that are passed over.
	leaving = 8
)

// sweep expires what is idle in one shard, the next one, and returns how much work that was: the slots of the shard, and
// what it took to expire. An epoch is over when each shard had its turn.
func (l *limiter) sweep() (work int) {
	series, values := &l.series.shards[l.cursor], &l.values.shards[l.cursor]
	work = series.size() + values.size()
	epoch := l.now().epoch()
	l.groups.mu.Lock()
	room := l.groups.remembers()
	l.groups.mu.Unlock()
	gone, kept := series.expire(epoch, keptEpochs, room, l.gone[:0])
	for _, id := range gone {
		if id > leftLast {
			l.expired.Add(1)
		}
	}
	gone, _ = values.expire(epoch, keptValueEpochs, 0, gone)
	for some := range slices.Chunk(gone, leaveAtOnce) {
		l.groups.mu.Lock()
		l.groups.pass(leftIdle, kept)
		for _, id := range some {
			l.groups.depart(id, epoch/idleEpochs)
		}
		l.groups.mu.Unlock()
		kept = 0
		runtime.Gosched() // batches may have no other processor
	}
	if l.cursor++; l.cursor == l.shards() {
		l.cursor = 0
		epoch++
	}
	l.clock.Store(uint64(momentIn(epoch, l.cursor, l.shards())))
	l.gone = gone
	return work + leaving*len(gone)
}
