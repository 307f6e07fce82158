// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
	promconfig "github.com/prometheus/prometheus/config"
	promhttp "github.com/prometheus/prometheus/discovery/http"
	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"
)

const (
	// maxAnswer bounds the list of jobs, in bytes. A job takes about one kilobyte.
	maxAnswer = 64 << 20
	// firstRetry is how soon a failed request is made again. The wait doubles until it is the interval.
	firstRetry = time.Second
	// longestWait bounds a request if the user does not.
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

// New returns a client. Jobs get from global what they do not say themselves.
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
	return &Client{cfg: cfg, global: global, discovery: targets, http: client, logger: set.Logger, limit: maxAnswer}, nil
}

// Failures returns how often the jobs could not be had, or not be used.
func (c *Client) Failures() int64 { return c.failures.Load() }

// Run asks for the jobs until ctx ends, and hands them to apply when they are not those it took before. What it does
// not take is offered again.
func (c *Client) Run(ctx context.Context, apply func([]*promconfig.ScrapeConfig) error) {
	defer c.http.CloseIdleConnections()
	var (
		taken   uint64
		failing bool
		retry   = firstRetry
	)
	for {
		sum, err := c.sync(ctx, taken, apply)
		if ctx.Err() != nil {
			return
		}
		wait := c.cfg.Interval
		if err == nil {
			if failing {
				c.logger.Info("The target allocator's jobs are up to date again")
			}
			taken, failing, retry = sum, false, firstRetry
		} else {
			c.failures.Add(1)
			if !failing {
				c.logger.Error("Keeping the jobs: those of the target allocator cannot be had", zap.Error(err))
			}
			failing = true
			wait = min(wait, retry)
			retry = min(2*retry, c.cfg.Interval)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// sync hands on the jobs if they are not those of the sum, and returns theirs.
func (c *Client) sync(ctx context.Context, taken uint64, apply func([]*promconfig.ScrapeConfig) error) (uint64, error) {
	body, err := c.fetch(ctx)
	if err != nil {
		return 0, err
	}
	body = withShard(body, os.LookupEnv)
	sum := xxhash.Sum64(body)
	if sum == taken {
		return sum, nil
	}
	jobs, unknown, err := c.read(body)
	if err != nil {
		return 0, err
	}
	if unknown != nil {
		c.logger.Warn("The target allocator's jobs say what this receiver does not know", zap.Error(unknown))
	}
	if err := apply(jobs); err != nil {
		return 0, err
	}
	c.logger.Info("Applied the target allocator's jobs", zap.Int("jobs", len(jobs)))
	return sum, nil
}

func (c *Client) fetch(ctx context.Context) ([]byte, error) {
	address := c.cfg.url("/scrape_configs")
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("cannot ask for the jobs: %w", err)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("cannot ask for the jobs: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("cannot ask for the jobs: %s answered %s", address, response.Status)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, c.limit+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read the jobs: %w", err)
	}
	if int64(len(body)) > c.limit {
		return nil, fmt.Errorf("cannot read the jobs: the answer is larger than %d bytes", c.limit)
	}
	return body, nil
}
