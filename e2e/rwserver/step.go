// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package rwserver

import (
	"net/http"
	"strconv"
	"time"
)

// Step says how to respond to one request. The zero step keeps the data and responds with 204 and the headers that the
// protocol requires.
type Step struct {
	// Status of the response. Data are kept only with 2xx.
	Status int
	// Keep keeps the data whatever the response is, like a receiver that stores data but fails to acknowledge them.
	Keep bool
	// Header is added to the response's, and may be wrong: a Content-Encoding of a plain body, Written headers with
	// wrong numbers.
	Header http.Header
	// RetryDate, if positive, asks for a pause of this length, by the date of its end, which is in whole seconds.
	RetryDate time.Duration
	// Body of the response.
	Body string
	// NoWritten omits the headers that say what was written, like a receiver of remote write 1.0 that took a 2.0
	// request.
	NoWritten bool
	// ReadPause is the time between reading one KiB of the body and the next.
	ReadPause time.Duration
	// Delay is the time between the end of the body and the response.
	Delay time.Duration
	// MaxRaw, if positive, responds 413 to bodies that are larger when decompressed.
	MaxRaw int
	// Fault breaks the exchange.
	Fault Fault
}

// Fault is a way to fail.
type Fault int

const (
	// NoFault responds as the step says.
	NoFault Fault = iota
	// Hang reads the body and never responds.
	Hang
	// ResetBeforeBody cuts the connection without reading the body.
	ResetBeforeBody
	// ResetAfterBody cuts the connection instead of responding.
	ResetAfterBody
)

// RetryAfterSeconds returns the header of a response that asks for a pause.
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
