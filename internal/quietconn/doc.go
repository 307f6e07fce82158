// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package quietconn reads from sockets and writes to them without telling the Go runtime.
//
// Go tells its scheduler of each system call, for it may block. Where nothing else went on, that wakes a thread which looks after the others:
// it then looks every 20 µs or so whether a processor is to be taken from somebody, for as long as the process has anything to do. In one that
// answers some hundred small requests a second that thread takes a seventh of the CPU. But to read from a socket that is in the poller never
// blocks: what is not there is waited for elsewhere.
//
// So that thread may stay asleep while goroutines run that do no other system call. It is what has one give way that has run for 10 ms; until it
// is woken, by the next timer or the next usual system call of anybody, nobody does that. Who uses this does a request's work in less.
//
// It is so on Linux, for sockets of package net. All else is read and written as it is, and so is everything in a build with the race
// detector: that takes it from the usual calls that what one end wrote happened before the other has read it.
package quietconn
