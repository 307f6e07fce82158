// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"time"

	commonconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	promhttp "github.com/prometheus/prometheus/discovery/http"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/config/configtls"

	"github.com/godwit-otel/godwit/internal/redact"
)

// defaultRefresh is how often targets are asked for without http_sd_config.
const defaultRefresh = 30 * time.Second

// discovery returns how to ask for targets, except for the URL.
func (c *Config) discovery() (promhttp.SDConfig, error) {
	out := promhttp.SDConfig{RefreshInterval: model.Duration(defaultRefresh)}
	if c.Discovery.read != nil {
		out = *c.Discovery.read
	}
	if out.RefreshInterval <= 0 { // it would send requests without pause, or panic
		return out, fmt.Errorf("`http_sd_config`: `refresh_interval` must be positive, got %s", out.RefreshInterval)
	}
	tls, err := prometheusTLS(c.Client.TLS)
	if err != nil {
		return out, err
	}
	if tls != (commonconfig.TLSConfig{}) || c.Discovery.read == nil {
		out.HTTPClientConfig.TLSConfig = tls
	}
	if c.Client.ProxyURL != "" {
		proxy, err := url.Parse(c.Client.ProxyURL)
		if err != nil {
			return out, fmt.Errorf("cannot use `proxy_url`: %w", redact.Error(err))
		}
		out.HTTPClientConfig.ProxyURL = commonconfig.URL{URL: proxy}
	}
	out.HTTPClientConfig.FollowRedirects = false
	return out, nil
}

// targetsURL returns the URL of a job's targets.
func (c *Config) targetsURL(job string) string {
	return c.url("/jobs/" + url.QueryEscape(job) + "/targets?collector_id=" + url.QueryEscape(c.CollectorID))
}

func (c *Config) url(path string) string {
	return strings.TrimSuffix(c.Client.Endpoint, "/") + path
}

// prometheusTLS converts the TLS settings of a Collector's client to Prometheus'.
func prometheusTLS(from configtls.ClientConfig) (commonconfig.TLSConfig, error) {
	out := commonconfig.TLSConfig{
		InsecureSkipVerify: from.InsecureSkipVerify,
		ServerName:         from.ServerName,
		CAFile:             from.CAFile,
		CertFile:           from.CertFile,
		KeyFile:            from.KeyFile,
	}
	var err error
	if out.CA, err = pem("ca_pem", from.CAPem); err != nil {
		return out, err
	}
	if out.Cert, err = pem("cert_pem", from.CertPem); err != nil {
		return out, err
	}
	key, err := pem("key_pem", from.KeyPem)
	if err != nil {
		return out, err
	}
	out.Key = commonconfig.Secret(key)
	if out.MinVersion, err = version("min_version", from.MinVersion); err != nil {
		return out, err
	}
	out.MaxVersion, err = version("max_version", from.MaxVersion)
	return out, err
}

// pem returns PEM text, which may be given as it is or in base64.
func pem(key string, text configopaque.String) (string, error) {
	if strings.Contains(string(text), "-----BEGIN ") {
		return string(text), nil
	}
	decoded, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil {
		return "", fmt.Errorf("cannot decode `tls::%s`: %w", key, err)
	}
	return string(decoded), nil
}

func version(key, text string) (commonconfig.TLSVersion, error) {
	if text == "" {
		return 0, nil
	}
	v, known := commonconfig.TLSVersions["TLS"+strings.ReplaceAll(text, ".", "")]
	if !known {
		return 0, fmt.Errorf("`tls::%s` must be 1.0, 1.1, 1.2 or 1.3, got %q", key, text)
	}
	return v, nil
}
