// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package page turns the pages of one job's targets into pmetric.Metrics.
//
// A page rarely changes its series, only its values. So a target keeps a plan: the lines of its last page, in order,
// and the layout of the metrics they make. The next page is compared with it, line by line, and of a line that is as
// expected only the number is read. What becomes of the rest goes through packages that follow each other:
//
//	expo ──> catalog ──> plan ──> tree ──> page
//	bytes    what a      pages    pdata    a scrape's life, its report and its budget
//	to       line        to       made
//	entries  means       plans    and filled
//
// A Job has cohorts: targets whose labels have the same names, which share a catalog, a book of plans and pools of trees. A Target
// has what a catalog asks it (catalog.Identity), what its last pages came to (plan.History) and what its metrics bear (tree.Owner).
// A Scrape reads one page; a Result has what came of it. While it reads, a Scrape has a course, which goes along with the lines of the
// plan as long as the page does; samples, which are what lines say; a budget of memory; and what the page teaches about values of its
// target's own: learning, and the replacement of some by others.
//
// A point takes many times the memory of its value. So the metrics of a large page are not made at once but in parts, each
// after the one before has been consumed and let go: only once the whole page has been accepted, what several metrics say
// of the same things together, the report's metrics last. So a metric may go on in the next part. Meanwhile the values are
// held, and times, exemplars and native histograms where there are some; neither trees nor a scrape's own memory are kept
// for another large page.
//
// A Scrape borrows the chunks it is fed and copies what it keeps. Metrics handed out belong to the caller until Release.
// Memory follows the pages last seen: a line that is in no target's plan is forgotten. What a page takes is added up while it
// is read, by estimate, and one that would take more than the job allows fails.
package page
