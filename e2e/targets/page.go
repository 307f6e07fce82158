// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"net/http"
	"time"
)

// Page is a target's response to a scrape.
type Page struct {
	Body string
	// ContentType defaults to the Prometheus text format 0.0.4.
	ContentType string
	// Status defaults to 200.
	Status int
	// Header is added to the response's.
	Header http.Header
	// Encodings are what the target can send, best first: "zstd", "gzip". The first one that the request accepts is
	// used, otherwise none. nil means both; an empty list means none.
	Encodings []string
	// Delay is the time before the response.
	Delay time.Duration
	// Drip sends the body in chunks of that many bytes, DripPause apart.
	Drip      int
	DripPause time.Duration
	// Fault breaks the response.
	Fault Fault
}

// Fault is a way to fail.
type Fault int

const (
	// NoFault responds as the page says.
	NoFault Fault = iota
	// Hang never responds.
	Hang
	// Reset cuts the connection instead of responding.
	Reset
	// ResetMidBody cuts the connection after half of the body.
	ResetMidBody
	// Endless sends the body again and again until the client closes the connection.
	Endless
)

const defaultContentType = "text/plain; version=0.0.4; charset=utf-8"
