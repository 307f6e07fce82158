// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"

	"github.com/godwit-otel/godwit/internal/buffers"
	"github.com/godwit-otel/godwit/internal/confkeys"
)

// Config is the configuration of the otlpstream receiver.
type Config struct {
	// Protocols are the servers to run. At least one is needed.
	Protocols Protocols `mapstructure:"protocols"`

	// InFlight limits requests that are not answered yet.
	InFlight InFlight `mapstructure:"in_flight"`

	// Streams limits the number and the age of streams.
	Streams Streams `mapstructure:"streams"`

	// Deduplicate answers requests that are resent because their answer was lost, without passing them on again.
	Deduplicate Deduplicate `mapstructure:"deduplicate"`

	// DrainTimeout is how long a stream that the receiver ends, and the receiver itself at shutdown, may
	// take to answer the requests it has. Default 10s.
	DrainTimeout time.Duration `mapstructure:"drain_timeout"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// Protocols are the servers.
type Protocols struct {
	// GRPC serves OTLP/gRPC and the stream services (default endpoint localhost:4317, max_recv_msg_size_mib 16,
	// max_concurrent_streams 256 per connection).
	GRPC configoptional.Optional[configgrpc.ServerConfig] `mapstructure:"grpc"`

	// HTTP serves OTLP/HTTP and the streams over WebSocket (default endpoint localhost:4318). max_request_body_size
	// (default 16 MiB) limits a message of either, compressed and not.
	HTTP configoptional.Optional[confighttp.ServerConfig] `mapstructure:"http"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// InFlight limits requests that are not answered yet.
type InFlight struct {
	// Bytes limits the size of all of them, decompressed. Requests beyond it are refused, with a
	// delay for their client. Decoded they take up to eight times as much memory; a request that would take more
	// counts as an eighth of its decoded size. Default 128 MiB, or a 16th of the memory there is if that is less.
	Bytes int `mapstructure:"bytes"`

	// RequestsPerStream limits one stream: the receiver reads no more from it until it has answered. It is
	// announced to clients, and those that support it keep within it. Default 256.
	RequestsPerStream int `mapstructure:"requests_per_stream"`

	// BytesPerStream is the same for bytes. It is announced to clients, and sets how far ahead HTTP/2 lets them send, up to
	// 16 MiB; as soon as a message is read, it counts against Bytes. Default 32 MiB, or as much as Bytes.
	BytesPerStream int `mapstructure:"bytes_per_stream"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// Streams limits the number and the age of streams.
type Streams struct {
	// Max limits the streams open at a time, over all transports. Further ones are answered with Unavailable.
	// Default 1000.
	Max int `mapstructure:"max"`

	// MaxAge ends streams that have been open this long, so that load balancers see new ones even if clients
	// do not end them. Set it larger than the clients' own limit. 0 is no limit. Default 10m.
	MaxAge time.Duration `mapstructure:"max_age"`

	// MaxRequests ends streams after this many requests. 0 is no limit. Default 0.
	MaxRequests int `mapstructure:"max_requests"`

	// Memory limits what streams remember from message to message, for packed payloads and deltas. The more streams are open,
	// the less a new one gets; if nothing is left, its client sends each message by itself. 0 gives none.
	// Default 256 MiB, or a third of the memory there is if that is less.
	Memory int `mapstructure:"memory"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// Deduplicate keeps resent requests from pipelines that have accepted them.
type Deduplicate struct {
	// Enabled turns it on. Default false.
	Enabled bool `mapstructure:"enabled"`

	// MaxSlots limits the client streams whose last 4,096 requests are remembered, in about 1 KiB each. For a further one,
	// the one that closed longest ago is forgotten. Default 10,000.
	MaxSlots int `mapstructure:"max_slots"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// Unmarshal reports unknown keys with suggestions.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return confkeys.Unmarshal(conf, c) }

// mostRequestsPerStream is the largest window of a stream, which has room for as many answers.
const mostRequestsPerStream = 65536

// Validate reports all faults of the configuration.
func (c *Config) Validate() error {
	var errs []error
	if !c.Protocols.GRPC.HasValue() && !c.Protocols.HTTP.HasValue() {
		errs = append(errs, errors.New("`protocols` must have `grpc`, `http` or both"))
	}
	for key, n := range map[string]int{
		"in_flight::bytes":               c.InFlight.Bytes,
		"in_flight::requests_per_stream": c.InFlight.RequestsPerStream,
		"in_flight::bytes_per_stream":    c.InFlight.BytesPerStream,
		"streams::max":                   c.Streams.Max,
		"deduplicate::max_slots":         c.Deduplicate.MaxSlots,
	} {
		if n <= 0 {
			errs = append(errs, fmt.Errorf("`%s` must be positive, got %d", key, n))
		}
	}
	if c.InFlight.RequestsPerStream > mostRequestsPerStream {
		errs = append(errs, fmt.Errorf("`in_flight::requests_per_stream` must be at most %d, got %d", mostRequestsPerStream, c.InFlight.RequestsPerStream))
	}
	if c.Streams.Memory < 0 {
		errs = append(errs, fmt.Errorf("`streams::memory` must not be negative, got %d; 0 has streams keep nothing", c.Streams.Memory))
	}
	if c.Streams.MaxAge < 0 {
		errs = append(errs, fmt.Errorf("`streams::max_age` must not be negative, got %v; 0 is no limit", c.Streams.MaxAge))
	}
	if c.Streams.MaxRequests < 0 {
		errs = append(errs, fmt.Errorf("`streams::max_requests` must not be negative, got %d; 0 is no limit", c.Streams.MaxRequests))
	}
	if grpc := c.Protocols.GRPC.Get(); grpc != nil {
		errs = append(errs, buffers.Check("protocols::grpc::", grpc.ReadBufferSize, grpc.WriteBufferSize))
	}
	if c.DrainTimeout <= 0 {
		errs = append(errs, fmt.Errorf("`drain_timeout` must be positive, got %v", c.DrainTimeout))
	}
	if c.Protocols.HTTP.HasValue() && c.Protocols.HTTP.Get().MaxRequestBodySize <= 0 {
		errs = append(errs, errors.New("`protocols::http::max_request_body_size` must be positive: what is decoded is held in memory"))
	}
	return errors.Join(errs...)
}
