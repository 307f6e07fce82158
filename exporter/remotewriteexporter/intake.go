// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/queue"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/send"
)

const (
	memoryTimeout  = time.Second
	storageTimeout = 200 * time.Millisecond
	// cacheGenerations is how many times idle entries are looked for in cache.idle_timeout.
	cacheGenerations = 5
	// maxRequests bounds a round, in full requests, however many shards there are.
	maxRequests = 16
)

var (
	errStopped   = errors.New("the exporter is shut down")
	errQueueFull = errors.New("the queue of every destination is full: raise `queue.size`, or choose another `queue.on_full`")
)

// intake takes metrics from the pipeline and puts blocks into the queue, in rounds: what came since the last round is
// encoded in the next, when it is enough for a request or has waited long enough.
type intake struct {
	cfg          *Config
	telemetry    *telemetry
	queue        *queue.Queue
	destinations []*send.Destination
	durable      bool // callers wait until their data is stored
	timeout      time.Duration
	arrived      chan struct{} // the first data of a round
	full         chan struct{} // the round is enough for a request
	quit         chan struct{}
	done         sync.WaitGroup

	// mu is held for reading while data is added, and for writing when a round begins or the shards change.
	mu      sync.RWMutex
	stopped bool
	encoder *encode.Encoder
	round   *round
	open    atomic.Int64 // points added in the round
	blocked atomic.Bool  // the queue was full when data last came

	// The loop's own: the shards, their epoch in the queue, what their number follows, and what became of the round before.
	shards *shards
	epoch  uint32
	loads  func() []load
	look   time.Duration
	before error
}

// A round is what is encoded and stored together.
type round struct {
	taken  chan struct{} // closed when encoding begins: what is added now belongs to the next round
	stored chan struct{} // closed when the blocks are in the queue, or err says why not
	err    error
}

func newRound() *round { return &round{taken: make(chan struct{}), stored: make(chan struct{})} }

func newIntake(cfg *Config, t *telemetry) (*intake, error) {
	in := &intake{
		cfg: cfg, telemetry: t, round: newRound(), shards: newShards(cfg.Shards),
		arrived: make(chan struct{}, 1), full: make(chan struct{}, 1), quit: make(chan struct{}),
	}
	in.loads, in.look = in.observe, adaptInterval
	encoder, err := encode.New(cfg.encoding(in.shards.count()), t)
	if err != nil {
		return nil, err
	}
	in.encoder = encoder
	return in, nil
}

func (in *intake) start(q *queue.Queue, destinations []*send.Destination, durable bool) {
	in.queue, in.destinations, in.durable = q, destinations, durable
	in.epoch = q.NextEpoch()
	in.timeout = in.cfg.Batch.Timeout
	if in.timeout == 0 {
		in.timeout = memoryTimeout
		if durable {
			in.timeout = storageTimeout
		}
	}
	in.done.Go(in.run)
}

// ConsumeMetrics encodes md and returns when that is in memory or, with a storage, stored.
func (e *remoteWrite) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	points := md.DataPointCount()
	if points == 0 {
		return nil
	}
	err := e.intake.consume(ctx, md, points)
	if err != nil {
		e.turnedDown.Add(int64(points))
		e.telemetry.refused(points)
	} else {
		e.taken.Add(int64(points))
	}
	return err
}

func (in *intake) consume(ctx context.Context, md pmetric.Metrics, points int) error {
	if err := in.admit(ctx, int64(points)); err != nil {
		return err
	}
	in.mu.RLock()
	if in.stopped {
		in.mu.RUnlock()
		return errStopped
	}
	r := in.round
	err := in.add(ctx, md)
	open := in.open.Add(int64(points))
	in.mu.RUnlock()
	if err != nil {
		return consumererror.NewPermanent(err) // counted by the encoder, and no better another time
	}
	notify(in.arrived)
	if open+int64(points) > in.enough() { // as much again would make a request too many
		notify(in.full)
	}
	if !in.durable {
		return nil
	}
	select {
	case <-r.stored:
		return r.err
	case <-ctx.Done():
		return fmt.Errorf("cannot wait for the queue to be stored: %w", ctx.Err())
	}
}

// admit waits until there is room for more points, or refuses them.
func (in *intake) admit(ctx context.Context, points int64) error {
	if in.queue.Refuses() {
		return errQueueFull
	}
	if blocks := in.queue.Blocks(); in.blocked.Swap(blocks) != blocks {
		in.telemetry.blocked(blocks)
	}
	for {
		if err := in.queue.WaitRoom(ctx); err != nil {
			return fmt.Errorf("cannot wait for room in the queue: %w", err)
		}
		in.mu.RLock()
		r, open := in.round, in.open.Load()
		in.mu.RUnlock()
		if open == 0 || open+points <= in.enough() {
			return nil
		}
		notify(in.full) // one round fills while another is encoded, and no more
		select {
		case <-r.taken:
		case <-in.quit:
			return errStopped
		case <-ctx.Done():
			return fmt.Errorf("cannot wait for data to be encoded: %w", ctx.Err())
		}
	}
}

// enough is how many points end a round: a full request for each shard: were a round cut into ever smaller pieces, more
// shards would send no more. Shards get shares of about one size, so that each is a request leaves some room.
func (in *intake) enough() int64 {
	n := min(in.shards.count(), maxRequests)
	points := n * in.cfg.Batch.MaxSamples
	if n > 1 {
		points -= points / 16
	}
	return int64(points)
}

// add gives md to the encoder, by tenant.
func (in *intake) add(ctx context.Context, md pmetric.Metrics) error {
	t := &in.cfg.Tenant
	switch {
	case t.FromMetadata != "":
		tenant := t.Default
		if values := client.FromContext(ctx).Metadata.Get(t.FromMetadata); len(values) > 0 && values[0] != "" {
			tenant = values[0]
		}
		return in.encoder.Add(md, tenant)
	case t.FromResourceAttribute != "":
		return in.addByResource(md)
	}
	return in.encoder.Add(md, "")
}

// addByResource takes md apart: first all resources of the first tenant, then all of the next.
func (in *intake) addByResource(md pmetric.Metrics) error {
	var errs []error
	for md.ResourceMetrics().Len() > 0 {
		tenant := in.tenantOf(md.ResourceMetrics().At(0).Resource())
		own := pmetric.NewMetrics()
		md.ResourceMetrics().RemoveIf(func(rm pmetric.ResourceMetrics) bool {
			if in.tenantOf(rm.Resource()) != tenant {
				return false
			}
			rm.MoveTo(own.ResourceMetrics().AppendEmpty())
			return true
		})
		errs = append(errs, in.encoder.Add(own, tenant))
	}
	return errors.Join(errs...)
}

func (in *intake) tenantOf(r pcommon.Resource) string {
	if v, ok := r.Attributes().Get(in.cfg.Tenant.FromResourceAttribute); ok {
		if name := v.AsString(); name != "" {
			return name
		}
	}
	return in.cfg.Tenant.Default
}

// run encodes round after round.
func (in *intake) run() {
	expire := time.NewTicker(max(in.cfg.Cache.IdleTimeout/cacheGenerations, time.Second))
	defer expire.Stop()
	adapt := time.NewTicker(in.look)
	defer adapt.Stop()
	for {
		select {
		case <-in.arrived:
			timer := time.NewTimer(in.timeout)
			select {
			case <-in.full:
			case <-timer.C:
			case <-in.quit:
			}
			timer.Stop()
			in.flush()
		case <-expire.C:
			in.encoder.Expire()
		case <-adapt.C:
			if n := in.shards.adapt(in.loads()); n != in.shards.count() {
				in.reshard(n)
			}
		case <-in.quit:
			in.flush()
			return
		}
	}
}

// flush ends a round.
func (in *intake) flush() {
	in.mu.Lock()
	r := in.next()
	in.mu.Unlock()
	in.settle(r, in.push(in.encode()))
}

// settle says what became of a round's blocks. What came after the round before had ended may have been in time for its
// blocks, and then was lost with them: so its failure is that of this round too.
func (in *intake) settle(r *round, err error) {
	if r.err = err; err == nil {
		r.err = in.before
	}
	in.before = err
	close(r.stored)
}

// next begins another round; the caller holds mu. What was added before is all in the columns.
func (in *intake) next() *round {
	r := in.round
	in.round = newRound()
	in.open.Store(0)
	close(r.taken)
	select {
	case <-in.full: // about the round that ends
	default:
	}
	return r
}

// encode makes blocks of what was added.
func (in *intake) encode() []block.Block {
	format := in.format()
	for _, d := range in.destinations {
		in.encoder.LimitCompressed(d.Largest())
	}
	var blocks []block.Block
	for _, tenant := range in.encoder.Tenants(nil) {
		for shard := range in.shards.count() {
			blocks = in.encoder.Flush(shard, tenant, format, blocks)
		}
	}
	return blocks
}

// push queues blocks. Without a storage it cannot fail.
func (in *intake) push(blocks []block.Block) error {
	if len(blocks) == 0 {
		return nil
	}
	err := in.queue.Push(context.Background(), in.epoch, blocks)
	if err != nil {
		in.telemetry.storageFailed(err)
	} else {
		in.telemetry.storageWorks()
	}
	return err
}

// format is the best that some destination takes: what others need is made of it when it is sent.
func (in *intake) format() encode.Format {
	best := in.destinations[0].Format()
	for _, d := range in.destinations[1:] {
		if f := d.Format(); f.Version > best.Version || f.Version == best.Version && f.Compression > best.Compression {
			best = f
		}
	}
	return best
}

// stop takes no more data and queues what there is.
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
