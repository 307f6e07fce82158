// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package http1 serves HTTP/1.1 over connections without TLS, with one goroutine for each connection.
//
// net/http still reads requests, and the same handlers are called with the same contexts. But the connection is not watched while
// its request is answered. net/http starts a goroutine for that with each request, and wakes it up to end it, which on idle processors
// takes as long as some hundred samples do. Here a connection is watched once somebody asks for the Done channel of the request's
// context: whoever waits is still told when the client closes.
//
// Answers are sent when the handler returns, or when they reach 64 KiB. A connection whose request was not read to its end is closed
// with its answer. There is no HTTP/2, no hijacking, no trailers and no flushing: use net/http for these.
package http1
