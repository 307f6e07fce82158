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
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/gate"
)

// Decisions about a batch take effect when the next consumer has accepted the batch. If it refuses, the sender may send
// it again, and then nothing may count twice, be sent twice or have used anything up. docs/design/016 lists all
// effects.

// passages is the processor as its pipeline sees it: it waits for the answer to each batch.
type passages struct {
	processor.Metrics

	p      *cardinalityProcessor
	road   *road  // nil if it is the processor's only one
	forget func() // that it keeps no metrics
}

// Start starts the processor, and declares that it keeps no metrics.
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
		processorhelper.WithCapabilities(consumer.Capabilities{MutatesData: !p.DryRun}),
		processorhelper.WithStart(start),
		processorhelper.WithShutdown(shutdown))
	if err != nil {
		return nil, fmt.Errorf("cannot create the processor: %w", err)
	}
	return &passages{Metrics: helper, p: p, road: of}, nil
}

// ConsumeMetrics passes a batch on, and then applies or discards its effects.
func (c *passages) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) (err error) {
	road := ""
	if c.road != nil {
		road = c.road.name
	}
	b := c.p.NewBatch(road)
	of, _ := b.Kept.(*passage)
	if of == nil {
		of = &passage{batch: b}
		b.Kept = of
	}
	of.Context = ctx
	accepted := false
	defer func() { // the next consumer may panic
		of.Context = nil
		c.p.Conclude(ctx, b, accepted)
	}()
	err = c.Metrics.ConsumeMetrics(of, md)
	accepted = err == nil
	return err
}

// passage is the context in which a batch is decided about, by which its working memory is found again. It goes no further:
// the next consumer is given the caller's own.
type passage struct {
	context.Context

	batch *gate.Batch
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

// ReleasesMetrics says that no metrics are kept once they are consumed, whatever the configuration: what is staged is a
// copy, and is settled before ConsumeMetrics returns.
func (p *cardinalityProcessor) ReleasesMetrics() error { return nil }
