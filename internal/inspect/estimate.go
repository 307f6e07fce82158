// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"encoding/json"
	"math"
)

// An Estimate is a number that is not counted exactly. The truth is within Error of Value with a probability of about
// two in three; an Error of 0 means that it is exact.
type Estimate struct {
	Value float64 `json:"value"`
	Error float64 `json:"error"`
}

// Known reports whether the value is meaningful: it is exact, or larger than its error.
func (e Estimate) Known() bool { return e.Error == 0 || e.Error < e.Value }

// AtMost returns a number that the true one hardly exceeds.
func (e Estimate) AtMost() float64 { return math.Ceil(max(e.Value, 0) + 2*e.Error) }

// Plus adds an independent estimate.
func (e Estimate) Plus(o Estimate) Estimate {
	return Estimate{Value: e.Value + o.Value, Error: math.Round(math.Hypot(e.Error, o.Error))}
}

// MarshalJSON includes the value only if it is known, and otherwise an upper bound.
func (e Estimate) MarshalJSON() ([]byte, error) {
	type shown struct {
		Value  float64 `json:"value"`
		Error  float64 `json:"error"`
		AtMost float64 `json:"at_most,omitempty"`
	}
	if e.Known() {
		return json.Marshal(shown{Value: e.Value, Error: e.Error})
	}
	return json.Marshal(shown{AtMost: e.AtMost()})
}
