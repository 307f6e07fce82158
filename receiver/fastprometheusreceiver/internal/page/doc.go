// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package page turns the pages of one job's targets into pmetric.Metrics.
//
// A page rarely changes its series, only its values. So a target keeps a plan: the lines of its last page, in order,
// and the layout of the metrics they make. The next page is compared with it, line by line, and of a line that is as
// expected only the number is read. What a line means - its labels after relabelling, its place in a metric - is decided
// once, when it is first seen, and kept for all targets of the job that have the same names of labels: their cohort. Where a
// rule reads the value of a target's label, each target is asked what the rule makes of it, and the answers are a condition of
// the line. What a page says of its target on many lines is one of the target's values, too: a slot in the lines' texts.
//
// Targets with the same page share the plan itself, too. One whose page lacks some of its lines and has others instead
// keeps the plan, and besides it the difference: what that changes is worked out for the lines that differ, and the metrics
// are the plan's but for some points. A page that differs by more than series that come and go, or by many of them, makes
// a plan of its own.
//
// A point takes many times the memory of its value. So the metrics of a large page are not made at once but in parts, each
// after the one before has been consumed and let go: only once the whole page has been accepted, what several metrics say
// of the same things together, the report's metrics last. So a metric may go on in the next part. Meanwhile the values are
// held, and times, exemplars and native histograms where there are some; neither trees nor a scrape's own memory are kept
// for another large page. Of an attribute's value, a point knows where it is in the text of its line. The texts of a large
// page are in pieces that they share.
//
// A Scrape borrows the chunks it is fed and copies what it keeps. Metrics handed out belong to the caller until Release.
// Memory follows the pages last seen: a line that is in no target's plan is forgotten. What a page takes is added up while it
// is read, by estimate, and one that would take more than the job allows fails.
package page
