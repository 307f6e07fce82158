// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package amount

// Loss says why a point's value is not in its output.
type Loss uint8

// The reasons.
const (
	LossNone      Loss = iota
	LossBaseline       // of unknown beginning: only its increments from here on count
	LossOld            // not newer than the last
	LossNoValue        // a stale marker
	LossNotFinite      // NaN, or infinite, or it would make the sum so
	LossNoSum          // a histogram without a sum, where others have one
	LossBounds         // its bounds are in disorder, or none is one of the output's
	LossGauge          // gauges are dropped
	LossState          // no memory for it in the budget
	LossKind           // another kind of data than that of the output or member of its fingerprint
	LossOutput         // nothing that the rule makes is made of this type, or another rule makes the same
	LossSummary        // quantiles cannot be added
	Losses
)

// LossNames are what losses are called in metrics.
var LossNames = [Losses]string{
	"", NameBaseline, NameOutOfOrder, NameNoValue, NameNotFinite, NameNoSum, "bounds", "gauge", "state_full", "kind", "output",
	"summary",
}

// Names of losses that others use, too.
const (
	NameBaseline   = "baseline"
	NameNoSum      = "no_sum"
	NameNoValue    = "no_value"
	NameOutOfOrder = "out_of_order"
	NameNotFinite  = "not_finite"
)

// Taken says whether the point is dealt with all the same, or the rule's next action has its turn.
func (l Loss) Taken() bool { return l < LossBounds }
