// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package api serves what Prometheus's HTTP API says of scraping, in the shapes of Prometheus in agent mode: targets,
// their metadata, scrape pools, configuration, status. There are no queries.
//
// A request costs what it shows and nothing is kept between requests. The number of connections is bounded. A server
// that listens on a loopback address only answers requests that were sent to one: what a browser was tricked into sending
// bears another name.
package api
