// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package handback says whether a receiver may use the memory of metrics again once ConsumeMetrics has returned.
//
// The Collector's rule is that metrics belong to the consumer they were given to, for as long as it likes. A receiver that
// fills the same memory again therefore needs to know that everything behind it lets go of metrics before it returns.
//
// # What it means to let go
//
// A component lets go of metrics if, once its ConsumeMetrics has returned nil:
//
//   - it keeps no reference to them or to a part of them: no metric, point, attribute map or slice, in no queue, cache, batch
//     or goroutine. What it needs later it has encoded or copied. Strings may be kept: they never change.
//   - it has moved no part of them elsewhere (MoveTo, MoveAndAppendTo), and has freed none of it.
//   - it has changed nothing in them that was there: no names, no attributes, no order of points. Whoever wants to do so
//     does not let go. What was removed or appended is found, see below.
//
// After an error nothing of this is asked. A component may refuse metrics and send them again on its own, so a receiver does
// not use again what was refused.
//
// # Who says so
//
// Exporters and processors answer for themselves, and for their configuration, by implementing [Releaser]. An exporter is
// found through the host. The Collector shows the instance of a processor to nobody, so that one makes itself known with
// [Register]. Who says nothing is taken to keep metrics, apart from components of the Collector that are known: memory_limiter, nop,
// and two that let go but for what they change.
//
// # Who changes attributes
//
// The Collector's attributes and resource processors keep nothing, and change nothing but lists of attributes. They stand in the way of a
// receiver that takes metrics back as they are, and [Obstacle].Changes tells one that puts the lists back what to put back. That one leaves
// no notes in its loans where points change: with others' resources a processor may do something else to the same points.
//
// # Who is asked
//
// [Ask] looks at the graph of the host: the receiver must be in one pipeline, with one exporter, and each component on
// the way must let go. The graph is package hostgraph's to read; with a host that it does not know the answer is no. Nothing has
// to be configured for this, and no extension is involved.
//
// # Loans
//
// A receiver that will use memory again hands it on with a [Loan], in the context. It is the other half of the promise: who
// finds one knows that all behind him let go, too. He may take out parts of the metrics for the next consumer, if he puts them
// back once that has returned nil, and he may leave notes about the points, which the receiver drops when these change.
//
// Where metrics are put together of other points each time, a loan may have a [Part] for those that stay together, and notes are left with that.
//
// # What points owe
//
// To write what points say takes as long as to find it out: each is elsewhere in memory. Where [Unread] says that nobody behind a receiver reads
// points but an exporter that settles them, those of parts may owe it: a part's Memory has the numbers side by side, and the points are as they
// were until [Loan.Settle], which may be never. Nor are their metrics there: one that has all the points of a part stands for these, so that who
// counts points goes through one metric for each part. Settling puts the metrics into its place. The exporter asks each loan what it owes. A receiver that finds that nobody has asked owes nothing
// the next time, so whatever keeps a loan from the exporter costs speed alone.
//
// # What forbids it
//
// Several pipelines or exporters (the Collector shares or copies the metrics between them), a connector, a component that
// keeps metrics or does not say, and the Collector's gate pdata.useProtoPooling, by which the Collector itself frees metrics
// when the first consumer returns. [Ask] names them in the order in which metrics meet them.
//
// # What a receiver must check
//
// A promise can be broken. A receiver checks what comes back before it fills it again, and begins anew if anything is not as
// it was: resources, scopes, metrics with their names and types, the number and the identity of points, and how many
// attributes each has. What would cost as much as building metrics anew is not checked: the value of a point's attribute
// that was replaced in place (of attributes that requests share, package reuse checks some each time), and whether somebody
// still reads what is being filled. For these there is poison: in builds with the tag invariants, or with [Poison], what was handed back is overwritten before it is used again, so that
// who keeps it sees values that nobody ever sent.
package handback
