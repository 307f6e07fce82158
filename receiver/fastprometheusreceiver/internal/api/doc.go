// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package api serves the part of Prometheus's HTTP API that is about scraping, in the format of Prometheus in agent mode: targets,
// their metadata, scrape pools, configuration, status. There are no queries.
//
// A request costs what it shows, and nothing is kept between requests. The number of connections is limited. A server
// that listens on a loopback address only answers requests for such an address: a request that a web page tricked the browser
// into sending has another host name.
package api
