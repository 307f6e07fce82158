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

// Step says how to respond to one request. The zero step keeps the data and responds OK.
type Step struct {
	// Code of the response. Data are kept only with OK. Over HTTP it becomes the corresponding status, unless
	// HTTPStatus is set.
	Code       codes.Code
	HTTPStatus int
	Message    string
	// RetryInfo asks for a pause: as a detail of the gRPC status, or over HTTP as Retry-After in whole seconds. nil
	// sends neither.
	RetryInfo *time.Duration
	// Keep keeps the data whatever the response is, like a receiver that stores data but fails to acknowledge them.
	Keep bool
	// Rejected and RejectedMessage make the success a partial one.
	Rejected        int64
	RejectedMessage string
	// Delay is the time before the response.
	Delay time.Duration
	// Fault breaks the exchange.
	Fault Fault
}

// Fault is a way to fail.
type Fault int

const (
	// NoFault responds as the step says.
	NoFault Fault = iota
	// Hang never responds.
	Hang
	// Reset cuts the connection instead of responding, which also ends all other requests on it.
	Reset
)

func (s Step) ok() bool { return s.Fault == NoFault && s.Code == codes.OK && s.HTTPStatus/100 <= 2 }

func (s Step) keeps() bool { return s.Keep || s.ok() }

// proto returns the status that both transports send.
func (s Step) proto() *spb.Status {
	st := status.New(s.Code, s.Message)
	if s.RetryInfo != nil && s.Code != codes.OK {
		// It cannot fail: the detail is a known message and the code is not OK.
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
