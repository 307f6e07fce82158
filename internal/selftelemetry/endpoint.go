// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package selftelemetry

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/confmap"
)

const (
	metricsKey  = "service::telemetry::metrics"
	defaultHost = "localhost"
	defaultPort = 8888
)

// Reasons why a Collector serves no metrics page.
var (
	ErrLevelNone = errors.New("`" + metricsKey + "::level` is none")
	ErrNoReader  = errors.New("`" + metricsKey + "::readers` has no pull reader with a prometheus exporter and a fixed port")
)

type metricsConfig struct {
	Level   string   `mapstructure:"level"`
	Readers []reader `mapstructure:"readers"`
}

type reader struct {
	Pull struct {
		Exporter struct {
			Prometheus *struct {
				Host string `mapstructure:"host"`
				Port int    `mapstructure:"port"`
			} `mapstructure:"prometheus"`
		} `mapstructure:"exporter"`
	} `mapstructure:"pull"`
}

// Endpoint finds the URL of the page that a Collector with this configuration
// serves: the configuration is the effective one, or as a user wrote it.
func Endpoint(conf *confmap.Conf) (string, error) {
	if conf == nil {
		conf = confmap.New()
	}
	sub, err := conf.Sub(metricsKey)
	if err != nil {
		return "", fmt.Errorf("cannot read `%s`: %w", metricsKey, err)
	}
	var cfg metricsConfig
	if err := sub.Unmarshal(&cfg, confmap.WithIgnoreUnused()); err != nil {
		return "", fmt.Errorf("cannot read `%s`: %w", metricsKey, err)
	}
	if strings.EqualFold(cfg.Level, "none") {
		return "", ErrLevelNone
	}
	if !sub.IsSet("readers") {
		return pageURL(defaultHost, defaultPort), nil
	}
	for _, r := range cfg.Readers {
		if p := r.Pull.Exporter.Prometheus; p != nil && p.Port > 0 {
			return pageURL(p.Host, p.Port), nil
		}
	}
	return "", ErrNoReader
}

func pageURL(host string, port int) string {
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = defaultHost // a wildcard address is reachable here
	}
	return "http://" + net.JoinHostPort(host, strconv.Itoa(port)) + "/metrics"
}
