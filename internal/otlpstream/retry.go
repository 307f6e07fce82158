// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstream

import (
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Busy is the error that asks a client to come back after the delay.
func Busy(message string, delay time.Duration) *status.Status {
	st := status.New(codes.Unavailable, message)
	if detailed, err := st.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(delay)}); err == nil {
		return detailed
	}
	return st
}

// RetryDelay is how long the status asks to wait. ok is false where it does not say.
func RetryDelay(st *status.Status) (delay time.Duration, ok bool) {
	for _, detail := range st.Details() {
		if info, isRetry := detail.(*errdetails.RetryInfo); isRetry {
			return min(max(0, info.GetRetryDelay().AsDuration()), maxDelay), true
		}
	}
	return 0, false
}

// Transient tells whether standard OTLP lets the client send the same data again after this status.
func Transient(st *status.Status) bool {
	switch st.Code() {
	case codes.Canceled, codes.DeadlineExceeded, codes.Aborted, codes.OutOfRange, codes.Unavailable, codes.DataLoss:
		return true
	case codes.ResourceExhausted:
		_, ok := RetryDelay(st)
		return ok
	}
	return false
}
