// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpserver

import (
	"net/http"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Step says how one request is answered. The zero step keeps the data and says so.
type Step struct {
	// Code of the answer. Data answered with anything but OK is not kept. Over HTTP
	// it becomes the status that stands for it, unless HTTPStatus is set.
	Code       codes.Code
	HTTPStatus int
	Message    string
	// RetryInfo asks for a pause: as a detail of the gRPC status, as Retry-After in
	// whole seconds over HTTP. nil sends neither; zero is a pause of none.
	RetryInfo *time.Duration
	// Keep keeps the data whatever the answer: the receiver that stores and then
	// fails to say so.
	Keep bool
	// Rejected and RejectedMessage make a success partial.
	Rejected        int64
	RejectedMessage string
	// Delay passes before the answer.
	Delay time.Duration
	// Fault spoils the exchange.
	Fault Fault
}

// Fault is a way not to answer.
type Fault int

const (
	// NoFault answers as the step says.
	NoFault Fault = iota
	// Hang never answers.
	Hang
	// Reset cuts the connection instead of answering, and with it every other
	// request on it.
	Reset
)

func (s Step) ok() bool { return s.Fault == NoFault && s.Code == codes.OK && s.HTTPStatus/100 <= 2 }

func (s Step) keeps() bool { return s.Keep || s.ok() }

// proto is the status as both transports carry it.
func (s Step) proto() *spb.Status {
	st := status.New(s.Code, s.Message)
	if s.RetryInfo != nil && s.Code != codes.OK {
		// Cannot fail: the detail is a known message and the code is not OK.
		st, _ = st.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(*s.RetryInfo)})
	}
	return st.Proto()
}

func (s Step) httpStatus() int {
	if s.HTTPStatus != 0 {
		return s.HTTPStatus
	}
	switch s.Code {
	case codes.OK:
		return http.StatusOK
	case codes.InvalidArgument:
		return http.StatusBadRequest
	case codes.Unauthenticated:
		return http.StatusUnauthorized
	case codes.PermissionDenied:
		return http.StatusForbidden
	case codes.Unimplemented:
		return http.StatusNotFound
	case codes.ResourceExhausted:
		return http.StatusTooManyRequests
	case codes.Unavailable:
		return http.StatusServiceUnavailable
	case codes.DeadlineExceeded:
		return http.StatusGatewayTimeout
	default:
		return http.StatusInternalServerError
	}
}
