// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package fetch gets the pages of scrape targets.
//
// A Target reads a response into its caller's buffer, still compressed; a Decoder turns it into chunks of plain text,
// borrowed until the next one. A large page that is not compressed is handed on in parts as it comes in, and never held as
// a whole. An idle target holds a connection and its URL, but no buffer and no goroutine.
//
// A target takes one of two roads, with the same results. The plain road is an HTTP/1.1 exchange of our own, through TLS or
// not, without proxy and OAuth2. Everything else, whoever redirects, and whoever speaks HTTP/2 alone goes through net/http with
// Prometheus' own client settings.
//
// Everything that a peer sends is bounded: the head by 64 KiB, the body by the job's body_size_limit, compressed or
// not, and the whole exchange by the scrape's timeout, what a token server of OAuth2 takes of it included.
package fetch
