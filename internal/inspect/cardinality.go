// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import "time"

// Cardinality answers questions about the series that a processor sees. It reads counters and a sample of series: an
// answer may take milliseconds, and never holds up data.
type Cardinality interface {
	// Overview returns the state of the processor, its limits and their effects.
	Overview() CardinalityOverview
	// Top lists the metrics, labels, pairs or groups with the most of something.
	Top(query TopQuery) Top
	// Metric returns all that is known about a metric, false if it has not been seen.
	Metric(name string) (MetricDetail, bool)
	// WhatIf estimates the effect of a change on the number of series.
	WhatIf(change Change) (Projection, error)
}

// CardinalityOverview is the state of a processor.
type CardinalityOverview struct {
	Mode        string    `json:"mode"` // enforce, dry_run
	Series      int64     `json:"series"`
	MaxSeries   int64     `json:"max_series"`
	Metrics     int       `json:"metrics"`       // distinct names, an estimate
	NamesError  float64   `json:"metrics_error"` // its standard error
	Rejected    Estimate  `json:"rejected_series"`
	Admitted    int64     `json:"admitted_total"` // series ever admitted, and expired since
	Expired     int64     `json:"expired_total"`
	Memory      int64     `json:"memory_bytes"`
	Groups      int       `json:"groups"`
	SampleSize  int       `json:"sample_size"` // series in the sample for estimates
	SampleSince time.Time `json:"sample_since"`
	RulesFault  string    `json:"rules_fault"` // why the rules file cannot be used

	// What rules must respect: the resource labels that identify tenants, and how long a series may be silent.
	TenantLabels []string      `json:"-"`
	IdleTimeout  time.Duration `json:"-"`

	Limits   []Limit    `json:"limits"`
	Rejects  []Reject   `json:"rejects"`  // latest first
	Overflow []Overflow `json:"overflow"` // most members first
	Events   []Event    `json:"events"`   // latest first
}

// A Limit is a limit and its use. Each group of a rule has this limit; the fullest groups are listed.
type Limit struct {
	Rule     string     `json:"rule"`
	What     string     `json:"what"` // series, new series per minute, points per second, values of a label
	Label    string     `json:"label"`
	Match    string     `json:"match"` // of the rule, as text
	Owner    []Label    `json:"owner,omitempty"`
	Max      int64      `json:"max"`
	Used     int64      `json:"used"` // in the fullest group
	Groups   int        `json:"groups"`
	Action   string     `json:"action"`
	Rejected Estimate   `json:"rejected_series"`
	Points   int64      `json:"rejected_points"`
	Last     time.Time  `json:"last_rejection"`       // zero if never
	Matched  *time.Time `json:"last_match,omitempty"` // of the rule, absent if it never matched anything
	Fullest  []GroupUse `json:"fullest"`
}

// GroupUse is the use of a limit by one group.
type GroupUse struct {
	Group []Label `json:"group"`
	Used  int64   `json:"used"`
	Max   int64   `json:"max"`
}

// A Reject is an example of a series that a limit rejected.
type Reject struct {
	At     time.Time `json:"at"`
	Rule   string    `json:"rule"`
	Reason string    `json:"reason"`
	Action string    `json:"action"`
	Tenant string    `json:"tenant"`
	Metric string    `json:"metric"`
	Labels []Label   `json:"labels"`
}

// Overflow is a series that the processor made of others.
type Overflow struct {
	Rule    string  `json:"rule"`
	Metric  string  `json:"metric"`
	Labels  []Label `json:"labels"`
	Members int     `json:"members"`
}

// An Event is a one-time event.
type Event struct {
	At   time.Time `json:"at"`
	Kind string    `json:"kind"` // first_rejection, limit_reached, release, rule_silent, rules_applied, rules_failed
	Rule string    `json:"rule"`
	Text string    `json:"text"`
}

// The subject of a list, and its order.
const (
	TopMetrics = "metrics"
	TopLabels  = "labels"
	TopPairs   = "pairs" // of label and value
	TopGroups  = "groups"

	BySeries   = "series"
	ByNew      = "new"  // new series per minute
	ByGone     = "gone" // expired series
	ByPoints   = "points"
	ByRejected = "rejected"
	ByValues   = "values" // distinct values of a label
)

// A TopQuery asks for a list.
type TopQuery struct {
	Of     string // one of the Top constants
	By     string // one of the By constants; BySeries if it does not apply
	N      int    // number of rows, at most 1000
	Match  string // only names that contain this
	Metric string // only this metric, for labels and pairs
	Label  string // only this label, for pairs; the label to group by, for groups
}

// Top is a list, with the total of which it is a part.
type Top struct {
	// Total is the number of series that rows are parts of: the existing ones and, if more have ended recently, those
	// as well; for labels, also the rejected ones.
	Total float64 `json:"total_series"`
	Rows  []Row   `json:"rows"`
	More  bool    `json:"more"` // there are more rows
}

// A Row is a metric, a label, a pair or a group. Fields that do not apply are empty.
type Row struct {
	Name            string   `json:"name"`
	Value           string   `json:"value"` // of a pair or group
	Type            string   `json:"type"`  // of a metric
	Temporality     string   `json:"temporality"`
	Unit            string   `json:"unit"`
	Series          Estimate `json:"series"`
	NewPerMinute    Estimate `json:"new_per_minute"`
	GonePerMinute   Estimate `json:"gone_per_minute"`
	PointsPerSecond Estimate `json:"points_per_second"`
	Rejected        Estimate `json:"rejected_series"`
	Limit           int64    `json:"limit"`       // the lowest limit on its series, 0 for none
	Used            int64    `json:"used"`        // of this limit
	WorstLabel      string   `json:"worst_label"` // of a metric: the label with the most values
	Values          Estimate `json:"values"`      // of a label: distinct values
	Metrics         int      `json:"metrics"`     // of a label: metrics that have it
	IDLike          bool     `json:"id_like"`     // of a label: nearly every series has a value of its own
	Examples        []string `json:"examples"`
}

// MetricDetail is all that is known about one metric.
type MetricDetail struct {
	Row

	Labels   []Row     `json:"labels"`
	Examples [][]Label `json:"example_series"`
}

// A Change is a possible change.
type Change struct {
	Metric string   `json:"metric"` // empty: all metrics
	Drop   []string `json:"drop"`   // labels to remove
	Keep   []string `json:"keep"`   // the only labels to keep, if not empty
	Max    int64    `json:"max"`    // a limit on series, 0 for none
}

// A Projection is the estimated effect of a change.
type Projection struct {
	Before Estimate `json:"before"`
	After  Estimate `json:"after"`
	// Merged are the series that would be added up with others, because of a limit or a removed label.
	Merged Estimate `json:"merged"`
	Note   string   `json:"note"` // what to note
}
