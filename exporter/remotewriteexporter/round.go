// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/queue"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/send"
)

const (
	// cacheGenerations is how many times idle entries are looked for in cache.idle_timeout.
	cacheGenerations = 5
	// maxHold is how many timeouts a round is held open for destinations that lag behind: callers may be waiting.
	maxHold = 5
	// holdLooks is how often in a timeout it checks whether they still do.
	holdLooks = 10
)

// A round is what is encoded and stored together.
type round struct {
	taken   chan struct{} // closed when encoding begins: what is added from then on belongs to the next round
	queued  chan struct{} // closed when the blocks are in the queue, or err says why not
	err     error
	batches atomic.Int64 // from the pipeline
	fate    *queue.Fate  // of its blocks; nil if there are none
}

func newRound() *round { return &round{taken: make(chan struct{}), queued: make(chan struct{})} }

// result waits for what becomes of the tenants' data in a round that is queued. If some of it may be delivered when it
// is sent again, the error says so.
func (r *round) result(ctx context.Context, tenants []string) error {
	if r.fate == nil {
		return nil
	}
	var permanent error
	for _, tenant := range tenants {
		err := r.fate.Await(ctx, tenant)
		lost := (*send.LostError)(nil)
		switch {
		case err == nil:
		case errors.As(err, &lost) && !lost.Again():
			permanent = consumererror.NewPermanent(err)
		default:
			return err
		}
	}
	return permanent
}

// run encodes round after round.
func (in *intake) run() {
	expire := time.NewTicker(max(in.cfg.Cache.IdleTimeout/cacheGenerations, time.Second))
	defer expire.Stop()
	in.shards.begin()
	for {
		select {
		case <-in.arrived:
			if time.Since(in.flushed) > in.timeout {
				in.shards.resume()
			}
			in.await()
			in.flush()
		case <-expire.C:
			in.encoder.Expire()
			in.flush() // nothing came, but there may be too many shards for that
		case <-in.quit:
			in.flush()
			return
		}
	}
}

// await returns when the round must end: it is full, or has waited long enough. While all destinations lag behind, its
// data would only wait in the queue, and take a separate request: so the round is held open for a while, to become part
// of larger requests.
func (in *intake) await() {
	timer, pause := time.NewTimer(in.timeout), max(in.timeout/holdLooks, time.Millisecond)
	defer timer.Stop()
	for held := time.Duration(0); ; held += pause {
		select {
		case <-in.full:
			return
		case <-in.quit:
			return
		case <-timer.C:
		}
		if held >= (maxHold-1)*in.timeout || !in.behind() {
			return
		}
		timer.Reset(pause)
	}
}

// behind reports whether every destination has requests waiting for every shard, in addition to those in flight.
// Destinations that keep up do not wait for others, whose small requests are merged when they are sent. One that does
// not answer counts as behind only if no caller waits for storage, since that could last.
func (in *intake) behind() bool {
	for i, d := range in.destinations {
		if s := in.queue.Stats(i); s.Waiting < in.shards.count() || !d.Answers() && (in.durable || in.cfg.Queue.WaitForResult) {
			return false
		}
	}
	return true
}

// flush ends a round, and changes the number of shards for the next if needed.
func (in *intake) flush() {
	if n := in.suitable(); n != in.shards.count() {
		in.reshard(n)
	} else {
		in.mu.Lock()
		r, tenants := in.next()
		in.mu.Unlock()
		in.enqueue(r, in.encode(tenants))
	}
	in.encoder.Relieve()
	in.flushed = time.Now()
}

// next begins another round; the caller holds mu. What was added before is cut off, for the tenants that it returns.
func (in *intake) next() (*round, []string) {
	r := in.round
	in.round = newRound()
	in.open.Store(0)
	for _, signal := range []chan struct{}{in.arrived, in.full} { // signals about the round that ends
		select {
		case <-signal:
		default:
		}
	}
	tenants := in.encoder.Cut(nil)
	close(r.taken)
	return r, tenants
}

// encode makes blocks of what was cut off.
func (in *intake) encode(tenants []string) []block.Block {
	format := in.format()
	largest := in.cfg.Batch.MaxBytes
	for _, d := range in.destinations {
		if _, wire := d.Largest(); wire > 0 {
			largest = min(largest, wire)
		}
	}
	in.encoder.Limits.LimitCompressed(largest)
	var blocks []block.Block
	for _, tenant := range tenants {
		for shard := range in.shards.count() {
			blocks = in.encoder.Flush(shard, tenant, format, blocks)
		}
	}
	in.weigh(blocks)
	for i := range blocks {
		in.shards.add(in.encoder.Limits.Fullness(blocks[i]))
	}
	return blocks
}

// format is the best one that some destination accepts: other formats are made of it when they are sent.
func (in *intake) format() block.Format {
	best := in.destinations[0].Format()
	for _, d := range in.destinations[1:] {
		if f := d.Format(); f.Version > best.Version || f.Version == best.Version && f.Compression > best.Compression {
			best = f
		}
	}
	return best
}

// weigh records how even the shards of a round are: their mean in relation to the fullest.
func (in *intake) weigh(blocks []block.Block) {
	shares := make([]int, in.shards.count())
	total := 0
	for i := range blocks {
		n := blocks[i].Samples + blocks[i].Histograms
		shares[blocks[i].Shard] += n
		total += n
	}
	if mean := float64(total) / float64(len(shares)); 2*mean > float64(in.cfg.Batch.MaxSamples) { // small rounds are uneven by chance
		in.evenness.Store(math.Float64bits(mean / float64(slices.Max(shares))))
	}
}

// enqueue puts a round's blocks into the queue, and wakes those who wait for that.
func (in *intake) enqueue(r *round, blocks []block.Block) {
	defer close(r.queued)
	batches := r.batches.Load()
	if len(blocks) == 0 {
		in.queue.Return(batches)
		return
	}
	if in.durable { // callers with a stored queue wait for nothing more
		in.queue.Return(batches)
		r.err = in.push(blocks, nil)
		return
	}
	fate := queue.NewFate(batches, in.cfg.Queue.WaitForResult)
	if r.err = in.push(blocks, fate); r.err != nil {
		in.queue.Return(batches)
		return
	}
	r.fate = fate
}

// push queues blocks. Without a storage it cannot fail.
func (in *intake) push(blocks []block.Block, fate *queue.Fate) error {
	defer func(made []block.Block) {
		for _, b := range made {
			b.Free() // the queue holds what it keeps
		}
	}(blocks)
	blocks, to := in.routing.route(blocks)
	if len(blocks) == 0 { // no destination gets any of it
		if fate != nil {
			in.queue.Return(fate.Batches)
		}
		return nil
	}
	err := in.queue.PushTo(context.Background(), in.epoch, blocks, to, fate)
	if err != nil { // the caller sends it again
		in.encoder.ForgetExemplars()
		in.telemetry.storageFailed(err)
	} else {
		in.telemetry.storageWorks()
	}
	return err
}
