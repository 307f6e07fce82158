// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"context"
	"fmt"

	promconfig "github.com/prometheus/prometheus/config"
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

// An allocation is the receiver's connection to the target allocator.
type allocation struct {
	client    *allocator.Client // nil if none is configured
	offers    chan offer
	following context.Context // ends when the receiver stops following the allocator
	end       context.CancelFunc
}

func newAllocation() allocation {
	a := allocation{offers: make(chan offer)}
	a.following, a.end = context.WithCancel(context.Background())
	return a
}

// divides reports whether the target allocator decides which of a job's targets this collector has.
func (a *allocation) divides(job *promconfig.ScrapeConfig) bool {
	return a.client != nil && a.client.Has(job)
}

// connect makes the client of the target allocator, if one is configured.
func (r *scraper) connect(ctx context.Context, host component.Host) error {
	if !r.cfg.TargetAllocator.HasValue() {
		return nil
	}
	client, err := allocator.New(ctx, *r.cfg.TargetAllocator.Get(), r.cfg.Prometheus.global(), host, r.settings.TelemetrySettings)
	if err != nil {
		return fmt.Errorf("cannot use `target_allocator`: %w", err)
	}
	r.allocation.client = client
	return nil
}

// run passes on the answers of the target allocator, until the receiver no longer follows it.
func (a *allocation) run() {
	a.client.Run(a.following, func(answer allocator.Answer) (map[string]error, error) {
		o := offer{Answer: answer, answer: make(chan verdict, 1)}
		select {
		case a.offers <- o:
			v := <-o.answer
			return v.broken, v.err
		case <-a.following.Done():
			return nil, a.following.Err()
		}
	})
}
