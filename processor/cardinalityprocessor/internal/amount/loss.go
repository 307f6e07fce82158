// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package amount

// Loss is the reason why a point's value is not in its output.
type Loss uint8

// The reasons.
const (
	LossNone      Loss = iota
	LossBaseline       // its start is unknown: only increments from here on count
	LossOld            // not newer than the last
	LossNoValue        // a stale marker
	LossNotFinite      // NaN, or infinite, or it would make the sum so
	LossNoSum          // a histogram without a sum, to be added to others that have one
	LossBounds         // its bounds are not ascending, or the output has none of them
	LossGauge          // gauges are dropped, by configuration
	LossState          // there is no memory in the budget for it
	LossKind           // its type differs from that of the output or of the series with its fingerprint
	LossOutput         // the rule makes nothing of this type, or another rule makes the same series
	LossSummary        // quantiles cannot be added
	Losses
)

// LossNames are the names of losses in metrics.
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

// Taken reports whether the point counts as handled, so that the rule's next action is not tried.
func (l Loss) Taken() bool { return l < LossBounds }
