// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cache

// ScopeLabels says which series have the name, version and attributes of their scope as labels.
type ScopeLabels uint8

// The choices.
const (
	ScopeLabelsOff  ScopeLabels = iota
	ScopeLabelsOn               // all series
	ScopeLabelsAuto             // all but scraped ones, whose scope only ever names the receiver
)

// Delta says what becomes of points that count since the last point.
type Delta uint8

// The choices.
const (
	DeltaDrop       Delta = iota // left out and counted
	DeltaCumulative              // summed up, with state that is bounded
)

// Config says which series points become.
type Config struct {
	// ScopeLabels adds the scope as labels.
	ScopeLabels ScopeLabels
	// PromoteResourceAttributes are globs of the resource attributes that become labels of each series,
	// ExcludeResourceAttributes exceptions to them. ResourceWins decides a clash with a point's attribute.
	PromoteResourceAttributes []string
	ExcludeResourceAttributes []string
	ResourceWins              bool
	// TargetInfo makes a target_info series for each resource, and Metadata has type, help and unit be known of each series.
	TargetInfo bool
	Metadata   bool
	// CustomBuckets turns histograms with explicit bounds into native ones, which only 2.0 can carry.
	// KeepClassic sends the classic series too.
	CustomBuckets bool
	KeepClassic   bool
	// Delta says what becomes of delta points.
	Delta Delta
	// MaxSeries bounds the points recognised, and the resources. Beyond it points are still sent, but each
	// is translated anew, until Expire finds idle ones to forget.
	MaxSeries int
	// MaxBytes bounds the memory of all of these together, which depends on how long their texts are. 0 is any.
	MaxBytes int64
	// MaxGrowth bounds by how much that memory grows before what is new should be flushed: its texts are written to the
	// requests of one round, which are in memory together. 0 is any.
	MaxGrowth int64
	// IdleGenerations is how many calls of Expire an entry survives without being seen.
	IdleGenerations int
}
