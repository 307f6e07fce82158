// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package catalog knows the meaning of the lines of pages.
//
// The meaning of a line (its labels after relabelling, its place in a metric) is decided once, when the line is first seen, for all
// targets whose labels have the same names. If a rule reads the value of a target's label, each target is asked for the rule's
// result (Question), and the answers are a Condition of the line. A value of the target that many lines contain becomes a slot
// in the lines' texts (slots.go). Lines that differ only in values which no rule reads have the same shape, so that only the
// values of the next such line are read.
//
//	Catalog ──┬─ Line ── text, Name ── Condition ── question
//	          │    └──── Point ── Form ── Keys          what makes samples parts of one data point
//	          │             └──── Family ── Base        a metric, and the effect of its metadata
//	          │                      ├──── Resource
//	          │                      └──── Scope
//	          └─ asked by an Identity: the values of one target that lines refer to
//
// A Catalog keeps each of these once. They are grouped in types, each of which counts its bytes and knows what to forget
// in a sweep:
//
//	metrics   names, effects of metadata, resources, scopes
//	points    points, their keys and forms
//	pieces    of texts
//	shapes    of lines
//	unplaced  labels of lines that no metadata has placed yet
//	asked     questions, and conditions by their answers
//	Own       slots for values of single targets, and what is being learned about these
//	unused    how much may be out of use
//
// It knows neither pages nor scrapes: PageMetadata is told, line by line, what a page has said of its metrics so far. Callers
// hold a lock, and mark what they have met (Mark, MarkLines).
package catalog
