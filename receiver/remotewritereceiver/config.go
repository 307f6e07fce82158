// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"errors"
	"fmt"
	"strings"

	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/confmap"

	"github.com/godwit-otel/godwit/internal/confkeys"
)

// Config is the configuration of the remotewrite receiver.
type Config struct {
	// HTTP is the server: endpoint (default localhost:19291), tls, auth, timeouts, and max_request_body_size, the
	// limit on a body as received (default 20 MiB). A larger one is answered with 413.
	HTTP confighttp.ServerConfig `mapstructure:",squash"`

	// Path is the path that takes writes. Default /api/v1/write.
	Path string `mapstructure:"path"`

	// MaxDecodedBodySize limits a body after decompression, in bytes. A larger one is answered with 413. Default 32 MiB,
	// which is Prometheus's own limit.
	MaxDecodedBodySize int `mapstructure:"max_decoded_body_size"`

	// MaxMemory bounds, in bytes, what all requests in flight take up together: an eighth of it bodies as received, a
	// quarter decompressed ones, the rest what they are decoded to. A request that alone needs more is answered with 413;
	// others wait their turn, and are answered with 503 after ten seconds. Default 0, which is a quarter of the memory
	// that the process may use: the least of GOMEMLIMIT, the limits of its cgroup, and the host's.
	MaxMemory int `mapstructure:"max_memory"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// minMemory is the least that can be configured: enough for requests of a few thousand samples.
const minMemory = 16 << 20

// Unmarshal names unknown keys, and those that were meant.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return confkeys.Unmarshal(conf, c) }

// Validate reports all faults of the configuration.
func (c *Config) Validate() error {
	var errs []error
	if c.HTTP.NetAddr.Endpoint == "" {
		errs = append(errs, errors.New("`endpoint` must be set, for example to localhost:19291"))
	}
	if len(c.HTTP.CompressionAlgorithms) > 0 {
		errs = append(errs, errors.New("`compression_algorithms` must not be set: the protocol says which there are"))
	}
	if !strings.HasPrefix(c.Path, "/") {
		errs = append(errs, fmt.Errorf("`path` must begin with a slash, got %q", c.Path))
	}
	if c.MaxDecodedBodySize <= 0 {
		errs = append(errs, fmt.Errorf("`max_decoded_body_size` must be positive, got %d", c.MaxDecodedBodySize))
	}
	if c.MaxMemory != 0 && c.MaxMemory < minMemory {
		errs = append(errs, fmt.Errorf("`max_memory` must be 0 or at least %d, got %d", minMemory, c.MaxMemory))
	}
	return errors.Join(errs...)
}
