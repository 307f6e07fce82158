// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package tree makes pmetric.Metrics of values and layouts.
//
// A View is what a scrape has read. A cursor goes through a Layout, or the points that a variation adds, and fills metrics from it.
// Metrics that come back from the pipeline are filled again: a Tree waits in a Pool for the next page with the same metrics, and is
// checked first, because other components had it (intact.go). The metrics of a large page are made in Parts, each after the one before has
// been consumed, so that they are never in memory as a whole.
//
// A waiting tree takes many times the memory of a page's values. If it would be filled rarely, as for pages of few targets,
// and too many points would wait in all, no tree is kept: metrics are made anew, of memory that serves any page (recycled.go). Then they come
// in parts from two parts on, because that memory is as large as what is made at once.
//
// Pages of the same metrics share a few trees in turn. If a page has fewer points than the last, the rest is stowed in the tree, without a
// target's values, until a page has more again; stowed points count as waiting.
//
//	Pools ── Pool ── Tree ── record           for pages with the same metrics
//	Parts ────┬ recycled ── slab.Slabs        for large pages
//	Transient ┘                               and for those of which no tree is kept
//	cursor ─┬ View ── Owner                   the target whose values fill the slots
//	        └ choice                          which points a metric must have, and which of them it has
package tree
