// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package limit makes the loads that series limits are measured under, and the
// reports of such measurements.
//
// Requests are encoded before the clock starts; what differs from send to send
// (times, values, the names of what is new) is written into them in place, so
// that the load costs little of the machine that it shares with what is
// measured. Every point that is sent is known to be expected.
package limit
