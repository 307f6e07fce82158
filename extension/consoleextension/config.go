// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/confmap"

	"github.com/godwit-otel/godwit/internal/confkeys"
)

// defaultEndpoint is close to health_check's 13133 and below the ports that systems use for outgoing connections (on
// Linux 32768 and up), one of which could occupy it.
const defaultEndpoint = "127.0.0.1:13155"

// Config says where the console listens, and whom it answers.
type Config struct {
	// ServerConfig is the HTTP server, with TLS and authentication. Endpoint defaults to 127.0.0.1:13155,
	// max_request_body_size to 1 MiB, which it must not exceed; `cors` must not be set.
	ServerConfig confighttp.ServerConfig `mapstructure:",squash"`

	// AllowedHosts are further names, without a port, by which browsers may call the console. Without being listed, a
	// name works if it is localhost, a loopback address, the host of the endpoint, or the very address that a request
	// came in at. All else is refused, so that no site can have its own name lead here. Default none.
	AllowedHosts []string `mapstructure:"allowed_hosts"`

	// prevent unkeyed literal initialization
	_ struct{}
}

var _ component.Config = (*Config)(nil)

// maxBody is the maximum size of a request's body, whatever is configured.
const maxBody = 1 << 20

// Unmarshal reports unknown keys with suggestions.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return confkeys.Unmarshal(conf, c) }

// Validate reports all faults of the configuration.
func (c *Config) Validate() error {
	var errs []error
	endpoint := c.ServerConfig.NetAddr.Endpoint
	if endpoint == "" {
		errs = append(errs, fmt.Errorf("`endpoint` must not be empty; the default is %s", defaultEndpoint))
	} else if c.ServerConfig.NetAddr.Transport != "unix" {
		if _, _, err := net.SplitHostPort(endpoint); err != nil {
			errs = append(errs, fmt.Errorf("`endpoint` must be host:port, got %q: %w", endpoint, err))
		}
	}
	if c.ServerConfig.CORS.HasValue() {
		errs = append(errs, errors.New("`cors` must not be set: pages of other sites get no answers from the console; remove it"))
	}
	if n := c.ServerConfig.MaxRequestBodySize; n < 0 || n > maxBody {
		errs = append(errs, fmt.Errorf("`max_request_body_size` must be 0 to %d, got %d; 0 is the default", maxBody, n))
	}
	for i, host := range c.AllowedHosts {
		if !isHost(host) {
			errs = append(errs, fmt.Errorf("`allowed_hosts[%d]` must be a name or an address without scheme, port and path, such as console.example.com, got %q", i, host))
		}
	}
	return errors.Join(errs...)
}

// names returns the names by which browsers may call the console, besides names of this machine.
func (c *Config) names() []string {
	host := c.ServerConfig.NetAddr.Endpoint
	if c.ServerConfig.NetAddr.Transport == "unix" {
		host = ""
	} else if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return append([]string{host}, c.AllowedHosts...)
}

// isHost reports whether host is a name or an address, and not a URL or a pattern.
func isHost(host string) bool {
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	if host == "" || len(host) > 253 {
		return false
	}
	for _, c := range []byte(host) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '.', c == '_':
		default:
			return false
		}
	}
	return true
}
