// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/config/confighttp"
)

// Config says whether and where to serve.
type Config struct {
	// Enabled turns the server on. Default false.
	Enabled bool `mapstructure:"enabled"`

	// MaxConnections limits the connections open at a time. Further ones wait. Default 512.
	MaxConnections int `mapstructure:"max_connections"`

	// Server is where and how to serve. Default: 127.0.0.1:9090, with a read timeout of 10m.
	Server confighttp.ServerConfig `mapstructure:"server_config"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// NewDefaultConfig returns the configuration to which users add.
func NewDefaultConfig() Config {
	server := confighttp.NewDefaultServerConfig()
	server.NetAddr.Endpoint = "127.0.0.1:9090"
	server.ReadTimeout = 10 * time.Minute
	return Config{MaxConnections: 512, Server: server}
}

// Validate reports all faults of the configuration.
func (c *Config) Validate() error {
	var errs []error
	if err := c.Server.NetAddr.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("cannot use `server_config`: %w", err))
	}
	if c.Enabled && c.Server.NetAddr.Endpoint == "" {
		errs = append(errs, errors.New("`server_config::endpoint` must be an address such as 127.0.0.1:9090"))
	}
	if c.Enabled && c.MaxConnections <= 0 {
		errs = append(errs, fmt.Errorf("`max_connections` must be positive, got %d", c.MaxConnections))
	}
	return errors.Join(errs...)
}
