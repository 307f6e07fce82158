// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/component"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/allocator"
)

// An offer is what a target allocator would have the jobs be, besides those of the configuration.
type offer struct {
	allocator.Answer

	answer chan verdict // has room for the one
}

// A verdict is what came of an offer: jobs that cannot be used, by name, or why none of it can be.
type verdict struct {
	broken map[string]error
	err    error
}

// newAllocator makes the client of the target allocator, if there is one.
func (r *scraper) newAllocator(ctx context.Context, host component.Host) error {
	if !r.cfg.TargetAllocator.HasValue() {
		return nil
	}
	client, err := allocator.New(ctx, *r.cfg.TargetAllocator.Get(), r.cfg.Prometheus.global(), host, r.settings.TelemetrySettings)
	if err != nil {
		return fmt.Errorf("cannot use `target_allocator`: %w", err)
	}
	r.allocator = client
	return nil
}

// allocate passes on what the target allocator says, until the receiver no longer follows it.
func (r *scraper) allocate() {
	r.allocator.Run(r.following, func(answer allocator.Answer) (map[string]error, error) {
		o := offer{Answer: answer, answer: make(chan verdict, 1)}
		select {
		case r.offers <- o:
			v := <-o.answer
			return v.broken, v.err
		case <-r.following.Done():
			return nil, r.following.Err()
		}
	})
}
