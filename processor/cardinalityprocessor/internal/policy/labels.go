// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"

	"go.opentelemetry.io/otel/metric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
)

// labelLimit bounds the values of an attribute, wherever it is or on one side only.
type labelLimit struct {
	Name   string // in the configuration
	Key    string
	On     [ident.Sides]bool
	Values Bound // of which 0 allows none

	Measured metric.MeasurementOption // the attributes of what is measured of it
}

// newLabelLimit reads `KEY`, `resource:KEY` or `attribute:KEY`.
func newLabelLimit(name string) labelLimit {
	kind, key, _ := strings.Cut(name, ":")
	switch kind {
	case byResource:
		return labelLimit{Name: name, Key: key, On: [ident.Sides]bool{ident.OfResource: true}}
	case byAttribute:
		return labelLimit{Name: name, Key: key, On: [ident.Sides]bool{ident.OfPoint: true}}
	default:
		return labelLimit{Name: name, Key: name, On: [ident.Sides]bool{true, true}}
	}
}
