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

	"github.com/godwit-otel/godwit/internal/handback"
)

// Decisions about a batch take effect when the next consumer has accepted the batch. If it refuses, the sender may send
// it again, and then nothing may count twice, be sent twice or have used anything up. docs/design/016 lists all
// effects.

// passages is the processor as a pipeline sees it: it waits for the answer to each batch.
type passages struct {
	component.StartFunc
	component.ShutdownFunc

	p      *cardinalityProcessor
	next   consumer.Metrics
	road   *road // nil if the pipeline is the processor's only one
	meter  *meter
	forget func() // takes back the declaration that it keeps no metrics
}

// Capabilities reports whether metrics are changed.
func (c *passages) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: !c.p.DryRun}
}

// Start starts the processor, and declares that it keeps no metrics.
func (c *passages) Start(ctx context.Context, host component.Host) error {
	if err := c.StartFunc.Start(ctx, host); err != nil {
		return err
	}
	c.forget = handback.Register(c, c.p)
	return nil
}

// Shutdown takes back the declaration, and shuts down the processor.
func (c *passages) Shutdown(ctx context.Context) error {
	if c.forget != nil {
		c.forget()
	}
	return c.ShutdownFunc.Shutdown(ctx)
}

// pass returns the processor for its only pipeline.
func (p *cardinalityProcessor) pass(set processor.Settings, next consumer.Metrics) (processor.Metrics, error) {
	return p.passFor(set, next, nil)
}

// passFor returns the processor for one of several pipelines.
func (p *cardinalityProcessor) passFor(set processor.Settings, next consumer.Metrics, of *road) (processor.Metrics, error) {
	m, err := newMeter(set)
	if err != nil {
		return nil, fmt.Errorf("cannot set up telemetry: %w", err)
	}
	c := &passages{StartFunc: p.start, ShutdownFunc: p.shutdown, p: p, next: next, road: of, meter: m}
	if of != nil {
		c.StartFunc, c.ShutdownFunc = of.start, of.shutdown
	}
	return c, nil
}

// ConsumeMetrics passes a batch on, and then applies or discards its effects.
func (c *passages) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) (err error) {
	road := ""
	if c.road != nil {
		road = c.road.name
	}
	b := c.p.NewBatch(road)
	accepted := false
	defer func() { c.p.Conclude(ctx, b, accepted) }() // the next consumer may panic
	begun := c.meter.begin(ctx)
	left := c.p.decide(ctx, b, md)
	came, goes := b.Points()
	c.meter.end(ctx, begun, came, goes)
	if left {
		err = c.next.ConsumeMetrics(ctx, md)
	}
	accepted = err == nil
	return err
}

// ReleasesMetrics declares that no metrics are kept once they are consumed, whatever the configuration: what is staged
// is a copy, and is settled before ConsumeMetrics returns.
func (p *cardinalityProcessor) ReleasesMetrics() error { return nil }

// SettlesWords declares that attributes without their own values get these before they are read, and that no attribute
// is changed.
func (p *cardinalityProcessor) SettlesWords() {}
