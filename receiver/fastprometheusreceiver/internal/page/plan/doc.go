// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package plan compares pages with the last ones.
//
// A Plan is a page, values aside: its lines in order, and the Layout of the metrics that they make. Targets with the same page share
// it. A page that lacks some of its lines and has others instead keeps the plan: the Difference says which, and the Variation what
// that changes in the layout. Where a page differs by more, a Pass goes through all its lines once more, and makes another plan.
//
//	Book ──┬─ Plan ─┬ Layout ── groups, runs       shared by targets; a Book is that of a catalog
//	       │        └ Text                         of its lines, for pages to be compared with
//	       ├─ Pass                                 decides what a page's lines are, given what the page says
//	       └─ History ── Difference ── Variation   what the last pages of one target came to
//
// It is told of values only where they decide something: timestamps, and which representation a histogram has.
package plan
