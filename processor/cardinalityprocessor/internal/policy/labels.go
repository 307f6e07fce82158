// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"

	"go.opentelemetry.io/otel/metric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
)

// labelLimit limits the values of an attribute, on any side or on one only.
type labelLimit struct {
	Name   string // as configured
	Key    string
	On     [ident.Sides]bool
	Values Bound // a limit of 0 allows no value

	Measured metric.MeasurementOption // attributes for measurements
}

// newLabelLimit parses `KEY`, `resource:KEY` or `attribute:KEY`.
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
