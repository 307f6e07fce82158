// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processorhelper"

	"github.com/godwit-otel/godwit/internal/handback"
)

// What is decided about a batch has its effects when the next consumer has accepted the batch. If that refuses it, whoever
// sent it may do so again, and nothing may count twice then, be said twice or have used anything up. docs/design/016 goes
// through all effects.

// passages is the processor as others see it: it waits for the verdict on each batch.
type passages struct {
	processor.Metrics

	p      *cardinalityProcessor
	road   *road  // nil if it is the processor's only one
	forget func() // that it lets go of metrics
}

// Start starts the processor, and makes known that it lets go of metrics.
func (c *passages) Start(ctx context.Context, host component.Host) error {
	if err := c.Metrics.Start(ctx, host); err != nil {
		return err
	}
	c.forget = handback.Register(c, c.p)
	return nil
}

// Shutdown ends both.
func (c *passages) Shutdown(ctx context.Context) error {
	if c.forget != nil {
		c.forget()
	}
	return c.Metrics.Shutdown(ctx)
}

// pass makes the processor part of a pipeline.
func (p *cardinalityProcessor) pass(ctx context.Context, set processor.Settings, next consumer.Metrics) (processor.Metrics, error) {
	return p.passFor(ctx, set, next, nil)
}

// passFor makes it part of one of several.
func (p *cardinalityProcessor) passFor(
	ctx context.Context, set processor.Settings, next consumer.Metrics, of *road,
) (processor.Metrics, error) {
	start, shutdown := p.start, p.shutdown
	if of != nil {
		start, shutdown = of.start, of.shutdown
	}
	helper, err := processorhelper.NewMetrics(ctx, set, p.cfg, onward{next}, p.process,
		processorhelper.WithCapabilities(consumer.Capabilities{MutatesData: !p.dryRun}),
		processorhelper.WithStart(start),
		processorhelper.WithShutdown(shutdown))
	if err != nil {
		return nil, fmt.Errorf("cannot create the processor: %w", err)
	}
	return &passages{Metrics: helper, p: p, road: of}, nil
}

// ConsumeMetrics passes a batch on, and then lets it have its effects, or none.
func (c *passages) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) (err error) {
	b := c.p.scratch.Get().(*batch)
	b.passage = passage{Context: ctx, batch: b}
	if c.road != nil {
		b.road = c.road.name
	}
	accepted := false
	defer func() { c.p.conclude(ctx, b, accepted) }() // the next consumer may panic
	err = c.Metrics.ConsumeMetrics(&b.passage, md)
	accepted = err == nil
	return err
}

// passage is the context in which a batch is decided about, by which its working memory is found again. It goes no further:
// the next consumer is given the caller's own.
type passage struct {
	context.Context

	batch *batch
}

type passageKey struct{}

func (c *passage) Value(key any) any {
	if key == (passageKey{}) {
		return c
	}
	return c.Context.Value(key)
}

func passageOf(ctx context.Context) *passage {
	c, _ := ctx.Value(passageKey{}).(*passage)
	return c
}

// onward hands batches to the next consumer in the context that they came in.
type onward struct{ consumer.Metrics }

func (n onward) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	if c := passageOf(ctx); c != nil {
		ctx = c.Context
	}
	return n.Metrics.ConsumeMetrics(ctx, md)
}

// conclude ends a batch.
func (p *cardinalityProcessor) conclude(ctx context.Context, b *batch, accepted bool) {
	if b.p == nil { // it was never begun
		accepted = false
	}
	if accepted {
		b.handBack()
		p.commit(ctx, b)
	} else {
		p.discard(b)
	}
	b.reset()
	p.scratch.Put(b)
}

// commit lets a batch have its effects.
func (p *cardinalityProcessor) commit(ctx context.Context, b *batch) {
	p.pointsIn.Add(b.came)
	p.pointsPassed.Add(b.came - b.gone)
	p.pointsTaken.Add(b.taken)
	if len(b.staged.additions)+len(b.staged.orphans)+len(b.departures)+len(b.ending) > 0 {
		p.rules.RLock()
		defer p.rules.RUnlock()
		x := sighting{policy: p.policy, moment: p.limiter.now()}
		p.overflow.commit(&settlement{
			staged: &b.staged, epoch: x.moment.epoch(), now: p.now(), lost: &b.losses,
			placed: func(fp uint64) bool { return p.limiter.placed(fp, &x) },
		})
		for _, fp := range b.staged.owned {
			p.limiter.own(fp, &x)
		}
		for _, departure := range b.departures { // after what they say was added
			p.limiter.part(departure, x.moment)
		}
		p.endAll(b.ending, x.moment)
	}
	if len(b.gathered.intakes) > 0 {
		p.feed(b)
	}
	b.report(ctx)
}

// discard is as if the batch had never come.
func (p *cardinalityProcessor) discard(b *batch) {
	p.overflow.discard(&b.staged)
	p.aggregator.spurn(&b.gathered)
	for _, paid := range b.paid {
		paid.refund()
	}
}

// feed lets what was gathered of a batch feed aggregates.
func (p *cardinalityProcessor) feed(b *batch) {
	p.aggregator.settle(&feeding{
		gathered: &b.gathered, aggregator: p.aggregator, epoch: p.limiter.now().epoch(), latest: latestOf(p.now()), batch: b,
	})
	for i := range b.gathered.births {
		if fp := b.gathered.births[i].ousts; fp != 0 {
			p.overflow.release(fp)
		}
	}
}
