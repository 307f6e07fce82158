// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import "go.opentelemetry.io/collector/component"

// A Source is what a component shows. Functions that do not apply to it are nil.
type Source struct {
	Kind component.Kind
	ID   component.ID
	// Signal is set if each signal has an instance of its own: traces, metrics or logs. Pipeline is set if each
	// pipeline has one and the component knows which.
	Signal, Pipeline string

	// Flow must be cheap: it is called every few seconds, whether or not somebody looks.
	Flow        func() Flow
	Targets     func() Targets
	Look        Looker
	Delivery    func() Delivery
	Intake      func() Intake
	Cardinality Cardinality
	Runtime     func() Runtime
	// Tap lets one look at data.
	Tap *Tap
}

// A Registry accepts sources, such as the extension that serves them.
type Registry interface {
	// RegisterInspection shows the source until unregister is called, which may be twice.
	RegisterInspection(source Source) (unregister func())
}

// Register offers the source to every registry among the host's extensions. Unregister is never nil.
func Register(host component.Host, source Source) (unregister func()) {
	var undo []func()
	for _, extension := range host.GetExtensions() {
		if registry, ok := extension.(Registry); ok {
			undo = append(undo, registry.RegisterInspection(source))
		}
	}
	return func() {
		for _, f := range undo {
			f()
		}
	}
}

// A Label is a name and its value.
type Label struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// ReasonRefused is the reason for data that a receiver loses because the next component refused it and nobody sends it
// again.
const ReasonRefused = "refused"

// Flow counts what has passed through a component since it started, in data points, spans or log records. A negative
// number is unknown.
type Flow struct {
	// In is what came in: samples that were scraped and kept, including those about scrapes; points accepted from the
	// pipeline or from clients.
	In int64
	// Out is what was passed to the next component or, for an exporter, what a destination has acknowledged.
	Out int64
	// Limited is what limits rejected. That is not a loss.
	Limited int64
	// Dropped is what was lost, by reason.
	Dropped map[string]int64
	// Refused is how often the next component, or the queue, refused data. It may be sent again.
	Refused int64
	// Failed counts failures that may have lost nothing, such as scrapes and requests, by reason.
	Failed map[string]int64
	// WireBytes are bytes as transferred, RawBytes the same before compression.
	WireBytes, RawBytes int64
	// QueuedItems, QueuedBytes and QueueCapacity describe the queue, as far as known; the capacity is in bytes if
	// QueuedBytes is known, otherwise in items.
	QueuedItems, QueuedBytes, QueueCapacity int64
	// Targets counts targets by state: healthy, failing, unknown, dropped, elsewhere.
	Targets map[string]int
	// Signals splits In and Out by signal, for components that handle all signals in one instance; nil for others.
	Signals map[string]SignalFlow
}

// SignalFlow is the part of one signal in a Flow.
type SignalFlow struct{ In, Out int64 }
