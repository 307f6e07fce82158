// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package workqueue

// A GaugeMetric is a gauge that is incremented and decremented.
type GaugeMetric interface {
	Inc()
	Dec()
}

// A SettableGaugeMetric is a gauge that is set.
type SettableGaugeMetric interface {
	Set(value float64)
}

// A CounterMetric is a counter.
type CounterMetric interface {
	Inc()
}

// A HistogramMetric records durations.
type HistogramMetric interface {
	Observe(seconds float64)
}

// A MetricsProvider makes the metrics of a queue.
type MetricsProvider interface {
	NewDepthMetric(name string) GaugeMetric
	NewAddsMetric(name string) CounterMetric
	NewLatencyMetric(name string) HistogramMetric
	NewWorkDurationMetric(name string) HistogramMetric
	NewUnfinishedWorkSecondsMetric(name string) SettableGaugeMetric
	NewLongestRunningProcessorSecondsMetric(name string) SettableGaugeMetric
	NewRetriesMetric(name string) CounterMetric
}

// SetProvider is called by Prometheus' own server. No collector does, so nothing is counted here.
func SetProvider(MetricsProvider) {}
