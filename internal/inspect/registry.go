// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import "go.opentelemetry.io/collector/component"

// A Source is what a component shows. Functions that do not apply to it are nil.
type Source struct {
	Kind component.Kind
	ID   component.ID
	// Signal is set where each signal has an instance of its own: traces, metrics or logs. Pipeline is where each pipeline has one, and
	// the component knows which it is.
	Signal, Pipeline string

	// Flow must be cheap: it is called every few seconds, whether or not somebody looks.
	Flow        func() Flow
	Targets     func() Targets
	Look        Looker
	Delivery    func() Delivery
	Intake      func() Intake
	Cardinality Cardinality
	Runtime     func() Runtime
	// Tap is where one can look at data.
	Tap *Tap
}

// A Registry takes sources. The extension that serves them is one.
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

// ReasonRefused is why a receiver loses what the next component did not take and nobody will bring again.
const ReasonRefused = "refused"

// Flow sums up what has gone through a component since it started, in data points, spans or log records. A negative
// number is one that is not known.
type Flow struct {
	// In is what came in: samples that were scraped and kept, those about scrapes themselves included; points that were taken
	// from the pipeline or from a client.
	In int64
	// Out is what went on: to the next component, or, of an exporter, what a destination has acknowledged.
	Out int64
	// Limited is what limits kept out. It was not lost by mistake.
	Limited int64
	// Dropped is what was lost, by reason.
	Dropped map[string]int64
	// Refused is how often the next component, or the queue, did not take what it was offered: it may come again.
	Refused int64
	// Failed counts failures that need not have lost anything, such as scrapes and requests, by reason.
	Failed map[string]int64
	// WireBytes are bytes as transferred, RawBytes the same before compression.
	WireBytes, RawBytes int64
	// QueuedItems, QueuedBytes and QueueCapacity say what waits now, as far as it is known; capacity is in bytes if
	// QueuedBytes is, else in items.
	QueuedItems, QueuedBytes, QueueCapacity int64
	// Targets counts targets by state: healthy, failing, unknown, dropped, elsewhere.
	Targets map[string]int
	// Signals is the part that traces, metrics and logs have in In and Out, of a component that takes them all in one
	// instance; nil of others.
	Signals map[string]SignalFlow
}

// SignalFlow is what one signal has in a Flow.
type SignalFlow struct{ In, Out int64 }
