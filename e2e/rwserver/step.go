// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package rwserver

import (
	"net/http"
	"strconv"
	"time"
)

// Step says how one request is answered. The zero step keeps the data and
// answers 204 with the headers the protocol asks for.
type Step struct {
	// Status of the answer. Data answered with anything but 2xx is not kept.
	Status int
	// Keep keeps the data whatever the answer: the receiver that stores and then
	// fails to say so.
	Keep bool
	// Header is added to the answer's, and may lie: Content-Encoding of a plain
	// body, Written headers with wrong numbers.
	Header http.Header
	// RetryDate, if positive, asks for a pause as long as this, by the date of its
	// end, which is in whole seconds.
	RetryDate time.Duration
	// Body of the answer.
	Body string
	// NoWritten leaves out the headers that tell what was written, as a receiver of
	// remote write 1.0 that took a 2.0 request would.
	NoWritten bool
	// ReadPause passes between reading one KiB of the body and the next.
	ReadPause time.Duration
	// Delay passes between the end of the body and the answer.
	Delay time.Duration
	// MaxRaw, if positive, answers 413 to whatever is larger when decompressed.
	MaxRaw int
	// Fault spoils the exchange.
	Fault Fault
}

// Fault is a way not to answer.
type Fault int

const (
	// NoFault answers as the step says.
	NoFault Fault = iota
	// Hang reads the body and never answers.
	Hang
	// ResetBeforeBody cuts the connection without reading the body.
	ResetBeforeBody
	// ResetAfterBody cuts the connection instead of answering.
	ResetAfterBody
)

// RetryAfterSeconds is the header of an answer that asks for a pause.
func RetryAfterSeconds(n int) http.Header {
	return http.Header{"Retry-After": {strconv.Itoa(n)}}
}

func (s Step) status() int {
	if s.Status == 0 {
		return http.StatusNoContent
	}
	return s.Status
}

func (s Step) keeps() bool {
	return s.Keep || s.Fault == NoFault && s.status()/100 == 2
}
