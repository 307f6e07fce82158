// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"github.com/zeebo/xxh3"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/godwit-otel/godwit/benchmarks/tally"
)

// Field numbers of opentelemetry.proto.metrics.v1 that are used below by name.
const (
	metricGauge     = 5
	metricSum       = 7
	metricHistogram = 9
	metricSummary   = 11
)

// otlp accounts for an ExportMetricsServiceRequest. A point of a histogram or a
// summary counts as the samples that it was on the page.
func otlp(message []byte, e *entry) error { return resources(message, 1, e) }

// resources accounts for all ResourceMetrics in the message's field id.
func resources(message []byte, id protowire.Number, e *entry) error {
	return each(message, id, func(f *field) error { return e.resource(f.bytes) })
}

func (e *entry) resource(message []byte) error {
	target, hash := -1, uint64(0)
	if err := each(message, 1, func(f *field) error {
		hash = xxh3.Hash(f.bytes)
		return each(f.bytes, 1, func(f *field) error {
			key, value, err := pair(f.bytes)
			if err == nil && string(key) == "service.instance.id" {
				err = each(value, 1, func(f *field) error { target = tally.Target(f.bytes); return nil })
			}
			return err
		})
	}); err != nil {
		return err
	}
	return each(message, 2, func(f *field) error {
		return each(f.bytes, 2, func(f *field) error { return e.metric(f.bytes, target, hash) })
	})
}

func (e *entry) metric(message []byte, target int, hash uint64) error {
	c := onPage
	if err := each(message, 1, func(f *field) error {
		c, hash = classify(f.bytes), xxh3.HashSeed(f.bytes, hash)
		return nil
	}); err != nil {
		return err
	}
	return walk(message, func(f *field) error {
		switch kind := f.id; kind {
		case metricGauge, metricSum:
			return each(f.bytes, 1, func(f *field) error { return e.number(f.bytes, target, c, hash) })
		case metricHistogram, metricSummary:
			return each(f.bytes, 1, func(f *field) error {
				return e.distribution(f.bytes, kind == metricSummary, target, hash)
			})
		}
		return nil
	})
}

const noRecordedValue = 1

func (e *entry) number(message []byte, target int, c class, hash uint64) error {
	var value float64
	var time int64
	var stale bool
	err := walk(message, func(f *field) error {
		switch f.id {
		case 3:
			time = int64(f.number / 1e6)
		case 4:
			value = f.float()
		case 5:
			e.stats.Exemplars++
		case 6:
			value = float64(int64(f.number))
		case 7:
			hash += xxh3.Hash(f.bytes)
		case 8:
			stale = f.number&noRecordedValue != 0
		}
		return nil
	})
	if err != nil {
		return err
	}
	e.series = append(e.series, hash)
	if stale {
		e.stats.Stale++
		return nil
	}
	e.sample(target, c, time, value)
	return nil
}

func (e *entry) distribution(message []byte, summary bool, target int, hash uint64) error {
	attributes := 9 // of a histogram's point
	if summary {
		attributes = 7
	}
	var count, flags uint64
	var time int64
	var sum float64
	var buckets []uint64
	var quantiles []float64
	err := walk(message, func(f *field) (err error) {
		switch {
		case int(f.id) == attributes:
			hash += xxh3.Hash(f.bytes)
		case f.id == 3:
			time = int64(f.number / 1e6)
		case f.id == 4:
			count = f.number
		case f.id == 5:
			sum = f.float()
		case f.id == 6 && summary:
			quantile := 0.0 // proto3 omits zero
			err = walk(f.bytes, func(f *field) error {
				if f.id == 2 {
					quantile = f.float()
				}
				return nil
			})
			quantiles = append(quantiles, quantile)
		case f.id == 6:
			buckets, err = f.uint64s(buckets)
		case f.id == 8 && summary, f.id == 10:
			flags = f.number
		case f.id == 8:
			e.stats.Exemplars++
		}
		return err
	})
	if err != nil {
		return err
	}
	if flags&noRecordedValue != 0 {
		e.stats.Stale += int64(2 + len(quantiles) + len(buckets))
		return nil
	}
	var cumulative uint64
	for i, n := range buckets {
		cumulative += n
		e.series = append(e.series, hash^uint64(i+1)*0x9e3779b97f4a7c15)
		e.sample(target, onPage, time, float64(cumulative))
	}
	for i, q := range quantiles {
		e.series = append(e.series, hash^uint64(i+1)*0x9e3779b97f4a7c15)
		e.sample(target, onPage, time, q)
	}
	e.series = append(e.series, hash, ^hash)
	e.sample(target, onPage, time, float64(count))
	e.sample(target, onPage, time, sum)
	return nil
}
