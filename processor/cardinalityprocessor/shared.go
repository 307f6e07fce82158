// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
)

// A `shared` processor is one limiter for all of its pipelines. The Collector makes an instance for each; they have the
// same configuration object, and find each other by it. Limits, groups and memory are common. Series are told apart by
// pipeline, as by tenant, so what is made of a pipeline's series is sent in that pipeline.

// sharing is what the instances of one configuration have in common.
type sharing struct {
	mu      sync.Mutex
	p       *cardinalityProcessor
	started int
}

// join returns an instance for one more pipeline.
func (s *sharing) join(cfg *Config, set processor.Settings, next consumer.Metrics) (processor.Metrics, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.p == nil {
		p, err := newProcessor(cfg, set, next)
		if err != nil {
			return nil, err
		}
		s.p = p
	}
	return s.p.passFor(set, next, &road{sharing: s, next: next})
}

// road is one of the pipelines of a shared processor.
type road struct {
	sharing *sharing
	next    consumer.Metrics
	name    string
}

// start starts the processor with the first of its pipelines.
func (r *road) start(ctx context.Context, host component.Host) error {
	s := r.sharing
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.name = pipelineOf(host); r.name == "" {
		return fmt.Errorf("cannot share the processor: %w", errNoPipeline)
	}
	s.p.roads.open(r)
	if s.started == 0 {
		if err := s.p.start(ctx, host); err != nil {
			return err
		}
	}
	s.started++
	return nil
}

var errNoPipeline = errors.New("the host does not say which pipeline this is; without `shared` each has a limiter of its own")

// shutdown ends the processor with the last of its pipelines. What was made of the series of earlier ones is sent
// there.
func (r *road) shutdown(ctx context.Context) error {
	s := r.sharing
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.p == nil || r.name == "" && s.started > 0 { // it was never started
		return nil
	}
	if s.started--; s.started > 0 {
		s.p.pour(ctx, s.p.Aggregator.All(s.p.Now()))
		s.p.flush(ctx)
		s.p.roads.close(r)
		return nil
	}
	err := s.p.shutdown(ctx)
	s.p, s.started = nil, 0
	return err
}

// roads are the pipelines of a shared processor, by name. One that has ended has no next consumer.
type roads struct {
	mu  sync.RWMutex
	all map[string]consumer.Metrics
}

func (r *roads) open(of *road) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[string]consumer.Metrics{}
	}
	r.all[of.name] = of.next
}

func (r *roads) close(of *road) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all[of.name] = nil
}

var (
	errRoadClosed = errors.New("the pipeline has ended")
	errNoRoad     = consumererror.NewPermanent(errors.New("the processor is not in that pipeline any more"))
)

// consume sends what was made of a pipeline's series in that pipeline.
func (p *cardinalityProcessor) consume(ctx context.Context, of string, md pmetric.Metrics) error {
	if of == "" {
		return p.next.ConsumeMetrics(ctx, md)
	}
	p.roads.mu.RLock()
	next, known := p.roads.all[of]
	p.roads.mu.RUnlock()
	switch {
	case !known:
		return errNoRoad
	case next == nil:
		return errRoadClosed
	default:
		return next.ConsumeMetrics(ctx, md)
	}
}
