// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package answer reads requests to the API, and writes answers and errors.
//
// A part of the API is a [Func]. It returns what becomes JSON, or JSON already, or a [File]; errors that are
// an [Error] have their own status. No error contains a secret.
package answer

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/godwit-otel/godwit/internal/redact"
)

// Func answers a request.
type Func func(*http.Request) (any, error)

// ServeHTTP implements [http.Handler].
func (f Func) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	got, err := encode(f(r))
	if err != nil {
		fault, ok := err.(*Error) //nolint:errorlint // answers return these as they are
		if !ok {
			fault = &Error{http.StatusInternalServerError, CodeInternal, err.Error()}
		}
		Fail(w, fault.Status, fault.Code, redact.Text(fault.Message))
		return
	}
	switch got := got.(type) {
	case *File:
		w.Header().Set("Content-Disposition", `attachment; filename="`+got.Name+`"`)
		Write(w, got.Kind, got.Data)
	case JSON:
		Write(w, "application/json", got)
	}
}

// A File is an answer that is not JSON.
type File struct {
	Kind, Name string
	Data       []byte
}

// JSON is an answer that is encoded already.
type JSON []byte

func encode(got any, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	switch got.(type) {
	case *File, JSON:
		return got, nil
	}
	data, err := json.Marshal(got)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the answer: %w", err)
	}
	return JSON(data), nil
}

// Codes of errors in several parts of the API.
const (
	CodeBadRequest = "bad_request"
	CodeNotFound   = "not_found"
	CodeMethod     = "method"
	CodeInternal   = "internal"
	codeBusy       = "busy"
)

// An Error is an error with a status and a code.
type Error struct {
	Status  int
	Code    string
	Message string
}

func (e *Error) Error() string { return e.Message }

// BadRequest returns an error for an invalid request.
func BadRequest(format string, args ...any) error {
	return &Error{http.StatusBadRequest, CodeBadRequest, fmt.Sprintf(format, args...)}
}

// NotFound returns an error for something that does not exist.
func NotFound(format string, args ...any) error {
	return &Error{http.StatusNotFound, CodeNotFound, fmt.Sprintf(format, args...)}
}

// Busy returns an error that asks to repeat the request later.
func Busy(message string) error { return &Error{http.StatusTooManyRequests, codeBusy, message} }

// Write writes an answer of a content type.
func Write(w http.ResponseWriter, kind string, data []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	_, _ = w.Write(data) // the client may have gone
}

// Fail writes an error.
func Fail(w http.ResponseWriter, status int, code, message string) {
	data, err := json.Marshal(map[string]any{"error": map[string]string{"code": code, "message": message}})
	if err != nil { // cannot happen with strings
		data = nil
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data)
}
