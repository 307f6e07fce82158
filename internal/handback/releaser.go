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
	// ReleasesMetrics returns nil if the component, as configured, keeps no metrics, otherwise what it does with them:
	// a clause that begins with a verb.
	ReleasesMetrics() error
}

// A Settler is an exporter that reads no point of a part whose values are deferred before it has settled them: see [Unread] and
// [Loan.Settle].
type Settler interface {
	Releaser

	SettlesParts()
}

// A WordSettler is a processor that settles attributes which may lack their values before it reads any, and that
// changes none. If it removes or adds points, it makes the loan defer nothing: see [UnreadWords], [Loan.Settle] and
// [Loan.Unword].
type WordSettler interface {
	Releaser

	SettlesWords()
}

// registered holds the answers of processors, by the addresses of their instances.
var registered sync.Map // of uintptr, registration

type registration struct {
	instance component.Component // keeps the address from being reused while this is registered
	answers  Releaser
}

// Register sets who answers for a processor. The instance is the one the factory returned, which may be a helper's
// wrapper, and must be a pointer. A processor calls it before its pipeline runs, and calls forget when it shuts down.
func Register(instance component.Component, answers Releaser) (forget func()) {
	at := hostgraph.AddressOf(reflect.ValueOf(instance))
	if at == 0 {
		return func() {}
	}
	registered.Store(at, registration{instance, answers})
	return func() { registered.Delete(at) }
}
