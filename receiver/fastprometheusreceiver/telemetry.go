// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/fetch"
)

// counters are what scrapes count. They are read when someone collects, so counting costs a scrape next to nothing.
type counters struct {
	scrapes, refused       atomic.Int64
	handed, lost           atomic.Int64 // points: those that the pipeline took, and those that it did not
	samples, limited, late atomic.Int64
	kept                   atomic.Int64 // samples that relabelling left, and those about scrapes
	brokenHistograms       atomic.Int64
	hits, misses           atomic.Int64
	wireBytes, bodyBytes   atomic.Int64
	processing             atomic.Int64 // nanoseconds
	failures               [len(reasons)]atomic.Int64
	applied, rejected      atomic.Int64
}

// The reasons for which a scrape fails, beyond those of fetch.
const (
	reasonLimit       = "limit"
	reasonPageMemory  = "page_memory"
	reasonParse       = "parse"
	reasonTargetLimit = "target_limit"
)

// reasons are all of them, sorted.
var reasons = [...]string{
	fetch.ReasonBodySize, fetch.ReasonConnect, fetch.ReasonRefused, fetch.ReasonReset, fetch.ReasonCredentials,
	fetch.ReasonDNS, fetch.ReasonEncoding, reasonLimit, fetch.ReasonOther, reasonPageMemory, reasonParse, fetch.ReasonProtocol,
	fetch.ReasonStatus, reasonTargetLimit, fetch.ReasonTimeout, fetch.ReasonTLS,
}

func (c *counters) failed(reason string) {
	i, known := slices.BinarySearch(reasons[:], reason)
	if !known {
		i, _ = slices.BinarySearch(reasons[:], fetch.ReasonOther)
	}
	c.failures[i].Add(1)
}

// measured is the attributes of a measurement: which receiver it is of, for all of a process share the metrics, and what else
// there is to tell.
func (r *scraper) measured(more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(append(more, attribute.String("receiver", r.settings.ID.String()))...))
}

// observe registers what is read on collection.
func (r *scraper) observe() error {
	t, c, own := r.telemetry, &r.counters, r.measured()
	sums := []struct {
		register func(metric.Int64Callback) error
		value    *atomic.Int64
	}{
		{t.RegisterReceiverFastprometheusScrapesCallback, &c.scrapes},
		{t.RegisterReceiverFastprometheusRefusedScrapesCallback, &c.refused},
		{t.RegisterReceiverFastprometheusSamplesScrapedCallback, &c.samples},
		{t.RegisterReceiverFastprometheusLimitedSamplesCallback, &c.limited},
		{t.RegisterReceiverFastprometheusLateSamplesCallback, &c.late},
		{t.RegisterReceiverFastprometheusBrokenHistogramsCallback, &c.brokenHistograms},
		{t.RegisterReceiverFastprometheusPlanHitsCallback, &c.hits},
		{t.RegisterReceiverFastprometheusPlanMissesCallback, &c.misses},
		{t.RegisterReceiverFastprometheusWireBytesCallback, &c.wireBytes},
		{t.RegisterReceiverFastprometheusBodyBytesCallback, &c.bodyBytes},
	}
	var errs []error
	for _, sum := range sums {
		errs = append(errs, sum.register(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(sum.value.Load(), own)
			return nil
		}))
	}
	errs = append(errs,
		t.RegisterReceiverFastprometheusProcessTimeCallback(func(_ context.Context, o metric.Float64Observer) error {
			o.Observe(time.Duration(c.processing.Load()).Seconds(), own)
			return nil
		}),
		t.RegisterReceiverFastprometheusScrapeFailuresCallback(func(_ context.Context, o metric.Int64Observer) error {
			for i := range c.failures {
				o.Observe(c.failures[i].Load(), r.measured(attribute.String("reason", reasons[i])))
			}
			return nil
		}),
		t.RegisterReceiverFastprometheusSkippedScrapesCallback(func(_ context.Context, o metric.Int64Observer) error {
			for i := range r.skips.counts {
				o.Observe(r.skips.counts[i].Load(), r.measured(attribute.String("reason", skipReasons[i])))
			}
			return nil
		}),
		t.RegisterReceiverFastprometheusInFlightScrapesCallback(func(_ context.Context, o metric.Int64Observer) error {
			for p, n := range r.inFlight() {
				if phase(p) != phaseIdle {
					o.Observe(n, r.measured(attribute.String("phase", phaseNames[p])))
				}
			}
			return nil
		}),
		t.RegisterReceiverFastprometheusBacklogBytesCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(r.backlog.held.Load(), own)
			return nil
		}),
		t.RegisterReceiverFastprometheusConfigReloadsCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(c.applied.Load(), r.measured(attribute.String("outcome", "applied")))
			o.Observe(c.rejected.Load(), r.measured(attribute.String("outcome", "rejected")))
			return nil
		}),
		t.RegisterReceiverFastprometheusTargetsCallback(func(_ context.Context, o metric.Int64Observer) error {
			for state, n := range r.census() {
				o.Observe(int64(n), r.measured(attribute.String("state", state)))
			}
			return nil
		}),
		t.RegisterReceiverFastprometheusPlansCallback(func(_ context.Context, o metric.Int64Observer) error {
			plans, _ := r.plans()
			o.Observe(plans, own)
			return nil
		}),
		t.RegisterReceiverFastprometheusPlanBytesCallback(func(_ context.Context, o metric.Int64Observer) error {
			_, size := r.plans()
			o.Observe(size, own)
			return nil
		}),
		t.RegisterReceiverFastprometheusReuseCallback(r.observeReuse),
	)
	if r.allocator != nil {
		errs = append(errs, t.RegisterReceiverFastprometheusAllocatorFailuresCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(r.allocator.Failures(), own)
			return nil
		}))
	}
	return errors.Join(errs...)
}
