// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package handback reports whether a receiver may reuse the memory of metrics once ConsumeMetrics has returned.
//
// By the Collector's rule metrics belong to the consumer they were given to, for as long as it likes. A receiver that
// fills the same memory again must therefore know that nothing behind it keeps metrics after it has returned.
//
// # What it means to keep nothing
//
// A component keeps no metrics if, once its ConsumeMetrics has returned nil:
//
//   - it keeps no reference to them or to a part of them: no metric, point, attribute map or slice, in no queue, cache, batch
//     or goroutine. What it needs later it has encoded or copied. Strings may be kept: they never change.
//   - it has moved no part of them elsewhere (MoveTo, MoveAndAppendTo), and has freed none of it.
//   - it has changed nothing in them that was there: no names, no attributes, no order of points. The receiver
//     notices what was removed or appended, see below.
//
// None of this holds after an error: a component may refuse metrics and still send them later, so a receiver does not reuse
// what was refused.
//
// # Who says so
//
// Exporters and processors answer for themselves, and for their configuration, by implementing [Releaser]. An exporter is
// found through the host. The Collector does not expose the instances of processors, so they call [Register]. A component that
// says nothing counts as one that keeps metrics. Exceptions are known components of the Collector: memory_limiter, nop, and
// processors that keep nothing but change attributes.
//
// # Who changes attributes
//
// Contrib's attributes, resource, k8sattributes and resourcedetection keep nothing, and change only lists of attributes. They are an obstacle to a
// receiver that takes metrics back as they are. [Obstacle].Changes tells a receiver that restores the lists what to restore. If attributes of points
// change, such a receiver leaves only notes about places in its loans ([Loan.Places]): with another target's resources a processor may do something
// else to the same points, so whoever uses such a note compares their attributes.
//
// # Who removes metrics
//
// Contrib's filter keeps nothing, and removes resources, scopes, metrics and points. A receiver that puts them back says so by
// looking at [Obstacle].Changes, too. Its loans reach the exporter with fewer points than were lent, and others each time, so a note
// about places is used after looking at the address of each point. Processors that borrow points, and put back what
// they have borrowed, must not be beside it.
//
// # Who is asked
//
// [Ask] looks at the graph of the host: the receiver must be in one pipeline, with one exporter, and each component on
// the way must keep nothing. Package hostgraph reads the graph; with an unknown host the answer is no. This
// needs no configuration and no extension.
//
// # Loans
//
// A receiver that will reuse memory passes a [Loan] in the context. It is the other half of the promise: a component
// that finds one knows that nothing behind it keeps metrics either. It may remove parts of the metrics for the next consumer,
// if it restores them once that has returned nil, and it may leave notes about the points, which the receiver drops when
// the points change.
//
// A loan is sealed ([Loan.Seal]) if nobody on the road changes attributes, as [UnreadWords] reports. Notes about points then hold without a look
// at their attributes ([Loan.Sealed]). How many points there are, and which of them are stale, is to be checked all the same.
//
// If metrics consist of other points each time, a loan may have a [Part] for points that stay together, and notes are
// left with the part.
//
// # Deferred values
//
// Writing the values of points costs as much as reading them from a page: each point is elsewhere in memory. If only an
// exporter that settles points reads them behind a receiver, as [Unread] says, the values of a part's points may be deferred: the
// part's Memory has the numbers side by side, and the points stay as they were until [Loan.Settle], which may never be called.
// Their metrics are absent, too: one metric with all points of a part stands in for them, so that whoever counts points handles
// one metric per part. Settling puts the real metrics in its place. The exporter asks each loan what it defers. A
// receiver that finds that nobody has asked defers nothing the next time, so whatever keeps a loan from the exporter costs
// speed and nothing else.
//
// If targets of a kind share memory, and each has values of its own in the attributes of its points, these are deferred likewise. A loan then has a
// [Wording], the values of a target; whoever knows it knows the points without reading an attribute. This goes with processors that are a [WordSettler],
// too ([UnreadWords]): who takes points out for the next consumer, or adds some, settles and has the loan defer nothing ([Loan.Unword]).
//
// # Batches
//
// The Collector's batch keeps metrics: it moves their resources into others, which it passes on later. It does nothing else to them, so they
// return in the end. If [Ask] reports a batch ([Obstacle].Batch), a receiver sends metrics ([Loan.Send]). An exporter right behind the batch, a
// [Returner], finds the loans of what arrives ([Arrive]) and returns it ([Return]). Scopes are recognised by their addresses, which they keep. What
// was cut by a batch with a maximum size, what was refused and what never arrives is lost to the receiver, which makes metrics anew.
//
// # What forbids it
//
// Several pipelines or exporters (the Collector shares or copies the metrics between them), a connector, a component that
// keeps metrics or does not say, and the Collector's gate pdata.useProtoPooling, by which the Collector itself frees metrics
// when the first consumer returns. [Ask] names them in the order in which metrics meet them.
//
// # What a receiver must check
//
// A component can break its promise. A receiver checks what is returned before it fills it again, and starts with new memory if
// anything has changed: resources, scopes, metrics with their names and types, the number and the identity of points, and how many
// attributes each has. What would cost as much as building metrics anew is not checked: whether the value of a point's attribute
// was replaced in place (package reuse checks some of the attributes that requests share each time), and whether somebody
// still reads what is being filled. For these there is poison: in builds with the tag invariants, or with [Poison], memory is
// overwritten before it is reused, so that a component that kept it sees values that nobody ever sent.
package handback
