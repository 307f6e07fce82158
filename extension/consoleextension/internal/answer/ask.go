// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/prose"
)

// Whole parses a parameter that is a whole number from least to most, with a default.
func Whole(r *http.Request, name string, otherwise, least, most int) (int, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, BadRequest("`%s` must be %d to %d, got %q", name, least, most, prose.Cut(text, 100))
	}
	return n, nil
}

// OneOf parses a parameter that is one of some words; the first is the default.
func OneOf(r *http.Request, name string, words ...string) (string, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return words[0], nil
	}
	for _, word := range words {
		if text == word {
			return word, nil
		}
	}
	return "", BadRequest("`%s` must be one of %s, got %q", name, strings.Join(words, ", "), prose.Cut(text, 100))
}

// Formats of answers.
const (
	FormatJSON = "json"
	FormatCSV  = "csv"
)

// Format parses the format of the answer; the first is the default.
func Format(r *http.Request, formats ...string) (string, error) {
	return OneOf(r, "format", formats...)
}

// Decode decodes the body, whose size the server limits.
func Decode(r *http.Request, into any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
			return &Error{http.StatusRequestEntityTooLarge, CodeBadRequest, fmt.Sprintf("the body must not have more than %d bytes", tooLarge.Limit)}
		}
		return BadRequest("the body is not what it should be: %v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return BadRequest("the body has more than one value")
	}
	return nil
}

// Empty decodes the body of a request whose parameters are all in its path.
func Empty(r *http.Request) error {
	var nothing struct{}
	return Decode(r, &nothing)
}
