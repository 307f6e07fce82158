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

// counters count what scrapes do. They are read when metrics are collected, so counting costs a scrape next to nothing.
type counters struct {
	scrapes                atomic.Int64
	samples, limited, late atomic.Int64
	kept                   atomic.Int64 // samples that relabelling kept, and those about scrapes
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

// reasons are all reasons, sorted.
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

// instruments are the receiver as its metrics show it.
type instruments struct{ *scraper }

// register registers callbacks for all metrics.
func (r instruments) register() error {
	return errors.Join(r.registerSums(), r.registerReasons(), r.registerState())
}

// measured returns the attributes of a measurement: the receiver, because all receivers of a process share the metrics,
// and more.
func (r instruments) measured(more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(append(more, attribute.String("receiver", r.settings.ID.String()))...))
}

// A registering registers the callback of an instrument.
type registering func(metric.Int64Callback) error

// registerSums registers the sums over scrapes.
func (r instruments) registerSums() error {
	t, c, own := r.telemetry, &r.counters, r.measured()
	var errs []error
	for _, sum := range []struct {
		register registering
		value    *atomic.Int64
	}{
		{t.RegisterReceiverFastprometheusScrapesCallback, &c.scrapes},
		{t.RegisterReceiverFastprometheusRefusedScrapesCallback, &r.out.refusals.scrapes},
		{t.RegisterReceiverFastprometheusSamplesScrapedCallback, &c.samples},
		{t.RegisterReceiverFastprometheusLimitedSamplesCallback, &c.limited},
		{t.RegisterReceiverFastprometheusLateSamplesCallback, &c.late},
		{t.RegisterReceiverFastprometheusBrokenHistogramsCallback, &c.brokenHistograms},
		{t.RegisterReceiverFastprometheusPlanHitsCallback, &c.hits},
		{t.RegisterReceiverFastprometheusPlanMissesCallback, &c.misses},
		{t.RegisterReceiverFastprometheusWireBytesCallback, &c.wireBytes},
		{t.RegisterReceiverFastprometheusBodyBytesCallback, &c.bodyBytes},
	} {
		errs = append(errs, sum.register(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(sum.value.Load(), own)
			return nil
		}))
	}
	return errors.Join(append(errs, t.RegisterReceiverFastprometheusProcessTimeCallback(func(_ context.Context, o metric.Float64Observer) error {
		o.Observe(time.Duration(c.processing.Load()).Seconds(), own)
		return nil
	}))...)
}

// registerReasons registers the metrics with an attribute for the reason, phase or state.
func (r instruments) registerReasons() error {
	t, c := r.telemetry, &r.counters
	var errs []error
	for _, one := range []struct {
		register  registering
		attribute string
		each      func(observe func(value string, n int64))
	}{
		{t.RegisterReceiverFastprometheusScrapeFailuresCallback, "reason", func(observe func(string, int64)) {
			for i := range c.failures {
				observe(reasons[i], c.failures[i].Load())
			}
		}},
		{t.RegisterReceiverFastprometheusSkippedScrapesCallback, "reason", func(observe func(string, int64)) {
			for i := range r.skips.counts {
				observe(skipReasons[i], r.skips.counts[i].Load())
			}
		}},
		{t.RegisterReceiverFastprometheusInFlightScrapesCallback, "phase", func(observe func(string, int64)) {
			for p, n := range r.inFlight() {
				if phase(p) != phaseIdle {
					observe(phaseNames[p], n)
				}
			}
		}},
		{t.RegisterReceiverFastprometheusConfigReloadsCallback, "outcome", func(observe func(string, int64)) {
			observe("applied", c.applied.Load())
			observe("rejected", c.rejected.Load())
		}},
		{t.RegisterReceiverFastprometheusTargetsCallback, "state", func(observe func(string, int64)) {
			for state, n := range r.census() {
				observe(state, int64(n))
			}
		}},
	} {
		errs = append(errs, one.register(func(_ context.Context, o metric.Int64Observer) error {
			one.each(func(value string, n int64) { o.Observe(n, r.measured(attribute.String(one.attribute, value))) })
			return nil
		}))
	}
	return errors.Join(errs...)
}

// registerState registers the metrics of the current state.
func (r instruments) registerState() error {
	t, own := r.telemetry, r.measured()
	observed := func(register registering, value func() int64) error {
		return register(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(value(), own)
			return nil
		})
	}
	errs := []error{
		observed(t.RegisterReceiverFastprometheusBacklogBytesCallback, r.backlog.held.Load),
		observed(t.RegisterReceiverFastprometheusPlansCallback, func() int64 {
			plans, _ := r.plans()
			return plans
		}),
		observed(t.RegisterReceiverFastprometheusPlanBytesCallback, func() int64 {
			_, size := r.plans()
			return size
		}),
		observed(t.RegisterReceiverFastprometheusReuseCallback, func() int64 {
			if r.reuse.allowed {
				return 1
			}
			return 0
		}),
	}
	if allocator := r.allocation.client; allocator != nil {
		errs = append(errs, observed(t.RegisterReceiverFastprometheusAllocatorFailuresCallback, allocator.Failures))
	}
	return errors.Join(errs...)
}
