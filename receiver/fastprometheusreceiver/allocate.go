// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/component"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/allocator"
)

// An offer is the list of jobs that a target allocator wants scraped, in addition to those of the configuration.
type offer struct {
	allocator.Answer

	answer chan verdict // buffered, for one answer
}

// A verdict is the result of an offer: why jobs cannot be used, by name, or why the whole offer cannot.
type verdict struct {
	broken map[string]error
	err    error
}

// newAllocator makes the client of the target allocator, if one is configured.
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

// allocate passes on the answers of the target allocator, until the receiver no longer follows it.
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
