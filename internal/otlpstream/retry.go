// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstream

import (
	"regexp"
	"strconv"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Busy returns the error that asks a client to come back after the delay.
func Busy(message string, delay time.Duration) *status.Status {
	st := status.New(codes.Unavailable, message)
	if detailed, err := st.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(delay)}); err == nil {
		return detailed
	}
	return st
}

// RetryDelay returns how long the status asks to wait. ok is false if it does not ask.
func RetryDelay(st *status.Status) (delay time.Duration, ok bool) {
	for _, detail := range st.Details() {
		if info, isRetry := detail.(*errdetails.RetryInfo); isRetry {
			return min(max(0, info.GetRetryDelay().AsDuration()), maxDelay), true
		}
	}
	return 0, false
}

// Transient reports whether standard OTLP lets the client send the same data again after this status.
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

// ErrTooLarge returns the error for a message that the peer refuses because of its size.
func ErrTooLarge(message string) error {
	return status.Error(codes.ResourceExhausted, message+": larger than max")
}

var largerThanMax = regexp.MustCompile(`larger than max(?: \(\d+ vs\. (\d+)\)| (\d+))?`)

// TooLarge reports whether a message was refused because of its size, and returns the limit, 0 if that is not given.
// There is no code for this: gRPC only says so in a message for people.
func TooLarge(st *status.Status) (limit int, ok bool) {
	if st.Code() != codes.ResourceExhausted {
		return 0, false
	}
	match := largerThanMax.FindStringSubmatch(st.Message())
	if match == nil {
		return 0, false
	}
	limit, _ = strconv.Atoi(match[1] + match[2])
	return limit, true
}

// IsTooLarge is TooLarge without the limit.
func IsTooLarge(st *status.Status) bool {
	_, ok := TooLarge(st)
	return ok
}
