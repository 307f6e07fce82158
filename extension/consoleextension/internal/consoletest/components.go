// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoletest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/godwit-otel/godwit/internal/inspect"
)

// Pipelines is a configuration with components of each kind.
const Pipelines = `
receivers: {fastprometheus: {}, otlp: {}}
processors: {memory_limiter: {}, cardinality: {}, batch: {}}
exporters: {remotewrite: {}, otlp: {}}
connectors: {forward: {}}
service:
  extensions: [console]
  pipelines:
    metrics: {receivers: [fastprometheus], processors: [memory_limiter, cardinality], exporters: [remotewrite, forward]}
    metrics/2: {receivers: [forward], processors: [batch], exporters: [otlp]}
    traces: {receivers: [otlp], exporters: [otlp]}
`

// Counter is a component with the counters that a test sets.
type Counter struct{ Flow inspect.Flow }

// Counter adds a Counter.
func (w *World) Counter(kind component.Kind, name string) *Counter {
	c := &Counter{}
	w.Register(inspect.Source{Kind: kind, ID: ID(name), Flow: func() inspect.Flow { return c.Flow }})
	return c
}

// Exporter is an exporter with destinations whose counters a test sets.
type Exporter struct {
	Delivery inspect.Delivery
	Before   int64 // lost before any destination
}

// Exporter adds an Exporter.
func (w *World) Exporter(name string, destinations ...inspect.Destination) *Exporter {
	x := &Exporter{Delivery: inspect.Delivery{Destinations: destinations}}
	w.Register(inspect.Source{
		Kind: component.KindExporter, ID: ID(name), Signal: "metrics",
		Flow: func() (f inspect.Flow) {
			f.Dropped = map[string]int64{"untranslated": x.Before}
			for _, d := range x.Delivery.Destinations {
				f.Out += d.Sent
				f.WireBytes += d.WireBytes
				for reason, n := range d.Dropped {
					f.Dropped[reason] += n
				}
			}
			return f
		},
		Delivery: func() inspect.Delivery {
			return inspect.Delivery{Destinations: append([]inspect.Destination{}, x.Delivery.Destinations...), Split: x.Delivery.Split}
		},
	})
	return x
}

// TargetLabels are the labels of a target.
type TargetLabels struct{ Now, Found []inspect.Label }

// Labels implements [inspect.Labels].
func (l TargetLabels) Labels() []inspect.Label { return append([]inspect.Label{}, l.Now...) }

// Discovered implements [inspect.Labels].
func (l TargetLabels) Discovered() []inspect.Label { return append([]inspect.Label{}, l.Found...) }

// Scraped returns a receiver with n targets, one in a hundred of which fails.
func Scraped(n int) inspect.Source {
	return inspect.Source{
		Kind: component.KindReceiver, ID: ID("fastprometheus"), Signal: "metrics",
		Flow: func() inspect.Flow {
			return inspect.Flow{In: int64(n), Targets: map[string]int{inspect.Healthy: n - n/100, inspect.Failing: n / 100}}
		},
		Targets: func() inspect.Targets {
			job := inspect.Job{Name: "node", Targets: make([]inspect.Target, n), Drops: 1, Rules: func() (string, string) { return "- action: keep\n", "" }}
			job.Dropped = []inspect.Labels{TargetLabels{Found: []inspect.Label{{Name: "__address__", Value: "dropped:1"}}}}
			for i := range job.Targets {
				address := fmt.Sprintf("10.0.%d.%d:9100", i/256, i%256)
				t := &job.Targets[i]
				*t = inspect.Target{
					ID: fmt.Sprintf("%016x", i), URL: "http://" + address + "/metrics", State: inspect.Healthy, Interval: 15 * time.Second,
					Samples: i, Bytes: int64(n - i), LastScrape: time.Unix(int64(i), 0), LastDuration: time.Duration(i),
					Labels: TargetLabels{
						Now: []inspect.Label{
							{Name: "instance", Value: address},
							{Name: "job", Value: "node"},
							{Name: "cluster", Value: "north"},
							{Name: "rack", Value: fmt.Sprintf("R%d", i%40)},
						},
						Found: []inspect.Label{{Name: "__address__", Value: address}, {Name: "__param_token", Value: "s3cr3t"}},
					},
				}
				if i%100 == 99 {
					t.State, t.Reason, t.LastError = inspect.Failing, "connection_refused", "dial tcp "+address+": connect: connection refused"
				}
			}
			return inspect.Targets{Jobs: []inspect.Job{job}}
		},
		Look: Looker{},
	}
}

// Looker looks at the second target. If Waiting is set, it waits until it is released.
type Looker struct{ Waiting chan chan struct{} }

// Look implements [inspect.Looker].
func (l Looker) Look(ctx context.Context, id string, limit int) (inspect.Page, error) {
	switch {
	case l.Waiting != nil:
		release := make(chan struct{})
		l.Waiting <- release
		select {
		case <-release:
		case <-ctx.Done():
			return inspect.Page{}, ctx.Err()
		}
	case id == "000000000000000f":
		return inspect.Page{}, errors.New("Get \"http://u:s3cr3t@host/?token=s3cr3t\": broken")
	case id != "0000000000000001":
		return inspect.Page{}, inspect.ErrNoTarget
	}
	return inspect.Page{
		URL: "http://10.0.0.1:9100/metrics", Status: "503 Service Unavailable", ContentType: "text/plain", Encoding: "gzip", WireBytes: limit,
		Body: []byte("up 1\n\xff"),
	}, nil
}

// Cardinality answers with what a test sets.
type Cardinality struct {
	Now   inspect.CardinalityOverview
	Rows  inspect.Top
	Asked *inspect.TopQuery
	Slow  func() // called by Top
}

// TSDBStatus answers in the form of Prometheus.
func (c Cardinality) TSDBStatus(limit int) ([]byte, error) {
	return fmt.Appendf(nil, `{"status":"success","data":{"limit":%d}}`, limit), nil
}

// Overview implements [inspect.Cardinality].
func (c Cardinality) Overview() inspect.CardinalityOverview { return c.Now }

// Top implements [inspect.Cardinality].
func (c Cardinality) Top(query inspect.TopQuery) inspect.Top {
	if c.Asked != nil {
		*c.Asked = query
	}
	if c.Slow != nil {
		c.Slow()
	}
	return c.Rows
}

// Metric implements [inspect.Cardinality].
func (c Cardinality) Metric(name string) (inspect.MetricDetail, bool) {
	return inspect.MetricDetail{Row: inspect.Row{Name: name}, Labels: []inspect.Row{
		{Name: "path"}, {Name: "id", Values: inspect.Estimate{Value: 9}}, {Name: "method"},
	}}, name == "m"
}

// WhatIf implements [inspect.Cardinality].
func (c Cardinality) WhatIf(change inspect.Change) (inspect.Projection, error) {
	if change.Metric == "unseen" {
		return inspect.Projection{}, errors.New("there is no metric \"unseen\"")
	}
	return inspect.Projection{Before: inspect.Estimate{Value: 10}, After: inspect.Estimate{Value: 1, Error: 0.5}}, nil
}
