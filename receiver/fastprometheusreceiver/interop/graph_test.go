// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/attributesprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/resourceprocessor"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processorhelper"
	"go.uber.org/zap/zaptest/observer"

	"github.com/godwit-otel/godwit/internal/handback"
)

// components is the configuration that the pipelines of these tests are made of.
const components = `
receivers:
  fastprometheus: &scrape
    config: {scrape_configs: [{job_name: a, scrape_interval: 1h, scrape_timeout: 1s, static_configs: [{targets: [127.0.0.1:1]}]}]}
  fastprometheus/other: *scrape
  fastprometheus/always: {<<: *scrape, reuse: always}
  fastprometheus/never: {<<: *scrape, reuse: never}
  remotewrite: {endpoint: "127.0.0.1:0"}
processors:
  memory_limiter: &limiter {check_interval: 1s, limit_mib: 4000}
  memory_limiter/2: *limiter
  batch: {}
  batch/2: {}
  cardinality: {}
  attributes: &region {actions: [{key: region, value: north, action: insert}]}
  attributes/2: *region
  resource: {attributes: [{key: region, value: north, action: insert}]}
  releasing: {}
  keeping: {}
  changing: {}
connectors: {forward: {}}
exporters:
  nop: {}
  nop/2: {}
  debug: {}
  remotewrite: &rw {endpoint: "http://127.0.0.1:1/api/v1/write"}
  remotewrite/tenants: {<<: *rw, tenant: {header: X-Scope-OrgID, from_resource_attribute: service.name, default: nobody}}
  otlpstream: {endpoint: "127.0.0.1:1", tls: {insecure: true}}
service:
  telemetry: {metrics: {level: none}}
`

// What the receiver logs when it starts.
const (
	used   = "The memory of metrics is used again once the pipeline has taken them"
	unused = "The memory of metrics is not used again"
)

// pipelines adds pipelines, each of receivers, processors, and exporters.
func pipelines(parts ...[3]string) string {
	var b strings.Builder
	b.WriteString(components + "  pipelines:\n")
	for i, p := range parts {
		fmt.Fprintf(&b, "    metrics/%d: {receivers: [%s], processors: [%s], exporters: [%s]}\n", i, p[0], p[1], p[2])
	}
	return b.String()
}

// promising returns processors that pass metrics on and say themselves whether they keep them.
func promising(name string, keeps error, changes bool) processor.Factory {
	kind := component.MustNewType(name)
	return processor.NewFactory(kind, func() component.Config { return &struct{}{} }, processor.WithMetrics(
		func(ctx context.Context, set processor.Settings, cfg component.Config, next consumer.Metrics) (processor.Metrics, error) {
			forget := func() {}
			p, err := processorhelper.NewMetrics(ctx, set, cfg, next,
				func(_ context.Context, md pmetric.Metrics) (pmetric.Metrics, error) { return md, nil },
				processorhelper.WithCapabilities(consumer.Capabilities{MutatesData: changes}),
				processorhelper.WithShutdown(func(context.Context) error {
					forget()
					return nil
				}))
			if err == nil && !changes {
				forget = handback.Register(p, answer{keeps})
			}
			return p, err
		}, component.StabilityLevelDevelopment,
	))
}

type answer struct{ keeps error }

func (a answer) ReleasesMetrics() error { return a.keeps }

// The graph of the Collector version that this repository uses can be read. If this fails after an update, the layout
// in internal/handback has to follow it, or no receiver reuses memory.
func TestPipelinesOfTheRealCollector(t *testing.T) {
	const (
		silence = "does not say whether it keeps metrics"
		scrape  = "fastprometheus"
	)
	own := [3]string{scrape, "", "remotewrite"}
	for name, c := range map[string]struct {
		pipelines [][3]string
		what, why string // reasons against reuse
	}{
		"remotewrite":                                 {[][3]string{own}, "", ""},
		"with tenants of resources":                   {[][3]string{{scrape, "", "remotewrite/tenants"}}, "", ""},
		"otlpstream":                                  {[][3]string{{scrape, "", "otlpstream"}}, "", ""},
		"nop":                                         {[][3]string{{scrape, "", "nop/2"}}, "", ""},
		"memory_limiter":                              {[][3]string{{scrape, "memory_limiter, memory_limiter/2", "nop"}}, "", ""},
		"a processor that lets go":                    {[][3]string{{scrape, "memory_limiter, releasing", "nop"}}, "", ""},
		"other receivers beside it":                   {[][3]string{{scrape + ", fastprometheus/other", "", "nop"}}, "", ""},
		"pipelines of others":                         {[][3]string{own, {"fastprometheus/other", "batch", "debug"}}, "", ""},
		"one fed by a connector, too":                 {[][3]string{{scrape + ", forward", "", "nop"}, {"fastprometheus/other", "", "forward"}}, "", ""},
		"a processor that keeps":                      {[][3]string{{scrape, "memory_limiter, keeping, batch", "nop"}}, `processor "keeping"`, "keeps a copy"},
		"a processor that says nothing":               {[][3]string{{scrape, "memory_limiter, batch", "nop"}}, `processor "batch"`, silence},
		"cardinality":                                 {[][3]string{{scrape, "cardinality", "nop"}}, "", ""},
		"attributes":                                  {[][3]string{{scrape, "memory_limiter, attributes", "nop"}}, "", ""},
		"resource, and attributes":                    {[][3]string{{scrape, "resource, attributes, cardinality, attributes/2", "nop"}}, "", ""},
		"batch":                                       {[][3]string{{scrape, "memory_limiter, batch", "remotewrite"}}, "", ""},
		"attributes, and batch":                       {[][3]string{{scrape, "attributes, resource, batch", "remotewrite"}}, "", ""},
		"batch, and attributes":                       {[][3]string{{scrape, "memory_limiter, batch, attributes, resource", "remotewrite"}}, "", ""},
		"batch, resource, and another":                {[][3]string{{scrape, "batch, resource, cardinality", "remotewrite"}}, `processor "batch"`, silence},
		"always: batch":                               {[][3]string{{"fastprometheus/always", "batch", "remotewrite"}}, "", ""},
		"batch, and another":                          {[][3]string{{scrape, "batch, memory_limiter", "remotewrite"}}, `processor "batch"`, silence},
		"cardinality, and batch":                      {[][3]string{{scrape, "cardinality, batch", "remotewrite"}}, `processor "batch"`, silence},
		"two batches":                                 {[][3]string{{scrape, "batch, batch/2", "remotewrite"}}, `processor "batch"`, silence},
		"batch, and otlpstream":                       {[][3]string{{scrape, "batch", "otlpstream"}}, "", ""},
		"batch, and an exporter that does not return": {[][3]string{{scrape, "batch", "nop"}}, `processor "batch"`, silence},
		"attributes, and what keeps":                  {[][3]string{{scrape, "attributes, batch", "nop"}}, `processor "batch"`, silence},
		"attributes, and who says so":                 {[][3]string{{scrape, "keeping, attributes", "nop"}}, `processor "keeping"`, "keeps a copy"},
		"attributes, what says nothing":               {[][3]string{{scrape, "attributes", "debug"}}, `exporter "debug"`, silence},
		"attributes, two exporters":                   {[][3]string{{scrape, "attributes", "nop, remotewrite"}}, `pipeline "metrics/0"`, "has 2 exporters, which share metrics"},
		"attributes, two pipelines":                   {[][3]string{{scrape, "attributes", "nop"}, {scrape, "", "nop"}}, "the receiver", "is in 2 pipelines, which share metrics"},
		"attributes, a connector":                     {[][3]string{{scrape, "resource, attributes", "forward"}, {"forward", "", "nop"}}, `connector "forward"`, "may hand metrics to any pipeline, or keep them"},
		"attributes behind a connector":               {[][3]string{{scrape, "", "forward"}, {"forward", "attributes", "nop"}}, `connector "forward"`, "may hand metrics to any pipeline, or keep them"},
		"never: attributes":                           {[][3]string{{"fastprometheus/never", "attributes", "nop"}}, "`reuse`", "is never"},
		"always: attributes":                          {[][3]string{{"fastprometheus/always", "resource, attributes", "nop"}}, "", ""},
		"always: attributes, what says nothing":       {[][3]string{{"fastprometheus/always", "attributes", "debug"}}, `exporter "debug"`, silence + ", and the pipeline changes metrics"},
		"an exporter that says nothing":               {[][3]string{{scrape, "", "debug"}}, `exporter "debug"`, silence},
		"two exporters":                               {[][3]string{{scrape, "", "nop, remotewrite"}}, `pipeline "metrics/0"`, "has 2 exporters, which share metrics"},
		"two pipelines":                               {[][3]string{own, {scrape, "", "nop"}}, "the receiver", "is in 2 pipelines, which share metrics"},
		"a connector":                                 {[][3]string{{scrape, "", "forward"}, {"forward", "", "nop"}}, `connector "forward"`, "may hand metrics to any pipeline, or keep them"},
		"always: what says nothing":                   {[][3]string{{"fastprometheus/always", "", "debug"}}, "", ""},
		"always: not what keeps":                      {[][3]string{{"fastprometheus/always", "keeping", "debug"}}, `processor "keeping"`, "keeps a copy"},
		"always: not what says it changes":            {[][3]string{{"fastprometheus/always", "changing", "nop"}}, `processor "changing"`, silence + ", and the pipeline changes metrics"},
		"always: not two exporters":                   {[][3]string{{"fastprometheus/always", "", "nop, nop/2"}}, `pipeline "metrics/0"`, "has 2 exporters, which share metrics"},
		"never":                                       {[][3]string{{"fastprometheus/never", "", "nop"}}, "`reuse`", "is never"},
	} {
		t.Run(name, func(t *testing.T) {
			collector := start(t, pipelines(c.pipelines...),
				promising("releasing", nil, false), promising("keeping", errors.New("keeps a copy"), false), promising("changing", nil, true),
				attributesprocessor.NewFactory(), resourceprocessor.NewFactory())
			id, _, _ := strings.Cut(c.pipelines[0][0], ",")
			said := collector.log.Filter(func(e observer.LoggedEntry) bool {
				return (e.Message == used || e.Message == unused) && e.ContextMap()["otelcol.component.id"] == id
			}).All()
			require.Len(t, said, 1)
			if c.what == "" {
				require.Equal(t, used, said[0].Message, said[0].ContextMap())
				return
			}
			require.Equal(t, unused, said[0].Message)
			require.Equal(t, c.what, said[0].ContextMap()["because_of"])
			require.Equal(t, c.why, said[0].ContextMap()["which"])
		})
	}
}

// Points may be written when they are read only if it is known of everything behind a receiver that nobody reads them
// without asking.
func TestPointsOweNothingToWhoIsNotKnown(t *testing.T) {
	const relay = "remotewrite"
	for name, c := range map[string]struct {
		pipelines [][3]string
		defers    bool
	}{
		"remotewrite":              {[][3]string{{relay, "", "remotewrite"}}, true},
		"memory_limiter":           {[][3]string{{relay, "memory_limiter, memory_limiter/2", "remotewrite"}}, true},
		"tenants of resources":     {[][3]string{{relay, "memory_limiter", "remotewrite/tenants"}}, true},
		"cardinality":              {[][3]string{{relay, "memory_limiter, cardinality", "remotewrite"}}, false},
		"a processor that lets go": {[][3]string{{relay, "releasing", "remotewrite"}}, false},
		"a processor that keeps":   {[][3]string{{relay, "keeping", "remotewrite"}}, false},
		"batch":                    {[][3]string{{relay, "memory_limiter, batch", "remotewrite"}}, false},
		"attributes":               {[][3]string{{relay, "attributes", "remotewrite"}}, false},
		"nop":                      {[][3]string{{relay, "memory_limiter", "nop"}}, false},
		"otlpstream":               {[][3]string{{relay, "", "otlpstream"}}, false},
		"two exporters":            {[][3]string{{relay, "", "remotewrite, remotewrite/tenants"}}, false},
		"two pipelines":            {[][3]string{{relay, "", "remotewrite"}, {relay, "", "remotewrite/tenants"}}, false},
		"a connector":              {[][3]string{{relay, "", "forward"}, {"forward", "", "remotewrite"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			collector := start(t, pipelines(c.pipelines...),
				promising("releasing", nil, false), promising("keeping", errors.New("keeps a copy"), false), promising("changing", nil, true),
				attributesprocessor.NewFactory(), resourceprocessor.NewFactory())
			said := collector.log.Filter(func(e observer.LoggedEntry) bool { return e.Message == used || e.Message == unused }).All()
			require.Len(t, said, 1)
			defers, _ := said[0].ContextMap()["points_are_written_when_read"].(bool)
			require.Equal(t, c.defers, defers)
		})
	}
}

// Attributes of scraped points may be left unwritten before processors that only count points or ask for attributes.
func TestAttributesAreUnwrittenBeforeWhoAsks(t *testing.T) {
	for name, c := range map[string]struct {
		processors, exporter string
		unwritten            bool
	}{
		"remotewrite":               {"", "remotewrite", true},
		"memory_limiter":            {"memory_limiter", "remotewrite", true},
		"cardinality":               {"memory_limiter, cardinality", "remotewrite", true},
		"resource":                  {"cardinality, resource", "remotewrite", false},
		"who does not ask":          {"cardinality, releasing", "remotewrite", false},
		"an exporter that does not": {"cardinality", "otlpstream", false},
	} {
		t.Run(name, func(t *testing.T) {
			collector := start(t, pipelines([3]string{"fastprometheus", c.processors, c.exporter}),
				promising("releasing", nil, false), promising("keeping", errors.New("keeps a copy"), false), promising("changing", nil, true),
				attributesprocessor.NewFactory(), resourceprocessor.NewFactory())
			said := collector.log.Filter(func(e observer.LoggedEntry) bool { return e.Message == used }).All()
			require.Len(t, said, 1)
			require.Equal(t, c.unwritten, said[0].ContextMap()["attributes_are_written_when_read"])
		})
	}
}
