// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"errors"
	"fmt"

	"github.com/godwit-otel/godwit/internal/memlimit"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/fetch"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page"
)

// Shares of the memory for a page, where the configuration sets no limit.
var (
	bodyShare = memlimit.Share{Part: 4, Least: 32 << 20, Most: 256 << 20}
	pageShare = memlimit.Share{Part: 2, Least: 16 << 20, Most: 2 << 30}
	// seriesShare is for what is known of all series, and for pages that are being read.
	seriesShare = memlimit.Share{Part: 2, Least: 8 << 20, Most: 1 << 40}
)

// limits are the limits of pages, and where they come from.
type limits struct {
	body, page       int64  // of one page: its text, and what is made of it
	bodyWhy, pageWhy string // "" if the configuration says so, or the memory there is does not matter
	bodies           int64  // of all pages in flight
	series           int64  // of all targets
}

func newLimits(cfg *Config, memory int64) limits {
	l := limits{body: cfg.MaxBodySize, page: cfg.MaxPageMemory, bodies: bodiesShare.Of(memory), series: seriesShare.Of(memory)}
	if l.body == 0 {
		l.body, l.bodyWhy = bodyShare.Of(memory), bodyShare.Why(memory)
	}
	if l.page == 0 {
		l.page, l.pageWhy = pageShare.Of(memory), pageShare.Why(memory)
	}
	return l
}

// applied returns the configuration with the limits in it.
func (l limits) applied(cfg *Config) *Config {
	out := *cfg
	out.MaxBodySize, out.MaxPageMemory = l.body, l.page
	return &out
}

// explain adds to an error about a page beyond a limit where the limit comes from, and what to do about it. most is the
// limit of its job.
func (l limits) explain(err error, most int64) error {
	switch {
	case errors.As(err, new(page.MemoryError)) && l.pageWhy != "" && !isExplained(err):
		return explained{err, fmt.Sprintf("%s, which is %s: set it to allow more", err, l.pageWhy)}
	case !errors.Is(err, fetch.ErrBodySize) || errors.As(err, new(*fetch.MemoryError)) || isExplained(err):
		return err
	case most != l.body:
		return explained{err, fmt.Sprintf("%s: the page is larger than %s: raise `body_size_limit` of its job to allow more",
			fetch.ErrBodySize, memlimit.Size(most))}
	}
	size := memlimit.Size(most)
	if l.bodyWhy != "" {
		size += ", " + l.bodyWhy
	}
	return explained{err, fmt.Sprintf("%s: the page is larger than %s: set `body_size_limit` of its job, or `max_body_size`, to allow more",
		fetch.ErrBodySize, size)}
}

// An explained error is another one, with more words.
type explained struct {
	err  error
	text string
}

func (e explained) Error() string { return e.text }
func (e explained) Unwrap() error { return e.err }

func isExplained(err error) bool {
	var e explained
	return errors.As(err, &e)
}
