// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package page turns the pages of one job's targets into pmetric.Metrics.
//
// A page rarely changes its series, only its values. So a target keeps a plan: the lines of its last page, in order,
// and the layout of their metrics. The next page is compared with the plan, line by line. For an expected
// line only the number is parsed. All other lines go through a sequence of packages:
//
//	expo ──> catalog ──> plan ──> tree ──> page
//	bytes    meaning     pages    pdata    a scrape from start to end,
//	to       of a        to       made     its scrape metrics and
//	entries  line        plans    and      its memory budget
//	                              filled
//
// A Job has cohorts: targets whose labels have the same names. A cohort shares a catalog, a book of plans and pools of trees. A Target
// has its label values for the catalog (catalog.Identity), the history of its last pages (plan.History) and what its metrics
// contain of it (tree.Owner). A Scrape reads one page; a Result has the outcome. While it reads, a Scrape has a lineTracker, which follows the
// lines of the plan as long as the page does; samples, the values of lines; a memory budget; and what the page shows about values
// of its target: learning, and their replacement.
//
// A point takes many times the memory of its value. So the metrics of a large page are not made at once but in parts, each
// after the one before has been consumed and released: only once the whole page has been accepted, grouped by what they describe,
// the scrape metrics last. So a metric may continue in the next part. Meanwhile the values are
// held, and timestamps, exemplars and native histograms if there are any; neither trees nor a scrape's own memory are kept
// for another large page.
//
// A Scrape borrows the chunks it is fed and copies what it keeps. Metrics passed on belong to the caller until Release.
// Memory follows the pages last seen: a line that is in no target's plan is forgotten. The memory of a page is estimated while it
// is read, and a page that would take more than the job allows fails.
package page
