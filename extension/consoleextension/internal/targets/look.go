// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/answer"
	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/internal/redact"
)

const (
	lookBytes   = 1 << 20
	lookTimeout = 10 * time.Second
)

type pageJSON struct {
	URL         string  `json:"url"`
	Status      string  `json:"status"`
	ContentType string  `json:"content_type"`
	Encoding    string  `json:"encoding"`
	WireBytes   int     `json:"wire_bytes"`
	Took        float64 `json:"took_seconds"`
	Truncated   bool    `json:"truncated"`
	Body        string  `json:"body"`
}

// Look fetches the page of a target. What may be fetched is for its receiver to say.
func (v *View) Look(r *http.Request) (any, error) {
	if err := answer.Empty(r); err != nil {
		return nil, err
	}
	select {
	case v.looking <- struct{}{}:
		defer func() { <-v.looking }()
	default:
		return nil, answer.Busy("another response is being fetched: try again")
	}
	ctx, cancel := context.WithTimeout(r.Context(), lookTimeout)
	defer cancel()
	for _, s := range v.sources.All() {
		if s.Look == nil {
			continue
		}
		page, err := s.Look.Look(ctx, r.PathValue("id"), lookBytes)
		if errors.Is(err, inspect.ErrNoTarget) {
			continue
		}
		if err != nil {
			return nil, &answer.Error{Status: http.StatusBadGateway, Code: "target", Message: err.Error()}
		}
		return pageJSON{
			URL: redact.Text(page.URL), Status: page.Status, ContentType: page.ContentType, Encoding: page.Encoding, WireBytes: page.WireBytes,
			Took: page.Took.Seconds(), Truncated: page.Truncated, Body: redact.Text(strings.ToValidUTF8(string(page.Body), "\ufffd")),
		}, nil
	}
	return nil, answer.NotFound("%v", inspect.ErrNoTarget)
}
