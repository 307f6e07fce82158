// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package http1 serves HTTP/1.1 over connections without TLS, with one goroutine for each connection and none beside.
//
// It has net/http read requests, and calls the same handlers with the same contexts. What it leaves out is to watch a connection while
// its request is answered: net/http starts a goroutine for that with each request, and wakes it up to end it, which on idle processors
// takes as long as some hundred samples do. Here a connection is watched once somebody asks for the Done channel of the request's
// context: whoever waits is still told when the client goes.
//
// Answers are sent when the handler returns, or have come to 64 KiB. A connection whose request was not read to its end is closed
// with its answer. There is no HTTP/2, no hijacking, no trailers and no flushing: who needs these has net/http.
package http1
