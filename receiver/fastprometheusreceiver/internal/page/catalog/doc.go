// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package catalog knows what the lines of pages mean.
//
// What a line means - its labels after relabelling, its place in a metric - is decided once, when it is first seen, for all
// targets whose labels have the same names. Where a rule reads the value of a target's label, each target is asked what the rule
// makes of it (Question), and the answers are a Condition of the line. What a page says of its target on many lines is one of the
// target's values, too: a slot in the lines' texts (slots.go). Lines that differ in nothing but values which no rule reads have a
// shape, so that of the next one only the values are taken.
//
//	Catalog ──┬─ Line ── text, Name ── Condition ── question
//	          │    └──── Point ── Form ── Keys          what makes samples parts of one data point
//	          │             └──── Family ── Base        a metric, and what its metadata makes of it
//	          │                      ├──── Resource
//	          │                      └──── Scope
//	          └─ asked by an Identity: the values that lines leave to one target
//
// A Catalog keeps each of these once. What belongs together has a type of its own, which counts its bytes and knows what to forget
// in a sweep:
//
//	metrics   names, what metadata makes of them, resources, scopes
//	points    points, their keys and forms
//	pieces    of texts
//	shapes    of lines
//	unplaced  labels of lines that no metadata has placed yet
//	asked     questions, and conditions by their answers
//	Own       slots of values that pages say of one target alone, and what is found out about these
//	litter    how much may be out of use
//
// It knows neither pages nor scrapes: PageMetadata is told line by line what a page has said of its metrics up to there. Callers
// hold a lock, and tell by marks (Mark, MarkLines) which things they have met.
package catalog
