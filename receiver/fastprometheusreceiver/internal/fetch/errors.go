// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
)

// ErrBodySize means that a page has body_size_limit bytes or more.
var ErrBodySize = errors.New("body size limit exceeded")

// A StatusError is a response that is not 200 OK.
type StatusError struct {
	Code   int
	Status string // code and reason
}

func (e *StatusError) Error() string { return "server returned HTTP status " + e.Status }

// A protocolError is a response that is not HTTP/1.1 as we accept it.
type protocolError struct{ text string }

func (e *protocolError) Error() string { return e.text }

func malformed(what string, quoted []byte) error {
	if quoted == nil {
		return &protocolError{what}
	}
	return &protocolError{fmt.Sprintf("%s %q", what, quoted[:min(len(quoted), maxQuoted)])}
}

// An encodingError is a body that cannot be decoded, or has an encoding that was not asked for.
type encodingError struct{ err error }

func (e *encodingError) Error() string { return e.err.Error() }
func (e *encodingError) Unwrap() error { return e.err }

// A credentialsError is a secret that cannot be read, or a token that cannot be fetched.
type credentialsError struct{ err error }

func (e *credentialsError) Error() string { return e.err.Error() }
func (e *credentialsError) Unwrap() error { return e.err }

// A readerError is an error of the page's reader.
type readerError struct{ err error }

func (e *readerError) Error() string { return e.err.Error() }
func (e *readerError) Unwrap() error { return e.err }

// The reasons of failed exchanges. Reason returns no others.
const (
	ReasonTimeout     = "timeout"
	ReasonCanceled    = "canceled"
	ReasonDNS         = "dns"
	ReasonRefused     = "connection_refused"
	ReasonReset       = "connection_reset"
	ReasonConnect     = "connect"
	ReasonTLS         = "tls"
	ReasonCredentials = "credentials"
	ReasonProtocol    = "protocol"
	ReasonStatus      = "status"
	ReasonBodySize    = "body_size"
	ReasonEncoding    = "encoding"
	ReasonOther       = "other"
)

// Reason classifies an error of Get or Decode: one of the constants, or "" for no error.
func Reason(err error) string {
	if err == nil {
		return ""
	}
	for _, known := range []struct {
		reason string
		is     func(error) bool
	}{
		{ReasonOther, as[*readerError]},
		{ReasonBodySize, func(err error) bool { return errors.Is(err, ErrBodySize) }},
		{ReasonStatus, as[*StatusError]},
		{ReasonEncoding, as[*encodingError]},
		{ReasonCredentials, isCredentials},
		{ReasonProtocol, as[*protocolError]},
		{ReasonCanceled, func(err error) bool { return errors.Is(err, context.Canceled) }},
		{ReasonTimeout, isTimeout},
		{ReasonDNS, as[*net.DNSError]},
		{ReasonTLS, isTLS},
		{ReasonRefused, func(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }},
		{ReasonReset, isReset},
		{ReasonConnect, func(err error) bool {
			var op *net.OpError
			return errors.As(err, &op) && op.Op == "dial"
		}},
		{ReasonProtocol, isProtocol},
	} {
		if known.is(err) {
			return known.reason
		}
	}
	return ReasonOther
}

func as[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.As(err, &timeout) && timeout.Timeout()
}

// isCredentials recognises errors of the round trippers by their text.
func isCredentials(err error) bool {
	return as[*credentialsError](err) || strings.Contains(err.Error(), "unable to read ")
}

func isTLS(err error) bool {
	return as[*tls.CertificateVerificationError](err) || as[tls.RecordHeaderError](err) || as[tls.AlertError](err) ||
		as[x509.HostnameError](err) || as[x509.UnknownAuthorityError](err) || as[x509.CertificateInvalidError](err) ||
		strings.Contains(err.Error(), "tls: ")
}

func isReset(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, net.ErrClosed)
}

// isProtocol recognises errors of net/http by their text: it has no types for them.
func isProtocol(err error) bool {
	text := err.Error()
	for _, words := range []string{
		"malformed", "Content-Length", "transfer encoding", "chunk", "http2: ", "stream error: ", "HTTP/1.x transport connection broken",
		"server gave HTTP response", "server response headers exceeded", "redirect",
	} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}
