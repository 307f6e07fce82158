// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
)

// exceed is what a rule tries with points for which there is no room, in order. If nothing applies, they are dropped.
type exceed struct {
	Actions []Action
	Keep    []string // attributes that overflow series keep
	Rate    float64  // part of the series that sample lets through
	Gauge   amount.GaugeMode
}

func newExceed(cfg, defaults *ExceedConfig, keep []string) exceed {
	pick := func(own, common []string) []string {
		if len(own) > 0 {
			return own
		}
		return common
	}
	e := exceed{Rate: cfg.SampleRate, Gauge: gaugeModes[cfg.Gauge]}
	for _, name := range pick(cfg.OnExceed, defaults.OnExceed) {
		e.Actions = append(e.Actions, Action(slices.Index(ActionNames[:], name)))
	}
	if cfg.SampleRate == 0 {
		e.Rate = defaults.SampleRate
	}
	if cfg.Gauge == "" {
		e.Gauge = gaugeModes[defaults.Gauge]
	}
	e.Keep = append(slices.Clone(pick(cfg.KeepLabels, defaults.KeepLabels)), keep...)
	slices.Sort(e.Keep)
	e.Keep = slices.Compact(e.Keep)
	return e
}

// String lists the actions.
func (e *exceed) String() string {
	var names []string
	for _, a := range e.Actions {
		names = append(names, ActionNames[a])
	}
	return strings.Join(names, ", ")
}

// gaugeModes are the configuration's names of gauge modes.
var gaugeModes = map[string]amount.GaugeMode{
	NameDrop: amount.GaugeDrop, NameLast: amount.GaugeLast, nameMin: amount.GaugeMin, NameMax: amount.GaugeMax, NameMean: amount.GaugeMean,
}

// Names of ways to combine values.
const (
	NameLast = "last"
	NameMax  = "max"
	NameMean = "mean"
)
