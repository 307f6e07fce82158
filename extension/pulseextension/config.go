// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package pulseextension

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/godwit-otel/godwit/internal/confkeys"
	"github.com/godwit-otel/godwit/internal/inorder"
	"github.com/godwit-otel/godwit/internal/redact"
)

// Config says what to log, and when.
type Config struct {
	// Interval is the time between two lines about what is flowing, 1s at least.
	// 0 means no lines after the first. Default 1m.
	Interval time.Duration `mapstructure:"interval"`

	// First is the time from the start of the pipelines to the first look at what
	// is flowing. While nothing has moved, it looks again after the same time, 1s
	// at least, and logs nothing: the first line comes as soon as there is
	// something to say, or when Interval (1m if that is 0) has passed since the
	// start. 0 means no early line. Default 3s.
	First time.Duration `mapstructure:"first"`

	// Look holds addresses worth a visit, by title. They are logged once, when
	// the pipelines have started. Default none.
	Look map[string]string `mapstructure:"look"`

	// MetricsEndpoint is the URL of the page with the Collector's own metrics.
	// Default: where `service::telemetry::metrics` says.
	MetricsEndpoint string `mapstructure:"metrics_endpoint"`

	_ struct{}
}

var _ component.Config = (*Config)(nil)

const (
	// minInterval keeps a mistyped unit from flooding the log.
	minInterval = time.Second

	// defaultPatience is how long the first line waits for something to report if there is no interval.
	defaultPatience = time.Minute
)

// Unmarshal reports unknown keys with suggestions.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return confkeys.Unmarshal(conf, c) }

// Validate reports all faults of the configuration.
func (c *Config) Validate() error {
	var errs []error
	if c.Interval != 0 && c.Interval < minInterval {
		errs = append(errs, fmt.Errorf("`interval` must be %s or more, got %s; 0 turns the lines off", minInterval, c.Interval))
	}
	if c.First < 0 {
		errs = append(errs, fmt.Errorf("`first` must not be negative, got %s; 0 turns the early line off", c.First))
	}
	for title, address := range c.Look {
		if u, err := url.Parse(address); err != nil || u.Scheme == "" || u.Host == "" && u.Path == "" {
			errs = append(errs, fmt.Errorf("`look::%s` must be a URL such as http://localhost:8888/metrics, got %q", title, redact.URL(address)))
		}
	}
	if c.MetricsEndpoint != "" {
		if u, err := url.Parse(c.MetricsEndpoint); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			errs = append(errs, fmt.Errorf(
				"`metrics_endpoint` must be a URL such as http://localhost:8888/metrics, got %q; "+
					"leave it out to take it from `service::telemetry::metrics`", redact.URL(c.MetricsEndpoint),
			))
		}
	}
	inorder.Sort(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}
