// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter/exporterhelper"

	"github.com/godwit-otel/godwit/internal/confkeys"
	"github.com/godwit-otel/godwit/internal/redact"
)

// Config is the configuration of the otlpstream exporter.
type Config struct {
	// Client is the connection: endpoint, tls, headers, auth, compression (default zstd), keepalive (default time 0: over
	// WebSocket 10s, over gRPC 5m10s, since servers may end a connection on which they are asked more often) and the rest of gRPC's settings. Over
	// WebSocket, endpoint, tls, headers, auth, compression and keepalive apply.
	Client configgrpc.ClientConfig `mapstructure:",squash"`

	// Endpoints are several destinations for the same data, each with a client of its own, in place of Endpoint and
	// what belongs to it. Data is encoded once; queue, acknowledgements and retries are each destination's own.
	Endpoints []EndpointConfig `mapstructure:"endpoints"`

	// Transport is grpc, websocket, or http, which has no streams. Default grpc.
	Transport string `mapstructure:"transport"`

	// Mode is stream, unary, or auto: streams, and unary requests for as long as the server knows no streams. Over http it is
	// unary. Default auto.
	Mode string `mapstructure:"mode"`

	// HTTP is what only OTLP/HTTP has.
	HTTP HTTPConfig `mapstructure:"http"`

	// ReprobeInterval is how long auto sends unary requests before it tries a stream again. Default 5m.
	ReprobeInterval time.Duration `mapstructure:"reprobe_interval"`

	// Ordered sends requests in the order of the queue, and has the server hand them on in that order where they are about the
	// same resource. Default false.
	Ordered bool `mapstructure:"ordered"`

	// MetadataKeys are keys of client metadata that requests take along: each set of values has streams of its own, which say
	// so in headers of these names. Default none.
	MetadataKeys []string `mapstructure:"metadata_keys"`

	// MetadataCardinalityLimit bounds the sets that have streams at a time, for each destination. Requests of others are sent
	// one by one, or wait where Mode is stream. Default 100.
	MetadataCardinalityLimit int `mapstructure:"metadata_cardinality_limit"`

	// Streams is the number of streams used at a time. They are opened when there is something to send. Default
	// half the CPUs, at least 1 and at most 4; 1024 are the most.
	Streams int `mapstructure:"streams"`

	// Connections is the number of gRPC connections that the streams are spread over. Over WebSocket each stream
	// is a connection. 1024 are the most. Default 1.
	Connections int `mapstructure:"connections"`

	// HistoryBytes bounds what a stream keeps of the metrics it has sent, so that of those that come again only what has
	// changed is sent. A server may allow less. 0 sends all. Default 16 MiB.
	HistoryBytes int `mapstructure:"history_bytes"`

	// Rebalance closes streams and opens others, so that load balancers can place them anew.
	Rebalance Rebalance `mapstructure:"rebalance"`

	// InFlight bounds what is sent, or about to be sent, and not acknowledged.
	InFlight InFlight `mapstructure:"in_flight"`

	// Timeout is how long a unary request may take in all. 0 is AckTimeout. Requests on streams have no such limit. Default 0.
	Timeout time.Duration `mapstructure:"timeout"`

	// Arrow is what the otelarrow exporter has of this name. It is not used, and the log says so.
	Arrow map[string]any `mapstructure:"arrow"`

	// AckTimeout is how long a request may go without an answer while nothing else is answered either, or after one
	// that was sent later was; then it is dropped. It should be much longer than the server takes to answer. Default 30s.
	AckTimeout time.Duration `mapstructure:"ack_timeout"`

	// ResendUnacked sends what was not acknowledged again when a stream is lost. Some of it may have arrived, and
	// will be there twice. Without it, it is dropped. Default true.
	ResendUnacked bool `mapstructure:"resend_unacked"`

	// Shutdown says what happens to unacknowledged requests at the end.
	Shutdown Shutdown `mapstructure:"shutdown"`

	// Retry bounds the attempts at requests that the server asks to send again, and their age.
	Retry configretry.BackOffConfig `mapstructure:"retry_on_failure"`

	// Queue holds what cannot be sent yet.
	Queue configoptional.Optional[QueueConfig] `mapstructure:"sending_queue"`

	address address
	ending  *ending

	// prevent unkeyed literal initialization
	_ struct{}
}

// EndpointConfig is one of several destinations.
type EndpointConfig struct {
	// Name is what metrics and logs call the destination, and what its queue on disk is known by. Default its
	// endpoint, without a user and the values of a query.
	Name string `mapstructure:"name"`

	// Client is the connection.
	Client configgrpc.ClientConfig `mapstructure:",squash"`

	address address

	// prevent unkeyed literal initialization
	_ struct{}
}

// Unmarshal starts from the defaults of a client, which elements of a list would lack.
func (c *EndpointConfig) Unmarshal(conf *confmap.Conf) error {
	c.Client = defaultClient()
	if err := conf.Unmarshal(c); err != nil {
		return err
	}
	if c.Name == "" {
		c.Name = redact.URL(c.Client.Endpoint)
	}
	c.address.reduce(&c.Client)
	return nil
}

// Unmarshal reports unknown keys with suggestions.
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	if err := confkeys.Unmarshal(conf, c); err != nil {
		return err
	}
	c.address.reduce(&c.Client)
	return nil
}

// destinations returns all destinations.
func (c *Config) destinations() []EndpointConfig {
	var all []EndpointConfig
	for _, e := range c.Endpoints {
		all = append(all, EndpointConfig{Name: e.Name, Client: e.address.restore(e.Client)})
	}
	if len(all) == 0 {
		client := c.address.restore(c.Client)
		all = append(all, EndpointConfig{Name: redact.URL(client.Endpoint), Client: client})
	}
	return all
}

// Rebalance closes streams and opens others.
type Rebalance struct {
	// Scope is what a balancer is to place anew: stream, or connection for balancers that know no streams. Then each
	// stream has a gRPC connection of its own, to an address of those that its name resolves to by then. Default
	// stream.
	Scope string `mapstructure:"scope"`

	// Timeout is the age at which a stream is closed after the next request, give or take 10 %. 0 is never.
	// Default 30s.
	Timeout time.Duration `mapstructure:"timeout"`

	// Requests closes a stream once it has carried more than so many requests. 0 is never. Default 1000.
	Requests int `mapstructure:"requests"`

	// Bytes closes a stream once it has carried more than so many bytes, before compression. 0 is never. Default 0.
	Bytes int64 `mapstructure:"bytes"`

	// DeltaTimeout is the age up to which none of them closes a stream that sends deltas: the next one has to send all of
	// the metrics first. 0 is that they do. Default 5m.
	DeltaTimeout time.Duration `mapstructure:"delta_timeout"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// Maxima, since each one takes a goroutine or a connection.
const (
	mostStreams     = 1024
	mostConnections = 1024
	mostRequests    = 16384
)

// InFlight bounds what is in flight.
type InFlight struct {
	// Requests bounds their number, 1 being one at a time, 16384 the most. Default 128.
	Requests int `mapstructure:"requests"`

	// Bytes bounds their size before compression. A larger request is sent alone. Default 32 MiB.
	Bytes int64 `mapstructure:"bytes"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// Shutdown says what happens at the end.
type Shutdown struct {
	// WaitForAcks sends what a queue in memory holds and waits for acknowledgements. Without it, all that is not
	// acknowledged is dropped at once, or stays in the queue on disk. What is there stays, too, where the server is away, and
	// nothing that was sent is unanswered. Default true.
	WaitForAcks bool `mapstructure:"wait_for_acks"`

	// Timeout is how long to wait, for the exporters of all signals together. Default 10s.
	Timeout time.Duration `mapstructure:"timeout"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// QueueConfig holds what cannot be sent yet. The keys mean what they do for other exporters.
type QueueConfig struct {
	// QueueSize is the size of the queue, including what is in flight. Default 1000.
	QueueSize int64 `mapstructure:"queue_size"`

	// Sizer is what QueueSize counts: requests, items or bytes. Default requests.
	Sizer exporterhelper.RequestSizerType `mapstructure:"sizer"`

	// BlockOnOverflow waits for room where the queue is full. Without it, data is refused. Default false.
	BlockOnOverflow bool `mapstructure:"block_on_overflow"`

	// Storage is the storage extension that keeps the queue on disk. Default none.
	Storage *component.ID `mapstructure:"storage"`

	// WaitForResult has whoever sends wait until the data is delivered, or refused for good. There is no queue then, and its other keys
	// do nothing. Default false.
	WaitForResult bool `mapstructure:"wait_for_result"`

	// NumConsumers is not used, and the log says so: InFlight.Requests bounds what is sent at a time. Default 0.
	NumConsumers int `mapstructure:"num_consumers"`

	// Batch merges what is in the queue to requests of a size. Default off.
	Batch configoptional.Optional[exporterhelper.BatchConfig] `mapstructure:"batch"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// Unmarshal sets the sizer of batches to that of the queue, unless they have their own.
func (c *QueueConfig) Unmarshal(conf *confmap.Conf) error {
	if err := conf.Unmarshal(c); err != nil {
		return err
	}
	if conf.IsSet("sizer") && conf.IsSet("batch") && !conf.IsSet("batch::sizer") && c.Batch.HasValue() &&
		c.Sizer != exporterhelper.RequestSizerTypeRequests {
		c.Batch.Get().Sizer = c.Sizer
	}
	return nil
}

// queue returns the queue's configuration, nil if callers wait for the result.
func (c *Config) queue() *QueueConfig {
	if !c.Queue.HasValue() || c.Queue.Get().WaitForResult {
		return nil
	}
	return c.Queue.Get()
}

// Values of Scope. Those of Transport and Mode are in their packages.
const (
	scopeStream     = "stream"
	scopeConnection = "connection"
)
