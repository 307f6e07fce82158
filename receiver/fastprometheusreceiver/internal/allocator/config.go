// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"go.opentelemetry.io/collector/config/confighttp"

	"github.com/godwit-otel/godwit/internal/buffers"
	"github.com/godwit-otel/godwit/internal/redact"
)

// Config says where the allocator is and who asks it.
type Config struct {
	// Client is how to reach the allocator: endpoint and whatever else an HTTP client may have. Its TLS settings and
	// proxy are also those by which targets are asked for.
	Client confighttp.ClientConfig `mapstructure:",squash"`

	// Interval is how often the allocator is asked for jobs.
	Interval time.Duration `mapstructure:"interval"`

	// CollectorID is the name by which the allocator knows this collector.
	CollectorID string `mapstructure:"collector_id"`

	// Discovery is Prometheus's http_sd_config, without its URL: how the targets of a job are asked for. Default: every
	// 30s.
	Discovery Discovery `mapstructure:"http_sd_config"`

	// AllowedFiles are patterns of the files that jobs may name to be read: tokens, passwords, certificates. A job that names
	// another is not used. Default: any.
	AllowedFiles []string `mapstructure:"allowed_files"`

	// Scrape is a Prometheus HTTP client configuration that replaces those of the jobs. Default: each job has its own.
	Scrape Scrape `mapstructure:"http_scrape_config"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// NewDefaultConfig returns the configuration to which users add.
func NewDefaultConfig() Config {
	client := confighttp.NewDefaultClientConfig()
	client.Timeout = 30 * time.Second
	return Config{Client: client}
}

// Validate reports all faults of the configuration.
func (c *Config) Validate() error {
	var errs []error
	if u, err := url.Parse(c.Client.Endpoint); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		errs = append(errs, fmt.Errorf("`endpoint` must be a URL such as http://allocator:80, got %q", redact.URL(c.Client.Endpoint)))
	}
	if c.CollectorID == "" || strings.Contains(c.CollectorID, "${") {
		errs = append(errs, fmt.Errorf("`collector_id` must be this collector's name, such as ${env:POD_NAME}, got %q", c.CollectorID))
	}
	if c.Interval <= 0 {
		errs = append(errs, fmt.Errorf("`interval` must be positive, got %s", c.Interval))
	}
	if c.Client.Timeout < 0 {
		errs = append(errs, fmt.Errorf("`timeout` must not be negative, got %s", c.Client.Timeout))
	}
	errs = append(errs, buffers.Check("", c.Client.ReadBufferSize, c.Client.WriteBufferSize))
	for _, pattern := range c.AllowedFiles {
		if _, err := filepath.Match(pattern, ""); err != nil || !filepath.IsAbs(pattern) {
			errs = append(errs, fmt.Errorf("`allowed_files` must be absolute paths, in which * stands for a part of a name, got %q", pattern))
		}
	}
	if _, err := c.discovery(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
