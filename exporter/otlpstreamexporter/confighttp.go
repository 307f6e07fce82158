// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"

	"github.com/godwit-otel/godwit/internal/otlpstream"
	"github.com/godwit-otel/godwit/internal/redact"
)

// HTTPConfig is what only OTLP/HTTP has. The keys mean what they do for the Collector's own exporter.
type HTTPConfig struct {
	// TracesEndpoint, MetricsEndpoint and LogsEndpoint are whole URLs, in place of the endpoint with /v1/traces, /v1/metrics or
	// /v1/logs. Default none.
	TracesEndpoint  string `mapstructure:"traces_endpoint"`
	MetricsEndpoint string `mapstructure:"metrics_endpoint"`
	LogsEndpoint    string `mapstructure:"logs_endpoint"`

	// ProxyURL is a proxy, in place of those that the environment names. Default none.
	ProxyURL string `mapstructure:"proxy_url"`

	// MaxConnsPerHost bounds connections to a server. 0 is as many as there are requests in flight. Default 0.
	MaxConnsPerHost int `mapstructure:"max_conns_per_host"`

	// IdleConnTimeout is how long a connection stays open that nothing is sent on. Default 90s.
	IdleConnTimeout time.Duration `mapstructure:"idle_conn_timeout"`

	// DisableKeepAlives opens a connection for each request. Default false.
	DisableKeepAlives bool `mapstructure:"disable_keep_alives"`

	// ForceAttemptHTTP2 is whether HTTP/2 is offered to servers with TLS. Default true.
	ForceAttemptHTTP2 bool `mapstructure:"force_attempt_http2"`

	// Cookies keeps those that the server sets, and sends them back. Default none.
	Cookies configoptional.Optional[confighttp.CookiesConfig] `mapstructure:"cookies"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// endpoint returns the URL of a signal, if it has its own.
func (c *HTTPConfig) endpoint(signal otlpstream.Signal) string {
	switch signal {
	case otlpstream.Traces:
		return c.TracesEndpoint
	case otlpstream.Metrics:
		return c.MetricsEndpoint
	case otlpstream.Logs:
		return c.LogsEndpoint
	default:
		return ""
	}
}

// client returns the settings of the HTTP client.
func (c *HTTPConfig) client() confighttp.ClientConfig {
	return confighttp.ClientConfig{
		ProxyURL: c.ProxyURL, MaxConnsPerHost: c.MaxConnsPerHost, IdleConnTimeout: c.IdleConnTimeout, DisableKeepAlives: c.DisableKeepAlives,
		ForceAttemptHTTP2: c.ForceAttemptHTTP2, Cookies: c.Cookies,
	}
}

func (c *HTTPConfig) validate() error {
	var errs []error
	for key, at := range map[string]string{
		"traces_endpoint": c.TracesEndpoint, "metrics_endpoint": c.MetricsEndpoint, "logs_endpoint": c.LogsEndpoint, "proxy_url": c.ProxyURL,
	} {
		if u, err := url.Parse(at); at != "" && (err != nil || u.Host == "") {
			errs = append(errs, fmt.Errorf("`http::%s` must be a URL, for example https://otlp.example/v1/metrics, got %q", key, redact.URL(at)))
		}
	}
	if c.MaxConnsPerHost < 0 || c.IdleConnTimeout < 0 {
		errs = append(errs, errors.New("`http::max_conns_per_host` and `http::idle_conn_timeout` must not be negative; 0 is no limit"))
	}
	return errors.Join(errs...)
}
