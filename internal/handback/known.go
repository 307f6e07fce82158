// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package handback

import (
	"reflect"
	"strings"

	"go.opentelemetry.io/collector/component"

	"github.com/godwit-otel/godwit/internal/hostgraph"
)

// The components of the Collector that are known to keep no metrics. They are recognised by the packages of their
// types, since a distribution may give a component any name.
const (
	limiterConfigs = "go.opentelemetry.io/collector/internal/memorylimiter"
	nopExporters   = "go.opentelemetry.io/collector/exporter/nopexporter"
	// batch moves resources unchanged into other metrics, which it passes on later and does not touch again; it drops
	// what is refused. If it must split a resource, it moves some of it into a new one (batchprocessor v0.159.0,
	// batch_processor.go and splitmetrics.go).
	batchConfigs = "go.opentelemetry.io/collector/processor/batchprocessor"
)

// The processors that are known to change attributes, or to remove metrics, and to keep none. Those of attributes
// visit the metrics once, change one list of attributes after the other, and return the same metrics for the helper to pass on (v0.159.0,
// attributes_metric.go, resource_processor.go, processor.go of k8sattributes and resourcedetection_processor.go). They
// add to the list, remove from it or replace the content of a value, which in pdata is a separate object;
// resourcedetection sets the schema of resources, too.
var changing = map[string]Changes{
	contrib + "attributesprocessor":        {Points: true},
	contrib + "resourceprocessor":          {Resources: true},
	contrib + "k8sattributesprocessor":     {Resources: true},
	contrib + "resourcedetectionprocessor": {Resources: true},
	// filter removes what its conditions match, resources to points, with RemoveIf, and what is then empty. Conditions
	// change nothing (v0.159.0, metrics.go and internal/condition/metrics.go).
	contrib + "filterprocessor": {Removes: true},
}

const contrib = "github.com/open-telemetry/opentelemetry-collector-contrib/processor/"

// Changes are what a component that keeps no metrics may change: lists of attributes, and which metrics there are.
type Changes struct {
	Points    bool // attributes of data points
	Resources bool // attributes of resources, and their schema URLs
	Removes   bool // resources, scopes, metrics and points are removed, by pdata's RemoveIf, which empties them
}

// With returns the changes of two components together.
func (c Changes) With(more Changes) Changes {
	return Changes{c.Points || more.Points, c.Resources || more.Resources, c.Removes || more.Removes}
}

func (c Changes) String() string {
	var all []string
	switch {
	case c.Points && c.Resources:
		all = append(all, "attributes of points and resources")
	case c.Points:
		all = append(all, "attributes of points")
	case c.Resources:
		all = append(all, "attributes of resources")
	}
	if c.Removes {
		all = append(all, "removed metrics")
	}
	if all == nil {
		return "nothing"
	}
	return strings.Join(all, ", ")
}

// factories is implemented by the Collector's host.
type factories interface {
	GetFactory(kind component.Kind, of component.Type) component.Factory
}

// configsOf returns the package of a processor's configuration, which identifies it: its instance is the helper's, as
// for most processors. memory_limiter's processMetrics is known to count the points and to return either the same
// metrics, for the helper to pass on, or an error; it never stores, changes or moves them (memorylimiterprocessor
// v0.159.0, memorylimiter.go).
func configsOf(host component.Host, n hostgraph.Node) string {
	f, ok := host.(factories)
	if !ok {
		return ""
	}
	kind, err := component.NewType(n.Type)
	if err != nil {
		return ""
	}
	factory := f.GetFactory(component.KindProcessor, kind)
	if factory == nil {
		return ""
	}
	return packageOf(factory.CreateDefaultConfig())
}

// isNop reports whether an exporter is the Collector's nop, whose consumer does nothing.
func isNop(instance component.Component) bool { return packageOf(instance) == nopExporters }

// packageOf returns the package of the type that a pointer points to.
func packageOf(v any) string {
	t := reflect.TypeOf(v)
	if t == nil || t.Kind() != reflect.Pointer {
		return ""
	}
	return t.Elem().PkgPath()
}
