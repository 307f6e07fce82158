// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package tree makes pmetric.Metrics of values and layouts.
//
// A View is what a scrape has read; a cursor goes through a Layout, or the points that a variation adds, and fills metrics from it.
// What has been handed out and come back is filled again: a Tree waits in a Pool for the next page with the same metrics, and is
// looked at before, since others had it (intact.go). The metrics of a large page are made in Parts, each after the one before has
// been consumed, so that they are never there as a whole.
//
// A tree takes many times the memory of a page's values until it is filled again. Where that is seldom, as for pages that few targets show,
// no tree is kept if more than some points would wait in all: metrics are made anew, of memory that serves any page (made.go). Then they come
// in parts from two parts on, since that memory is as large as what is made at once.
//
// Pages of the same metrics take turns in few trees. Points that one has less than the last are stowed in the tree, without what is a target's, until a
// page has more again; they count as points that wait.
//
//	Pools ── Pool ── Tree ── record           for pages with the same metrics
//	Parts ──┬ made ── slab.Slabs              for large pages
//	Passing ┘                                 and for those of which no tree is kept
//	cursor ─┬ View ── Owner                   whose values fill what lines leave to the target
//	        └ choice                          which points a metric is to have, and which of them it has
package tree
