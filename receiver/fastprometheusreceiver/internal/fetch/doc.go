// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package fetch gets the pages of scrape targets.
//
// A Target reads a response into its caller's buffer, still compressed. A Decoder turns it into chunks of plain text,
// each valid until the next one. A large uncompressed page is passed on in parts as it arrives, and never held as
// a whole. An idle target holds a connection and its URL, but no buffer and no goroutine.
//
// A target is fetched in one of two ways, with the same results. The direct way is our own HTTP/1.1 exchange, with TLS or
// without, without proxy and OAuth2. Everything else, including redirects and servers that only speak HTTP/2, goes through
// net/http with Prometheus's own client settings.
//
// Everything that a peer sends is limited: the head to 64 KiB, the body to the job's body_size_limit, compressed and
// decompressed, and the whole exchange to the scrape's timeout, including the time of an OAuth2 token server.
package fetch
