// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package memo remembers what was made of data that comes again and again, such as the labels of a series.
//
// A Table is bounded by bytes. What is in it stays for as long as it is asked for, and is not driven out by what is new: if that
// has no room, it is not remembered. What nobody has asked for in a while goes.
//
// What a table returns may be used for ever. It is never changed, and the garbage collector takes it away.
package memo
