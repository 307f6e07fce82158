// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package plan compares pages with earlier ones.
//
// A Plan is a page without its values: its lines in order, and the Layout of their metrics. Targets with the same page share
// it. A page that lacks some of the lines and has other ones instead keeps the plan: the Difference lists them, and the Variation is their
// effect on the layout. If a page differs by more, a Pass goes through all its lines, and makes another plan.
//
//	Book ──┬─ Plan ─┬ Layout ── groups, runs       shared by targets; a Book belongs to a catalog
//	       │        └ Text                         of its lines, to compare pages with
//	       ├─ Pass                                 decides the meaning of a page's lines, given its metadata
//	       └─ History ── Difference ── Variation   the last pages of one target
//
// It knows values only where they decide something: timestamps, and which form a histogram has.
package plan
