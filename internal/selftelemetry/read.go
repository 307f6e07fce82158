// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package selftelemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

const (
	readTimeout = 5 * time.Second
	// The page of a Collector with a hundred components has about 100 KiB.
	maxPage = 16 << 20
)

var errPageTooLarge = fmt.Errorf("the page is larger than %d MiB", maxPage>>20)

// The page is on this machine: no proxy, no compression, and no idle connection with two goroutines between readings,
// which are minutes apart.
var client = &http.Client{
	Timeout:   readTimeout,
	Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true},
}

// Read takes a snapshot of the page at a URL.
func Read(ctx context.Context, page string) (*Snapshot, error) {
	s, err := read(ctx, page, maxPage)
	if err != nil {
		if wrapped := new(url.Error); errors.As(err, &wrapped) {
			err = wrapped.Err // it contains the URL again
		}
		return nil, fmt.Errorf("cannot read own metrics from %s: %w", page, err)
	}
	return s, nil
}

func read(ctx context.Context, page string, limit int64) (*Snapshot, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/plain;version=0.0.4")
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %s", resp.Status)
	}
	body := &io.LimitedReader{R: resp.Body, N: limit + 1}
	s, err := Parse(body, time.Now())
	if body.N <= 0 { // a truncated page usually does not parse: report the cause
		return nil, errPageTooLarge
	}
	return s, err
}
