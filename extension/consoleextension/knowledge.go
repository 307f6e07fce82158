// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"time"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/answer"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/balance"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/history"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/meter"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/service"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/sources"
)

// knowledge is what the console knows of its Collector, and its latest answers. Everything that it shows is computed
// from that.
type knowledge struct {
	sources *sources.Registry
	service service.Service
	meter   *meter.Meter
	hour    history.Hour
	shared  *answer.Shared
}

func newKnowledge(now func() time.Time) *knowledge {
	all := sources.NewRegistry(now)
	return &knowledge{sources: all, meter: meter.New(all, now), shared: answer.NewShared(now)}
}

// sample adds a point to the history.
func (k *knowledge) sample() {
	span := k.meter.Look()
	k.hour.Add(span, balance.Of(span, k.service.Graph()))
	k.shared.Forget()
}
