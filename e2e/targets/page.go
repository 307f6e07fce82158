// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"net/http"
	"time"
)

// Page is a target's answer to one scrape.
type Page struct {
	Body string
	// ContentType defaults to the Prometheus text format 0.0.4.
	ContentType string
	// Status defaults to 200.
	Status int
	// Header is added to the answer's.
	Header http.Header
	// Encodings lists what the target can send, best first: "zstd", "gzip". The
	// first that the request accepts is used, else the plain body. nil means both;
	// an empty list means none.
	Encodings []string
	// Delay passes before the answer begins.
	Delay time.Duration
	// Drip sends the body in pieces of that many bytes, DripPause apart.
	Drip      int
	DripPause time.Duration
	// Fault spoils the answer.
	Fault Fault
}

// Fault is a way not to answer.
type Fault int

const (
	// NoFault answers as the page says.
	NoFault Fault = iota
	// Hang never answers.
	Hang
	// Reset cuts the connection instead of answering.
	Reset
	// ResetMidBody cuts the connection after half of the body.
	ResetMidBody
	// Endless sends the body again and again until the client goes away.
	Endless
)

const defaultContentType = "text/plain; version=0.0.4; charset=utf-8"
