// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	promcommon "github.com/prometheus/common/config"
)

// headers are what a job's configuration adds to each request of our own HTTP exchange.
type headers struct {
	fixed string // header lines
	// lines are those that take secrets from files, which are read for each request.
	lines []func(ctx context.Context, dst []byte) ([]byte, error)
}

// newHeaders returns false if our own exchange cannot send what the configuration asks for.
func newHeaders(cfg *promcommon.HTTPClientConfig) (headers, bool) {
	var h headers
	if cfg.BearerToken != "" || cfg.BearerTokenFile != "" {
		return h, false // not normalised by Validate
	}
	if a := cfg.Authorization; a != nil {
		if a.CredentialsRef != "" {
			return h, false
		}
		h.add(func(ctx context.Context, dst []byte) ([]byte, error) {
			credentials, err := read(ctx, string(a.Credentials), a.CredentialsFile)
			if err != nil {
				return dst, fmt.Errorf("unable to read authorization credentials: %w", err)
			}
			return appendHeader(dst, "Authorization", a.Type+" "+credentials)
		}, a.Credentials != "" || a.CredentialsFile == "")
	}
	if b := cfg.BasicAuth; b != nil {
		if b.UsernameRef != "" || b.PasswordRef != "" {
			return h, false
		}
		h.add(func(ctx context.Context, dst []byte) ([]byte, error) {
			username, err := read(ctx, b.Username, b.UsernameFile)
			if err != nil {
				return dst, fmt.Errorf("unable to read basic auth username: %w", err)
			}
			password, err := read(ctx, string(b.Password), b.PasswordFile)
			if err != nil {
				return dst, fmt.Errorf("unable to read basic auth password: %w", err)
			}
			return appendHeader(dst, "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(username+":"+password)))
		}, (b.Username != "" || b.UsernameFile == "") && (b.Password != "" || b.PasswordFile == ""))
	}
	if cfg.HTTPHeaders != nil {
		for _, name := range slices.Sorted(maps.Keys(cfg.HTTPHeaders.Headers)) {
			if !h.configured(http.CanonicalHeaderKey(name), cfg.HTTPHeaders.Headers[name]) {
				return h, false
			}
		}
	}
	return h, !strings.Contains(h.fixed, invalid)
}

// configured adds a header of http_headers.
func (h *headers) configured(name string, header promcommon.Header) bool {
	if !validName(name) || name == "Transfer-Encoding" || name == "Trailer" {
		return false
	}
	for _, value := range header.Values {
		h.add(constant(name, value), true)
	}
	for _, value := range header.Secrets {
		h.add(constant(name, string(value)), true)
	}
	for _, file := range header.Files {
		h.add(func(ctx context.Context, dst []byte) ([]byte, error) {
			value, err := promcommon.NewFileSecret(file).Fetch(ctx)
			if err != nil {
				return dst, fmt.Errorf("unable to read headers file %s: %w", file, err)
			}
			return appendHeader(dst, name, value)
		}, false)
	}
	return true
}

func constant(name, value string) func(context.Context, []byte) ([]byte, error) {
	return func(_ context.Context, dst []byte) ([]byte, error) { return appendHeader(dst, name, value) }
}

// invalid stands for a line that cannot be sent: net/http then reports the error.
const invalid = "\x00"

// add adds a line, right away if it never changes.
func (h *headers) add(line func(context.Context, []byte) ([]byte, error), fixed bool) {
	if !fixed {
		h.lines = append(h.lines, line)
		return
	}
	text, err := line(context.Background(), nil)
	if err != nil {
		text = []byte(invalid)
	}
	h.fixed += string(text)
}

// append appends the lines whose values are in files.
func (h *headers) append(ctx context.Context, dst []byte) ([]byte, error) {
	var err error
	for _, line := range h.lines {
		if dst, err = line(ctx, dst); err != nil {
			return dst, &credentialsError{err}
		}
	}
	return dst, nil
}

func read(ctx context.Context, text, file string) (string, error) {
	if text != "" || file == "" {
		return text, nil
	}
	return promcommon.NewFileSecret(file).Fetch(ctx)
}

func appendHeader(dst []byte, name, value string) ([]byte, error) {
	if !validValue(value) {
		return dst, fmt.Errorf("net/http: invalid header field value for %q", name)
	}
	dst = append(append(dst, name...), ": "...)
	dst = append(dst, strings.Trim(value, " \t")...)
	return append(dst, "\r\n"...), nil
}

// validName reports whether s is a token, as a field name must be.
func validName[T string | []byte](s T) bool {
	for i := range len(s) {
		if !tokens[s[i]] {
			return false
		}
	}
	return len(s) > 0
}

// validValue reports whether s has no control characters.
func validValue[T string | []byte](s T) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

var tokens = func() (set [256]bool) {
	for c := range set {
		set[c] = c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' ||
			strings.IndexByte("!#$%&'*+-.^_`|~", byte(c)) >= 0
	}
	return set
}()
