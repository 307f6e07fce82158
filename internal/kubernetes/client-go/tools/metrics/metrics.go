// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package metrics is what Prometheus' own server counts requests of service discovery by. No collector does: nothing is counted here.
package metrics

import (
	"context"
	"net/url"
	"time"
)

// A LatencyMetric takes how long a request has taken.
type LatencyMetric interface {
	Observe(ctx context.Context, verb string, u url.URL, latency time.Duration)
}

// A ResultMetric takes what a request has come to.
type ResultMetric interface {
	Increment(ctx context.Context, code, method, host string)
}

// RegisterOpts are the metrics of a server.
type RegisterOpts struct {
	RequestLatency LatencyMetric
	RequestResult  ResultMetric
}

// Register has nothing to tell.
func Register(RegisterOpts) {}
