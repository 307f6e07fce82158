// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The response of a proxy after a server died says nothing about the request that was in progress.
func TestOnlyTheServersOwnStatusCountsAgainstARequest(t *testing.T) {
	for name, c := range map[string]struct {
		given error
		want  codes.Code
	}{
		"a reset":           {status.Error(codes.Internal, saidOfReset+"INTERNAL_ERROR"), codes.Unavailable},
		"another reset":     {status.Error(codes.ResourceExhausted, saidOfReset+"ENHANCE_YOUR_CALM"), codes.Unavailable},
		"no trailers":       {status.Error(codes.Internal, saidOfSilence), codes.Unavailable},
		"bad gateway":       {status.Error(codes.Unavailable, saidOfHTTP+"502 (Bad Gateway); transport: received unexpected content-type"), codes.Unavailable},
		"500":               {status.Error(codes.Unknown, saidOfHTTP+"500 (Internal Server Error); x"), codes.Unavailable},
		"400":               {status.Error(codes.Internal, saidOfHTTP+"400 (Bad Request); x"), codes.Unavailable},
		"no service":        {status.Error(codes.Unimplemented, saidOfHTTP+"404 (Not Found); x"), codes.Unimplemented},
		"too large":         {status.Error(codes.Unknown, saidOfHTTP+"413 (Request Entity Too Large); x"), codes.ResourceExhausted},
		"a page to log in":  {status.Error(codes.Unknown, saidOfHTTP+"302 (Found); x"), codes.Unavailable},
		"a page":            {status.Error(codes.Unknown, saidOfHTTP+"200 (OK); transport: received unexpected content-type \"text/html\""), codes.Unavailable},
		"forbidden":         {status.Error(codes.PermissionDenied, saidOfHTTP+"403 (Forbidden); x"), codes.PermissionDenied},
		"the server's word": {status.Error(codes.Internal, "cannot store it"), codes.Internal},
		"nothing":           {nil, codes.OK},
	} {
		require.Equal(t, c.want, status.Code(serversOwn(c.given)), name)
	}
}

// A server may ask for a retry at a certain time.
func TestRetryAfterMayBeADate(t *testing.T) {
	require.Equal(t, 3*time.Second, retryAfter("3"))
	require.InDelta(t, time.Minute, retryAfter(time.Now().Add(time.Minute).UTC().Format(http.TimeFormat)), float64(2*time.Second))
	require.Equal(t, 24*time.Hour, retryAfter("9999999999"))
	require.Equal(t, 24*time.Hour, retryAfter("Fri, 31 Dec 9999 23:59:59 GMT"))
	for _, value := range []string{"", "soon", "-3", "Fri, 31 Dec 1999 23:59:59 GMT"} {
		require.LessOrEqual(t, retryAfter(value), time.Duration(0), value)
	}
}
