// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
	promconfig "github.com/prometheus/prometheus/config"
	promhttp "github.com/prometheus/prometheus/discovery/http"
	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/internal/memlimit"
	"github.com/godwit-otel/godwit/internal/redact"
)

const (
	// firstRetry is the wait before a failed request is repeated. It doubles up to the interval.
	firstRetry = time.Second
	// longestWait limits a request if the user sets no timeout.
	longestWait = time.Minute
)

// A Client asks an allocator for jobs.
type Client struct {
	cfg       Config
	global    promconfig.GlobalConfig
	discovery promhttp.SDConfig
	http      *http.Client
	logger    *zap.Logger
	limit     int64 // on an answer, in bytes
	failures  atomic.Int64
}

// An Answer is the list of jobs from an allocator.
type Answer struct {
	Jobs []*promconfig.ScrapeConfig
	// Broken are the errors of jobs that are invalid, by job name.
	Broken map[string]error
}

// New returns a client. Jobs take from global what they do not set themselves.
func New(ctx context.Context, cfg Config, global promconfig.GlobalConfig, host component.Host, set component.TelemetrySettings) (*Client, error) {
	targets, err := cfg.discovery()
	if err != nil {
		return nil, err
	}
	client, err := cfg.Client.ToClient(ctx, host.GetExtensions(), set)
	if err != nil {
		return nil, fmt.Errorf("cannot set up the HTTP client: %w", err)
	}
	if client.Timeout == 0 {
		client.Timeout = longestWait
	}
	if cfg.Discovery.url != "" {
		set.Logger.Warn("Ignoring `target_allocator::http_sd_config::url`: targets come from the allocator's `endpoint`",
			zap.String("url", redact.URL(cfg.Discovery.url)))
	}
	return &Client{cfg: cfg, global: global, discovery: targets, http: client, logger: set.Logger, limit: answerShare.Of(memlimit.Available())}, nil
}

// Failures returns how often a request for the jobs failed, and how often a job could not be used.
func (c *Client) Failures() int64 { return c.failures.Load() }

// Run requests the jobs until ctx ends, and calls apply when they have changed. What apply did not accept is offered
// again: all jobs, if it returned an error, or those that it could not use, together with the others.
func (c *Client) Run(ctx context.Context, apply func(Answer) (broken map[string]error, _ error)) {
	defer c.http.CloseIdleConnections()
	var (
		taken   state
		failing bool
		retry   = firstRetry
	)
	for {
		next, err := c.sync(ctx, taken, apply)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			if failing {
				c.logger.Info("The target allocator's jobs are up to date again")
			}
			c.compare(taken.broken, next.broken)
			c.failures.Add(int64(len(next.broken)))
			taken, failing = next, false
		} else {
			c.failures.Add(1)
			if !failing {
				c.logger.Error("Keeping the current jobs: those of the target allocator cannot be read", zap.Error(err))
			}
			failing = true
		}
		wait := c.cfg.Interval
		if failing || len(taken.broken) > 0 {
			wait = min(wait, retry)
			retry = min(2*retry, c.cfg.Interval)
		} else {
			retry = firstRetry
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// A state is the result of an answer.
type state struct {
	sum    uint64 // of the answer
	broken map[string]error
}

// sync hands on the jobs if they have changed, or if some of them could not be used before.
func (c *Client) sync(ctx context.Context, taken state, apply func(Answer) (map[string]error, error)) (state, error) {
	body, err := c.get(ctx, c.cfg.url("/scrape_configs"), "the jobs")
	if err != nil {
		return state{}, err
	}
	body = withShard(body, os.LookupEnv)
	sum := xxhash.Sum64(body)
	if sum == taken.sum && len(taken.broken) == 0 {
		return taken, nil
	}
	jobs, unknown, err := c.read(body)
	if err != nil {
		return state{}, err
	}
	if unknown != nil && sum != taken.sum {
		c.logger.Warn("Ignoring parts of the target allocator's jobs", zap.Error(unknown))
	}
	broken, err := apply(jobs)
	if err != nil {
		return state{}, err
	}
	if sum != taken.sum {
		c.logger.Info("Applied the target allocator's jobs", zap.Int("jobs", len(jobs.Jobs)+len(jobs.Broken)-len(broken)))
	}
	return state{sum, broken}, nil
}

// compare logs jobs that can no longer be used, and those that can be used again.
func (c *Client) compare(before, now map[string]error) {
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if err := now[name]; before[name] == nil || before[name].Error() != err.Error() {
			c.logger.Error("Cannot use a job of the target allocator: an earlier version of it stays in force", zap.String("job", name), zap.Error(err))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if now[name] == nil {
			c.logger.Info("A job of the target allocator is valid again", zap.String("job", name))
		}
	}
}

// get asks the allocator for something.
func (c *Client) get(ctx context.Context, address, what string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("cannot ask for %s: %w", what, err)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("cannot ask for %s: %w", what, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("cannot ask for %s: %s answered %s", what, redact.URL(address), response.Status)
	}
	body, err := readAnswer(response.Body, c.limit)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", what, err)
	}
	return body, nil
}
