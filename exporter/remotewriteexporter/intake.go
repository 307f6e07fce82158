// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/memlimit"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/queue"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/send"
)

const (
	memoryTimeout  = time.Second
	storageTimeout = 200 * time.Millisecond
	resultTimeout  = 5 * time.Millisecond // a waiting caller sends nothing else meanwhile
)

var (
	errStopped   = errors.New("the exporter is shut down")
	errNoResult  = errors.New("nothing is known of it in time: it stays in the queue, and may be delivered all the same")
	errBlocked   = errors.New("a queue has been full for too long")
	errQueueFull = errors.New("the queue of every destination is full")
)

// intake takes metrics from the pipeline and puts blocks into the queue, in rounds: what came since the last round is
// encoded in the next, when it is enough for a request on each shard or has waited long enough.
type intake struct {
	cfg          *Config
	keys         Keys
	telemetry    *telemetry
	queue        *queue.Queue
	destinations []*send.Destination
	routing      routing
	durable      bool // the queue is stored, and callers wait until their data is
	timeout      time.Duration
	maxRaw       int           // the most bytes of a request before compression
	maxRequests  int           // limits a round, in full requests
	arrived      chan struct{} // signals the first data of a round
	full         chan struct{} // signals that the round is enough for a request
	quit         chan struct{}
	done         sync.WaitGroup

	// mu is held for reading while data is added, and for writing when a round begins or the number of shards changes.
	mu      sync.RWMutex
	stopped bool
	encoder *encode.Encoder
	round   *round
	open    atomic.Int64 // samples added in the round
	blocked atomic.Bool  // the queue was full when data last came
	// evenness has the bits of a float, set by weigh.
	evenness atomic.Uint64

	// Used by the loop only: the shards, their epoch in the queue, and what determines their number.
	shards   *shards
	epoch    uint32
	suitable func() int // the number of shards there should be
	flushed  time.Time  // when the last round was queued
}

func newIntake(cfg *Config, keys Keys, t *telemetry) (*intake, error) {
	in := &intake{
		cfg: cfg, keys: keys, telemetry: t, round: newRound(), shards: newShards(cfg.Shards),
		arrived: make(chan struct{}, 1), full: make(chan struct{}, 1), quit: make(chan struct{}),
	}
	in.suitable = func() int { return in.shards.suit(in.loads) }
	in.evenness.Store(math.Float64bits(1))
	encoding := cfg.encoding(in.shards.count())
	memory := memlimit.Available()
	bound(&encoding, memory)
	in.maxRaw, in.maxRequests = encoding.MaxRawBytes, requestsFor(memory, cfg.Batch.MaxSamples)
	encoder, err := encode.New(encoding, t)
	if err != nil {
		return nil, err
	}
	in.encoder = encoder
	in.routing, err = newRouting(cfg, t)
	return in, err
}

func (in *intake) start(q *queue.Queue, destinations []*send.Destination, durable bool) {
	in.queue, in.destinations, in.durable = q, destinations, durable
	in.epoch = q.NextEpoch()
	in.timeout = in.cfg.Batch.Timeout
	if in.timeout == 0 {
		in.timeout = memoryTimeout
		switch {
		case in.cfg.Queue.WaitForResult:
			in.timeout = resultTimeout
		case durable:
			in.timeout = storageTimeout
		}
	}
	in.done.Go(in.run)
}

// ConsumeMetrics encodes md and returns when it is in memory or, with a storage, stored.
func (e *remoteWrite) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	points := md.DataPointCount()
	if points == 0 {
		return nil
	}
	e.show(ctx, md, points)
	err := e.intake.consume(ctx, md, points)
	if err != nil {
		handback.Abandon(md)
		e.turnedDown.Add(int64(points))
		e.telemetry.refused(points)
	} else {
		e.taken.Add(int64(points))
	}
	return err
}

// show shows metrics to observers, and fills in attributes that were left out where not only the encoder reads them. It
// does so, too, where the number of points has changed: some were removed, and the encoder could not see which.
func (e *remoteWrite) show(ctx context.Context, md pmetric.Metrics, points int) {
	looks := e.tap.IsOpen()
	loan := handback.LoanOf(ctx, md)
	lent, defers := loan.Defers()
	if defers && (looks || lent != points || e.cfg.Tenant.FromResourceAttribute != "") {
		loan.Settle()
	}
	if defers && lent != points {
		loan.Forget()
	}
	if looks {
		e.tap.Metrics(md)
	}
}

func (in *intake) consume(ctx context.Context, md pmetric.Metrics, points int) error {
	tenants := in.cfg.Tenant.among(ctx, md)
	if in.queue.Refuses(tenants) {
		return in.keys.full(errQueueFull)
	}
	if blocks := in.queue.Blocks(tenants); in.blocked.Swap(blocks) != blocks {
		in.telemetry.blocked(blocks)
	}
	r, err := in.take(ctx, md, tenants, in.cfg.Points.samplesOf(md, points))
	if err != nil || !in.durable && !in.cfg.Queue.WaitForResult {
		return err
	}
	ctx, cancel := in.patience(ctx, errNoResult)
	defer cancel()
	select {
	case <-r.queued:
		err = r.err
	case <-ctx.Done():
		err = fmt.Errorf("cannot wait for the data to be queued: %w", context.Cause(ctx))
	}
	if err != nil || !in.cfg.Queue.WaitForResult {
		return err
	}
	if err = r.result(ctx, tenants); err != nil {
		in.encoder.ForgetExemplars() // the caller may send the data again
	}
	return err
}

// patience limits how long a caller waits, and gives the cause when that ends. By default nobody waits for ever: the
// component that holds the data could not shut down meanwhile, and can send it again.
func (in *intake) patience(ctx context.Context, cause error) (context.Context, context.CancelFunc) {
	if limit := in.cfg.Queue.BlockTimeout; limit > 0 {
		return context.WithTimeoutCause(ctx, limit, cause)
	}
	return ctx, func() {}
}

// take adds md to a round with room for it, and returns that round.
func (in *intake) take(ctx context.Context, md pmetric.Metrics, tenants []string, samples int64) (*round, error) {
	for {
		if err := in.waitRoom(ctx, tenants); err != nil {
			return nil, err
		}
		r, done, err := in.try(ctx, md, samples)
		if done {
			return r, err
		}
		select {
		case <-r.taken: // only one round fills while another is encoded
		case <-in.quit:
			return nil, errStopped
		case <-ctx.Done():
			return nil, fmt.Errorf("cannot wait for data to be encoded: %w", ctx.Err())
		}
	}
}

// waitRoom returns when there is room for data of the tenants.
func (in *intake) waitRoom(ctx context.Context, tenants []string) error {
	if in.queue.Blocks(tenants) {
		var cancel context.CancelFunc
		ctx, cancel = in.patience(ctx, errBlocked)
		defer cancel()
	}
	if err := in.queue.WaitRoom(ctx, tenants); err != nil {
		if ctx.Err() != nil && context.Cause(ctx) == errBlocked { //nolint:errorlint // it is that very cause
			return in.keys.full(in.keys.after(errBlocked, in.cfg.Queue.BlockTimeout))
		}
		return fmt.Errorf("cannot wait for room in the queue: %w", err)
	}
	return nil
}

// try adds md to the round, if there is room. It signals the loop under the lock, so that the signal is about this
// round.
func (in *intake) try(ctx context.Context, md pmetric.Metrics, samples int64) (r *round, done bool, err error) {
	in.mu.RLock()
	defer in.mu.RUnlock()
	if in.stopped {
		return nil, true, errStopped
	}
	open, ok := in.reserve(samples)
	if !ok {
		notify(in.full)
		return in.round, false, nil
	}
	in.round.batches.Add(1)
	isLast := in.queue.Take()
	err = in.add(ctx, md)
	notify(in.arrived)
	if isLast || open+samples > in.enough() || in.encoder.IsFull() { // nothing more can come, or as much again would exceed the limit
		notify(in.full)
	}
	if err != nil {
		err = consumererror.NewPermanent(err) // the encoder has counted it; sending it again does not help
	}
	return in.round, true, err
}

// reserve counts samples as added to the round, if they fit, and returns how many there are then.
func (in *intake) reserve(samples int64) (open int64, ok bool) {
	for {
		open := in.open.Load()
		if open > 0 && (open+samples > in.enough() || in.encoder.IsFull()) {
			return open, false
		}
		if in.open.CompareAndSwap(open, open+samples) {
			return open + samples, true
		}
	}
}

// enough is how many samples end a round: a full request for each shard, since more shards with ever smaller requests
// would not send more. Data for more than one request of a shard would take two round trips, so the fullest shard of
// the last rounds counts, and some room is left.
func (in *intake) enough() int64 {
	n := min(in.shards.count(), in.maxRequests)
	samples := float64(n * in.cfg.Batch.MaxSamples)
	if n > 1 {
		samples *= 15. / 16 * math.Float64frombits(in.evenness.Load())
	}
	return int64(samples)
}

// add gives md to the encoder, by tenant.
func (in *intake) add(ctx context.Context, md pmetric.Metrics) error {
	t, loan := &in.cfg.Tenant, handback.LoanOf(ctx, md)
	var arrived []handback.Arrival
	if loan == nil {
		arrived = handback.Arrive(md)
		defer func() { handback.Return(arrived) }()
	}
	tenant := ""
	switch {
	case t.ofCaller():
		tenant = t.nameOf(ctx)
	case t.FromResourceAttribute != "":
		return in.addByResource(md)
	}
	if len(arrived) > 0 {
		return in.encoder.AddArrived(md, tenant, arrived)
	}
	return in.encoder.AddLent(md, tenant, loan)
}

// addByResource encodes first all resources of the first tenant, then all of the next. It moves nothing out of md,
// which its maker may fill again.
func (in *intake) addByResource(md pmetric.Metrics) error {
	own := map[string][]pmetric.ResourceMetrics{}
	var tenants []string
	for _, rm := range md.ResourceMetrics().All() {
		tenant := in.cfg.Tenant.of(rm.Resource())
		if _, known := own[tenant]; !known {
			tenants = append(tenants, tenant)
		}
		own[tenant] = append(own[tenant], rm)
	}
	var errs []error
	for _, tenant := range tenants {
		errs = append(errs, in.encoder.AddResources(own[tenant], tenant))
	}
	return errors.Join(errs...)
}

// stop accepts no more data and queues what there is.
func (in *intake) stop() {
	in.mu.Lock()
	in.stopped = true
	in.mu.Unlock()
	close(in.quit)
	in.done.Wait()
}

// notify leaves a signal, unless there is one.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
