// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package quietconn reads from sockets and writes to them without telling the Go runtime.
//
// Go tells its scheduler of each system call, because it may block. If nothing else runs, that wakes a thread that watches the others:
// it then checks every 20 µs or so whether a processor should be taken from somebody, as long as the process has anything to do. In a process that
// answers some hundred small requests a second that thread takes a seventh of the CPU. But a read from a socket in the poller never
// blocks: the poller waits for missing data.
//
// So that thread may stay asleep while goroutines run that do no other system call. It preempts a goroutine that has run for 10 ms; until it
// is woken, by the next timer or anybody's next usual system call, nobody does that. Users of this package handle a request in less.
//
// This applies to Linux, and to sockets of package net. Everything else is read and written as usual, and so is everything in a build with the race
// detector, which concludes from the usual calls that what one end wrote happened before the other has read it.
package quietconn
