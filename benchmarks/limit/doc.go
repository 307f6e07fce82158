// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package limit generates the loads under which series limits are measured, and renders the reports.
//
// Requests are encoded before the clock starts. What differs between sends (times, values, names of new series) is
// overwritten in place, so that the load takes little CPU from the agents on the same machine. The number of points
// that must arrive is known exactly.
package limit
