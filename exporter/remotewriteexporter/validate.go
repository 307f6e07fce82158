// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"errors"
	"fmt"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/collector/config/confighttp"

	"github.com/godwit-otel/godwit/internal/buffers"
	"github.com/godwit-otel/godwit/internal/promwrite"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/queue"
)

const (
	auto   = "auto"
	always = "always"
	never  = "never"

	oneZero = "1.0"
	twoZero = "2.0"
	zstd    = "zstd"
	snappy  = "snappy"

	onFullBlock      = "block"
	onFullDropOldest = "drop_oldest"
	onFullDropNewest = "drop_newest"
)

var (
	versions = map[string]promwrite.Version{
		twoZero: promwrite.V2, "io.prometheus.write.v2.Request": promwrite.V2,
		oneZero: promwrite.V1, "prometheus.WriteRequest": promwrite.V1,
	}
	encodings = map[string]promwrite.Encoding{zstd: promwrite.Zstd, snappy: promwrite.Snappy}
	onFull    = map[string]queue.OnFull{
		onFullBlock: queue.Block, onFullDropOldest: queue.DropOldest, onFullDropNewest: queue.DropNewest,
	}
	strategies = []otlptranslator.TranslationStrategyOption{
		otlptranslator.UnderscoreEscapingWithSuffixes, otlptranslator.UnderscoreEscapingWithoutSuffixes,
		otlptranslator.NoUTF8EscapingWithSuffixes, otlptranslator.NoTranslation,
	}
	// reserved headers say how a request is encoded; changing them makes it unreadable.
	reserved = []string{
		"Content-Encoding", "Content-Length", "Content-Type", "Retry-Attempt", "User-Agent",
		promwrite.HeaderVersion, textproto.CanonicalMIMEHeaderKey(promwrite.HeaderVictoriaMetricsVersion),
	}
)

// Validate reports all faults of the configuration.
func (c *Config) Validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	switch {
	case len(c.Endpoints) > 0 && (c.Endpoint != "" || c.HTTP.Endpoint != ""):
		fault("`endpoints` excludes `endpoint` and `http.endpoint`: move that one into the list")
	case c.Endpoint != "" && c.HTTP.Endpoint != "":
		fault("`endpoint` and `http.endpoint` mean the same: remove one")
	case len(c.Endpoints) == 0 && c.Endpoint == "" && c.HTTP.Endpoint == "":
		fault("`endpoint` must be set, for example to http://localhost:9090/api/v1/write, or `endpoints`")
	}
	for _, d := range c.clients() {
		errs = append(errs, c.validateClient(d.key, d.endpointKey, &d.client), buffers.Check(d.key, d.client.ReadBufferSize, d.client.WriteBufferSize),
			d.validateCloud())
		if d.rate.BytesPerSecond < 0 || d.rate.SamplesPerSecond < 0 {
			fault("`rate_limit` of `%s` must not be negative, got %d bytes and %d samples a second; 0 is none", d.endpointKey,
				d.rate.BytesPerSecond, d.rate.SamplesPerSecond)
		}
	}

	if len(c.Endpoints) > 0 && (c.AzureAD != nil || c.GoogleIAM != nil) {
		fault("`azuread` and `google_iam` are for `endpoint`: move them into the elements of `endpoints`")
	}
	errs = append(errs, c.validateSharding())
	first := map[string]int{}
	for i := range c.Endpoints {
		errs = append(errs, c.validateOwn(&c.Endpoints[i], fmt.Sprintf("endpoints[%d].", i)))
		// By its URL a reload or a restart finds a destination's queue: equal ones that change places would send each other's data.
		switch j, ok := first[c.Endpoints[i].HTTP.Endpoint]; {
		case ok:
			fault("`endpoints[%d].endpoint` must not be the same as `endpoints[%d].endpoint`: append #a to one and #b to the other, or any names, "+
				"which tell their queues apart and are not sent", i, j)
		default:
			first[c.Endpoints[i].HTTP.Endpoint] = i
		}
	}

	if _, ok := versions[c.ProtobufMessage]; !ok && c.ProtobufMessage != auto {
		fault("`protobuf_message` must be auto, 2.0, 1.0 or one of their full names, got %q", c.ProtobufMessage)
	}
	if _, ok := encodings[c.Compression]; !ok && c.Compression != auto {
		fault("`compression` must be auto, zstd or snappy, got %q", c.Compression)
	}
	if c.CompressionLevel < 1 || c.CompressionLevel > 4 {
		fault("`compression_level` must be from 1 to 4, got %d", c.CompressionLevel)
	}
	if _, ok := onFull[c.Queue.OnFull]; !ok {
		fault("`queue.on_full` must be block, drop_oldest or drop_newest, got %q", c.Queue.OnFull)
	}
	if key := c.Queue.stored(); key != "" && c.Queue.WaitForResult {
		fault("`queue.wait_for_result` must not be set along with `%s`, which answers once data is stored: choose one", key)
	}
	if key := c.Queue.stored(); key != "" && c.Queue.MaxBatches > 0 {
		fault("`queue.max_batches` must not be set along with `%s`, which `queue.size` bounds: remove one", key)
	}
	if !slices.Contains([]string{auto, always, never}, c.ScopeLabels) {
		fault("`scope_labels` must be auto, always or never, got %q", c.ScopeLabels)
	}
	strategy := otlptranslator.TranslationStrategyOption(c.TranslationStrategy)
	if !slices.Contains(strategies, strategy) {
		fault("`translation_strategy` must be one of %v, got %q", strategies, c.TranslationStrategy)
	} else if !strategy.ShouldEscape() && versions[c.ProtobufMessage] == promwrite.V1 {
		fault("`translation_strategy` %s needs UTF-8 names, which `protobuf_message: 1.0` does not have: choose 2.0 or auto", strategy)
	}
	if c.ConvertExplicitHistogramsToNHCB && versions[c.ProtobufMessage] == promwrite.V1 && !c.KeepClassicHistograms {
		fault("`convert_explicit_histograms_to_nhcb` needs 2.0: choose `protobuf_message: 2.0` or auto, or set `keep_classic_histograms`")
	}

	encoding := c.encoding(1)
	if err := encoding.Names.CheckExternalLabels(); err != nil {
		fault("`external_labels`: %w", err)
	}
	_, err := relabelling(c.WriteRelabelConfigs, c.scheme(), "")
	errs = append(errs, err)

	for _, f := range []struct {
		key       string
		value     int64
		allowZero bool
	}{
		{"timeout", int64(c.Timeout), false},
		{"reprobe_interval", int64(c.ReprobeInterval), false},
		{"queue.block_timeout", int64(c.Queue.BlockTimeout), true},
		{"shutdown_timeout", int64(c.ShutdownTimeout), true},
		{"batch.max_samples", int64(c.Batch.MaxSamples), false},
		{"batch.max_bytes", int64(c.Batch.MaxBytes), false},
		{"batch.max_raw_bytes", int64(c.Batch.MaxRawBytes), false},
		{"batch.timeout", int64(c.Batch.Timeout), true},
		{"queue.size", c.Queue.Size, true},
		{"queue.fresh_first_after", int64(c.Queue.FreshFirstAfter), true},
		{"queue.max_age", int64(c.Queue.MaxAge), true},
		{"queue.max_batches", c.Queue.MaxBatches, true},
		{"retry.initial_interval", int64(c.Retry.InitialInterval), false},
		{"retry.max_interval", int64(c.Retry.MaxInterval), false},
		{"retry.max_elapsed_time", int64(c.Retry.MaxElapsedTime), true},
		{"retry.max_retry_after", int64(c.Retry.MaxRetryAfter), false},
		{"shards.min", int64(c.Shards.Min), false},
		{"shards.max", int64(c.Shards.Max), false},
		{"circuit_breaker.consecutive_failures", int64(c.CircuitBreaker.ConsecutiveFailures), true},
		{"tenant.max", int64(c.Tenant.Max), false},
		{"cache.max_series", int64(c.Cache.MaxSeries), false},
		{"cache.idle_timeout", int64(c.Cache.IdleTimeout), false},
		{"target_info.interval", int64(c.TargetInfo.Interval), true},
		{"delta.max_series", int64(c.Delta.MaxSeries), false},
	} {
		if f.value < 0 || f.value == 0 && !f.allowZero {
			fault("`%s` must be positive, got %d", f.key, f.value)
		}
	}
	if c.Shards.Max < c.Shards.Min || c.Shards.Max > MaxShards {
		fault("`shards.max` must be from `shards.min`, %d, to %d, got %d", c.Shards.Min, MaxShards, c.Shards.Max)
	}
	if c.Retry.MaxInterval < c.Retry.InitialInterval {
		fault("`retry.max_interval` must not be less than `retry.initial_interval`")
	}
	if c.Retry.Multiplier < 1 {
		fault("`retry.multiplier` must be at least 1, got %v", c.Retry.Multiplier)
	}
	if c.Retry.RandomizationFactor < 0 || c.Retry.RandomizationFactor > 1 {
		fault("`retry.randomization_factor` must be from 0 to 1, got %v", c.Retry.RandomizationFactor)
	}
	for _, code := range c.Retry.StatusCodes {
		if code < 400 || code > 499 || code == 413 {
			fault("`retry.status_codes` must be 4xx, but for 413, which splits the request, got %d", code)
		}
	}
	if c.CircuitBreaker.ConsecutiveFailures > 0 && c.CircuitBreaker.OpenFor <= 0 {
		fault("`circuit_breaker.open_for` must be positive, got %s; `consecutive_failures: 0` turns the breaker off", c.CircuitBreaker.OpenFor)
	}
	errs = append(errs, c.Tenant.validate())
	return errors.Join(errs...)
}

func (c *Config) validateClient(key, endpointKey string, client *confighttp.ClientConfig) error {
	var errs []error
	if u, err := url.Parse(client.Endpoint); client.Endpoint != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		errs = append(errs, fmt.Errorf("`%s` must be an http or https URL, got %q", endpointKey, client.Endpoint))
	} else if client.Endpoint == "" && len(c.Endpoints) > 0 {
		errs = append(errs, fmt.Errorf("`%s` must be set", endpointKey))
	}
	if u, err := url.Parse(client.Endpoint); err == nil && strings.HasPrefix(u.Host, byService) && u.Port() != "" {
		errs = append(errs, fmt.Errorf("`%s` must have no port after `%s`, whose records have it, got %q", endpointKey, byService, client.Endpoint))
	}
	if client.Compression != "" {
		errs = append(errs, fmt.Errorf("`%scompression` must not be set: use `compression`, of the exporter or in `endpoints`", key))
	}
	for name := range client.Headers.Iter {
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		if slices.Contains(reserved, canonical) {
			errs = append(errs, fmt.Errorf("`%sheaders` must not have %q: the protocol says what it is", key, name))
		}
		for _, key := range c.Tenant.MetadataKeys {
			if canonical == textproto.CanonicalMIMEHeaderKey(key) {
				errs = append(errs, fmt.Errorf("`%sheaders` must not have %q, which is of `tenant.metadata_keys`", key, name))
			}
		}
		if c.Tenant.Header != "" && canonical == textproto.CanonicalMIMEHeaderKey(c.Tenant.Header) {
			errs = append(errs, fmt.Errorf("`%sheaders` must not have %q, which is `tenant.header`: use `tenant.default`", key, name))
		}
	}
	return errors.Join(errs...)
}

func (c *TenantConfig) validate() error {
	var errs []error
	for _, key := range c.MetadataKeys {
		switch {
		case slices.Contains(reserved, textproto.CanonicalMIMEHeaderKey(key)):
			errs = append(errs, fmt.Errorf("`tenant.metadata_keys` must not have %q: the protocol says what that header is", key))
		case !isHeaderName(key):
			errs = append(errs, fmt.Errorf("`tenant.metadata_keys` must be names of headers, got %q", key))
		}
	}
	switch {
	case len(c.MetadataKeys) > 0:
		if c.Header != "" || c.FromMetadata != "" || c.FromResourceAttribute != "" || c.Default != "" {
			errs = append(errs, errors.New("`tenant.metadata_keys` must not be set along with `header`, `from_metadata`, `from_resource_attribute` or `default`"))
		}
	case c.Header == "":
		if c.FromMetadata != "" || c.FromResourceAttribute != "" || c.Default != "" {
			errs = append(errs, errors.New("`tenant.header` must be set, for example to X-Scope-OrgID"))
		}
	case slices.Contains(reserved, textproto.CanonicalMIMEHeaderKey(c.Header)):
		errs = append(errs, fmt.Errorf("`tenant.header` must not be %q: the protocol says what it is", c.Header))
	case !isHeaderName(c.Header):
		errs = append(errs, fmt.Errorf("`tenant.header` must be a header's name, got %q", c.Header))
	case (c.FromMetadata == "") == (c.FromResourceAttribute == ""):
		errs = append(errs, errors.New("one of `tenant.from_metadata` and `tenant.from_resource_attribute` must be set"))
	}
	return errors.Join(errs...)
}

// stored is the key that puts the queue on disk; empty if it is in memory.
func (c *QueueConfig) stored() string {
	switch {
	case c.Storage != nil:
		return "queue.storage"
	case c.Directory != "":
		return "queue.directory"
	}
	return ""
}

func isHeaderName(name string) bool { return name != "" && !strings.ContainsAny(name, " \t\r\n:") }
