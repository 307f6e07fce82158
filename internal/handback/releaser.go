// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package handback

import (
	"reflect"
	"sync"

	"go.opentelemetry.io/collector/component"

	"github.com/godwit-otel/godwit/internal/hostgraph"
)

// A Releaser is an exporter or a processor that knows whether it keeps metrics after it has returned.
type Releaser interface {
	// ReleasesMetrics returns nil if the component, configured as it is, keeps no metrics, else what it does with them: a clause
	// that begins with a verb.
	ReleasesMetrics() error
}

// A Settler is an exporter that reads no point of a part which owes before it has settled that: see [Unread] and [Loan.Settle].
type Settler interface {
	Releaser

	SettlesParts()
}

// registered are the answers of processors, by the addresses of their instances.
var registered sync.Map // of uintptr, registration

type registration struct {
	instance component.Component // an address is one component's for as long as this is here
	answers  Releaser
}

// Register makes known who answers for a processor. The instance is what the factory returned, which may be a helper's
// wrapper, and must be a pointer. A processor does so before its pipeline runs, and calls forget when it shuts down.
func Register(instance component.Component, answers Releaser) (forget func()) {
	at := hostgraph.AddressOf(reflect.ValueOf(instance))
	if at == 0 {
		return func() {}
	}
	registered.Store(at, registration{instance, answers})
	return func() { registered.Delete(at) }
}
