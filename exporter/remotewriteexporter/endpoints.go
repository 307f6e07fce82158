// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/confmap"

	"github.com/godwit-otel/godwit/internal/promwrite"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/queue"
)

// EndpointConfig is one of several destinations.
type EndpointConfig struct {
	HTTP confighttp.ClientConfig `mapstructure:",squash"`
	// RateLimit is in place of the exporter's; 0 in it is none, whatever the exporter has. Default the exporter's.
	RateLimit *RateLimitConfig `mapstructure:"rate_limit"`
	// Queue has what is different for this destination.
	Queue EndpointQueueConfig `mapstructure:"queue"`
	// ProtobufMessage and Compression are in place of the exporter's. What others are sent in another format is written
	// anew for this destination when it is sent. Default the exporter's.
	ProtobufMessage string `mapstructure:"protobuf_message"`
	Compression     string `mapstructure:"compression"`
	// AzureAD and GoogleIAM authenticate requests to this endpoint at these clouds. Default none.
	AzureAD   *AzureADConfig   `mapstructure:"azuread"`
	GoogleIAM *GoogleIAMConfig `mapstructure:"google_iam"`
	// WriteRelabelConfigs are applied, after the exporter's, to what this destination gets. Default none.
	WriteRelabelConfigs []RelabelConfig `mapstructure:"write_relabel_configs"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// EndpointQueueConfig is how the queue of one destination differs from those of the others.
type EndpointQueueConfig struct {
	// Size, OnFull, FreshFirstAfter and MaxAge are in place of the exporter's. Default the exporter's.
	Size            int64          `mapstructure:"size"`
	OnFull          string         `mapstructure:"on_full"`
	FreshFirstAfter *time.Duration `mapstructure:"fresh_first_after"`
	MaxAge          *time.Duration `mapstructure:"max_age"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// Unmarshal starts from the defaults of a client, which elements of a list would lack.
func (c *EndpointConfig) Unmarshal(conf *confmap.Conf) error {
	c.HTTP = defaultClient()
	// The embedded client has a key of that name, too, with other values.
	compression, isText := conf.Get("compression").(string)
	if isText {
		conf.Delete("compression")
	}
	if err := conf.Unmarshal(c); err != nil {
		return err
	}
	c.Compression = compression
	return nil
}

// endpointName is the key of an address, for the exporter and for each destination.
const endpointName = "endpoint"

// A namedClient is a destination, the prefix of its keys, the key of its endpoint, and its policy.
type namedClient struct {
	key, endpointKey string
	client           confighttp.ClientConfig
	rate             RateLimitConfig
	queue            QueueConfig
	message          string // the value of protobuf_message
	compression      string
	rules            []RelabelConfig // of this destination
	cloudKey         string          // the prefix of the keys of clouds
	azure            *AzureADConfig
	google           *GoogleIAMConfig
}

// clients returns the destinations.
func (c *Config) clients() []namedClient {
	n := namedClient{
		key: "http.", endpointKey: "http." + endpointName, client: c.HTTP,
		rate: c.RateLimit, queue: c.Queue, message: c.ProtobufMessage, compression: c.Compression,
		azure: c.AzureAD, google: c.GoogleIAM,
	}
	if len(c.Endpoints) == 0 {
		if c.Endpoint != "" {
			n.endpointKey, n.client.Endpoint = endpointName, c.Endpoint
		}
		return []namedClient{n}
	}
	var list []namedClient
	for i := range c.Endpoints {
		list = append(list, n.with(&c.Endpoints[i], fmt.Sprintf("endpoints[%d].", i)))
	}
	return list
}

// with returns n with the settings of an endpoint.
func (n *namedClient) with(own *EndpointConfig, key string) namedClient {
	to := *n
	to.key, to.endpointKey, to.client = key, key+endpointName, own.HTTP
	if own.RateLimit != nil {
		to.rate = *own.RateLimit
	}
	to.message = cmp.Or(own.ProtobufMessage, to.message)
	to.compression = cmp.Or(own.Compression, to.compression)
	to.rules = own.WriteRelabelConfigs
	to.cloudKey, to.azure, to.google = key, own.AzureAD, own.GoogleIAM
	to.queue.Size = cmp.Or(own.Queue.Size, to.queue.Size)
	to.queue.OnFull = cmp.Or(own.Queue.OnFull, to.queue.OnFull)
	if own.Queue.FreshFirstAfter != nil {
		to.queue.FreshFirstAfter = *own.Queue.FreshFirstAfter
	}
	if own.Queue.MaxAge != nil {
		to.queue.MaxAge = *own.Queue.MaxAge
	}
	return to
}

// policy is the queue policy of the destination.
func (n *namedClient) policy() queue.Policy {
	return queue.Policy{
		Size: n.queue.Size, OnFull: onFull[n.queue.OnFull], FreshFor: n.queue.FreshFirstAfter, MaxAge: n.queue.MaxAge,
	}
}

func policies(clients []namedClient) []queue.Policy {
	var list []queue.Policy
	for i := range clients {
		list = append(list, clients[i].policy())
	}
	return list
}

// formats are what a destination may be sent, the best first.
func (c *Config) formats(n *namedClient) []block.Format {
	var list []block.Format
	for _, version := range []promwrite.Version{promwrite.V2, promwrite.V1} {
		if pinned, ok := versions[n.message]; ok && pinned != version {
			continue
		}
		if version == promwrite.V1 && !c.Names.escapes() {
			continue // 1.0 has no UTF-8 names
		}
		for _, encoding := range []promwrite.Encoding{promwrite.Zstd, promwrite.Snappy} {
			if pinned, ok := encodings[n.compression]; ok && pinned != encoding {
				continue
			}
			list = append(list, block.Format{Version: version, Compression: encoding, Level: c.CompressionLevel})
		}
	}
	return list
}

// validateOwn reports faults of a destination's own settings. Those of the exporter are reported once, as such.
func (c *Config) validateOwn(own *EndpointConfig, key string) error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if _, ok := versions[own.ProtobufMessage]; !ok && own.ProtobufMessage != auto && own.ProtobufMessage != "" {
		fault("`%sprotobuf_message` must be auto, 2.0, 1.0 or one of their full names, got %q", key, own.ProtobufMessage)
	}
	if versions[own.ProtobufMessage] == promwrite.V1 && own.ProtobufMessage != "" {
		if !c.Names.escapes() {
			fault("`translation_strategy` %s needs UTF-8 names, which `%sprotobuf_message: 1.0` does not have: choose 2.0 or auto", c.Names.TranslationStrategy, key)
		}
		if c.Points.isCustomOnly() {
			fault("`convert_explicit_histograms_to_nhcb` needs 2.0, but `%sprotobuf_message` is 1.0: set `keep_classic_histograms`, or give that destination an exporter of its own", key)
		}
	}
	if _, ok := encodings[own.Compression]; !ok && own.Compression != auto && own.Compression != "" {
		fault("`%scompression` must be auto, zstd or snappy, got %q", key, own.Compression)
	}
	if _, ok := onFull[own.Queue.OnFull]; !ok && own.Queue.OnFull != "" {
		fault("`%squeue.on_full` must be block, drop_oldest or drop_newest, got %q", key, own.Queue.OnFull)
	}
	if own.Queue.Size < 0 {
		fault("`%squeue.size` must be positive, got %d", key, own.Queue.Size)
	}
	if d := own.Queue.FreshFirstAfter; d != nil && *d < 0 {
		fault("`%squeue.fresh_first_after` must not be negative, got %s", key, *d)
	}
	if d := own.Queue.MaxAge; d != nil && *d < 0 {
		fault("`%squeue.max_age` must not be negative, got %s", key, *d)
	}
	if _, err := relabelling(own.WriteRelabelConfigs, c.Names.scheme(), key); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
