// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/config/configcompression"
	"go.opentelemetry.io/collector/config/configgrpc"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/server"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
	"github.com/godwit-otel/godwit/internal/buffers"
	"github.com/godwit-otel/godwit/internal/otlpstream"
	"github.com/godwit-otel/godwit/internal/redact"
)

// Validate reports all faults of the configuration.
func (c *Config) Validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Mode != server.Auto && c.Mode != server.Stream && c.Mode != server.Unary {
		fault("`mode` must be auto, stream or unary, got %q", c.Mode)
	}
	if c.ReprobeInterval <= 0 {
		fault("`reprobe_interval` must be positive, got %v", c.ReprobeInterval)
	}
	if c.Streams <= 0 || c.Streams > mostStreams {
		fault("`streams` must be between 1 and %d, got %d", mostStreams, c.Streams)
	}
	if c.Connections <= 0 || c.Connections > mostConnections {
		fault("`connections` must be between 1 and %d, got %d", mostConnections, c.Connections)
	}
	if c.InFlight.Requests <= 0 || c.InFlight.Requests > mostRequests {
		fault("`in_flight::requests` must be between 1 and %d, got %d", mostRequests, c.InFlight.Requests)
	}
	if c.InFlight.Bytes <= 0 {
		fault("`in_flight::bytes` must be positive, got %d", c.InFlight.Bytes)
	}
	if c.HistoryBytes < 0 {
		fault("`history_bytes` must not be negative, got %d; 0 sends no deltas", c.HistoryBytes)
	}
	if c.Rebalance.DeltaTimeout < 0 {
		fault("`rebalance::delta_timeout` must not be negative, got %v; 0 has streams closed as others are", c.Rebalance.DeltaTimeout)
	}
	if c.Rebalance.Timeout < 0 || c.Rebalance.Requests < 0 || c.Rebalance.Bytes < 0 {
		errs = append(errs, errors.New("`rebalance::timeout`, `rebalance::requests` and `rebalance::bytes` must not be negative; 0 is never"))
	}
	if c.AckTimeout <= 0 {
		fault("`ack_timeout` must be positive, got %v", c.AckTimeout)
	}
	if c.Shutdown.WaitForAcks && c.Shutdown.Timeout <= 0 {
		fault("`shutdown::timeout` must be positive, got %v; set `shutdown::wait_for_acks` to false not to wait", c.Shutdown.Timeout)
	}
	if c.Timeout < 0 {
		fault("`timeout` must not be negative, got %v; 0 is `ack_timeout`", c.Timeout)
	}
	if c.Queue.HasValue() {
		errs = append(errs, c.Queue.Get().validate(c.Ordered))
	}
	switch c.Rebalance.Scope {
	case scopeStream:
	case scopeConnection:
		if c.Connections != 1 {
			errs = append(errs, errors.New("`connections` must not be set where `rebalance::scope` is connection: each stream is one"))
		}
	default:
		fault("`rebalance::scope` must be stream or connection, got %q", c.Rebalance.Scope)
	}
	errs = append(errs, buffers.Check("", c.Client.ReadBufferSize, c.Client.WriteBufferSize))
	for i := range c.Endpoints {
		client := &c.Endpoints[i].Client
		errs = append(errs, buffers.Check(fmt.Sprintf("endpoints::%d::", i), client.ReadBufferSize, client.WriteBufferSize))
	}
	return errors.Join(append(errs, c.validateEndpoints(), c.validateTransport(), c.validateMetadata())...)
}

func (c *QueueConfig) validate(ordered bool) error {
	var errs []error
	if c.QueueSize <= 0 {
		errs = append(errs, fmt.Errorf("`sending_queue::queue_size` must be positive, got %d", c.QueueSize))
	}
	if c.WaitForResult && c.Storage != nil {
		errs = append(errs, errors.New("`sending_queue::wait_for_result` must not be set with `storage`: there would be nothing to store"))
	}
	if c.NumConsumers < 0 {
		errs = append(errs, fmt.Errorf("`sending_queue::num_consumers` must not be negative, got %d", c.NumConsumers))
	}
	if c.Batch.HasValue() {
		batch := c.Batch.Get()
		if batch.Sizer == c.Sizer && batch.MinSize > c.QueueSize {
			errs = append(errs, fmt.Errorf("`sending_queue::batch::min_size` must not be above `queue_size`, got %d: the queue would never hold a batch", batch.MinSize))
		}
		if ordered {
			errs = append(errs, errors.New("`sending_queue::batch` must not be set with `ordered`: batches do not keep the order of the queue; use a batch processor"))
		}
	}
	return errors.Join(errs...)
}

func (c *Config) validateEndpoints() error {
	if len(c.Endpoints) == 0 {
		if c.Client.Endpoint == "" {
			return errors.New("`endpoint` must be set, for example to gateway:4317, or `endpoints`")
		}
		return nil
	}
	var errs []error
	if c.Client.Endpoint != "" {
		errs = append(errs, errors.New("`endpoint` must not be set together with `endpoints`: make it one of them"))
	}
	if c.queue() == nil {
		errs = append(errs, errors.New("`sending_queue` must not be disabled with `endpoints`: each needs a queue, not to wait for the others"))
	}
	names := map[string]bool{}
	for i, d := range c.Endpoints {
		if d.Client.Endpoint == "" {
			errs = append(errs, fmt.Errorf("`endpoints::%d::endpoint` must be set, for example to gateway:4317", i))
		}
		if names[d.Name] {
			errs = append(errs, fmt.Errorf("`endpoints::%d::name` must differ from the others, got %q", i, d.Name))
		}
		names[d.Name] = true
	}
	return errors.Join(errs...)
}

func (c *Config) validateMetadata() error {
	var errs []error
	if c.MetadataCardinalityLimit <= 0 {
		errs = append(errs, fmt.Errorf("`metadata_cardinality_limit` must be positive, got %d", c.MetadataCardinalityLimit))
	}
	seen := map[string]bool{}
	for _, key := range c.MetadataKeys {
		lower := strings.ToLower(key)
		switch {
		case seen[lower]:
			errs = append(errs, fmt.Errorf("`metadata_keys` must have each key once, got %q again", key))
		case !isHeader(lower):
			errs = append(errs, fmt.Errorf("`metadata_keys` must have names of headers that are free to be set, got %q", key))
		}
		seen[lower] = true
		for _, d := range c.destinations() {
			for name := range d.Client.Headers.Iter {
				if strings.EqualFold(name, key) {
					errs = append(errs, fmt.Errorf("`headers` must not have %q, which is one of `metadata_keys`: it would be sent twice", name))
				}
			}
		}
	}
	return errors.Join(errs...)
}

// isHeader reports whether a name, in lower case, may be a header for client metadata.
func isHeader(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789-_."
	if name == "" || strings.Trim(name, letters) != "" || strings.HasSuffix(name, "-bin") {
		return false
	}
	for _, taken := range []string{"grpc-", "otlp-stream-", "sec-websocket-", "proxy-", "content-"} {
		if strings.HasPrefix(name, taken) {
			return false
		}
	}
	return !slices.Contains([]string{
		"connection", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "user-agent", "accept-encoding",
	}, name)
}

// validateAddresses reports endpoints that are not a host and a port.
func (c *Config) validateAddresses() error {
	var errs []error
	check := func(key string, a *address) {
		if a.whole != "" {
			errs = append(errs, fmt.Errorf("`%s` must be a host and a port, such as gateway:4317, got %q: for a path, or a port by default, set `transport: http`", key, redact.URL(a.whole)))
		}
	}
	check("endpoint", &c.address)
	for i := range c.Endpoints {
		check(fmt.Sprintf("endpoints::%d::endpoint", i), &c.Endpoints[i].address)
	}
	return errors.Join(errs...)
}

func (c *Config) validateTransport() error {
	// Settings of gRPC, and of WebSocket if it has them, too.
	foreign := map[string]func(*configgrpc.ClientConfig) bool{
		"authority":      func(c *configgrpc.ClientConfig) bool { return c.Authority != "" },
		"wait_for_ready": func(c *configgrpc.ClientConfig) bool { return c.WaitForReady },
	}
	switch c.Transport {
	case transport.GRPC:
		return c.validateAddresses()
	case transport.WebSocket:
		foreign["middlewares"] = func(c *configgrpc.ClientConfig) bool { return len(c.Middlewares) > 0 }
	case transport.HTTP:
		if c.Mode == server.Stream {
			return errors.New("`mode` must not be stream over http: there are no streams; use `transport` websocket")
		}
		if err := c.validateHTTP(); err != nil {
			return err
		}
	default:
		return fmt.Errorf("`transport` must be grpc, websocket or http, got %q", c.Transport)
	}
	if c.Connections != 1 {
		return fmt.Errorf("`connections` must not be set over %s: there are as many as are needed", c.Transport)
	}
	for _, d := range c.destinations() {
		if strings.ContainsAny(d.Client.Endpoint, "?#") {
			return fmt.Errorf("`endpoint` must have no query and no fragment, since the path of the signal is added at its end, got %q: set `headers` for a token", redact.URL(d.Client.Endpoint))
		}
		if t := d.Client.Compression; t.IsCompressed() && t != configcompression.TypeGzip && t != configcompression.TypeZstd {
			return fmt.Errorf("`compression` must be none, gzip or zstd over %s, got %q", c.Transport, t)
		}
		for key, isSet := range foreign {
			if isSet(&d.Client) {
				return fmt.Errorf("`%s` must not be set over %s: it belongs to gRPC", key, c.Transport)
			}
		}
	}
	return nil
}

func (c *Config) validateHTTP() error {
	for _, signal := range otlpstream.Signals() {
		if len(c.Endpoints) > 0 && c.HTTP.endpoint(signal) != "" {
			return fmt.Errorf("`http::%s_endpoint` must not be set together with `endpoints`: all would send there", signal)
		}
	}
	return c.HTTP.validate()
}
