// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package workqueue

// A GaugeMetric goes up and down.
type GaugeMetric interface {
	Inc()
	Dec()
}

// A SettableGaugeMetric is set.
type SettableGaugeMetric interface {
	Set(value float64)
}

// A CounterMetric counts.
type CounterMetric interface {
	Inc()
}

// A HistogramMetric takes durations.
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

// SetProvider is what Prometheus' own server calls. No collector does: nothing is counted here.
func SetProvider(MetricsProvider) {}
