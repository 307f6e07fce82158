// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package handback

import (
	"reflect"

	"go.opentelemetry.io/collector/component"

	"github.com/godwit-otel/godwit/internal/hostgraph"
)

// The components of the Collector that are known to let go. They are told by the packages of their types: a name is
// whatever a distribution gives to a component.
const (
	limiterConfigs = "go.opentelemetry.io/collector/internal/memorylimiter"
	nopExporters   = "go.opentelemetry.io/collector/exporter/nopexporter"
)

// factories is what the Collector's host implements.
type factories interface {
	GetFactory(kind component.Kind, of component.Type) component.Factory
}

// isMemoryLimiter tells whether a processor is the Collector's memory_limiter. Its processMetrics counts the points and
// returns either the metrics as they came, for the helper to hand on, or an error; it never stores, changes or moves them
// (memorylimiterprocessor v0.159.0, memorylimiter.go). The instance is the helper's, as that of most processors, so it is the
// type of the configuration that tells.
func isMemoryLimiter(host component.Host, n hostgraph.Node) bool {
	f, ok := host.(factories)
	if !ok {
		return false
	}
	kind, err := component.NewType(n.Type)
	if err != nil {
		return false
	}
	factory := f.GetFactory(component.KindProcessor, kind)
	return factory != nil && packageOf(factory.CreateDefaultConfig()) == limiterConfigs
}

// isNop tells whether an exporter is the Collector's nop, whose consumer does nothing at all.
func isNop(instance component.Component) bool { return packageOf(instance) == nopExporters }

// packageOf returns the package of the type that a pointer points to.
func packageOf(v any) string {
	t := reflect.TypeOf(v)
	if t == nil || t.Kind() != reflect.Pointer {
		return ""
	}
	return t.Elem().PkgPath()
}
