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
	"github.com/godwit-otel/godwit/internal/redact"

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
	return errors.Join(c.validateEndpoints(), c.validateFormat(), c.Queue.validate(), c.validateNumbers(), c.Shards.validate(),
		c.Retry.validate(), c.CircuitBreaker.validate(), c.Tenant.validate())
}

// faults of a configuration. All of them are reported at once.
type faults []error

func (f *faults) add(format string, args ...any) { *f = append(*f, fmt.Errorf(format, args...)) }

// addAll adds errors, of which some may be nil.
func (f *faults) addAll(errs ...error) { *f = append(*f, errs...) }

func (f *faults) join() error { return errors.Join(*f...) }

func (c *Config) validateEndpoints() error {
	var f faults
	switch {
	case len(c.Endpoints) > 0 && (c.Endpoint != "" || c.HTTP.Endpoint != ""):
		f.add("`endpoints` excludes `endpoint` and `http.endpoint`: move that one into the list")
	case c.Endpoint != "" && c.HTTP.Endpoint != "":
		f.add("`endpoint` and `http.endpoint` mean the same: remove one")
	case len(c.Endpoints) == 0 && c.Endpoint == "" && c.HTTP.Endpoint == "":
		f.add("`endpoint` must be set, for example to http://localhost:9090/api/v1/write, or `endpoints`")
	}
	for _, d := range c.clients() {
		f.addAll(c.validateClient(d.key, d.endpointKey, &d.client), buffers.Check(d.key, d.client.ReadBufferSize, d.client.WriteBufferSize),
			d.validateCloud())
		if d.rate.BytesPerSecond < 0 || d.rate.SamplesPerSecond < 0 {
			f.add("`rate_limit` of `%s` must not be negative, got %d bytes and %d samples a second; 0 is none", d.endpointKey,
				d.rate.BytesPerSecond, d.rate.SamplesPerSecond)
		}
	}
	if len(c.Endpoints) > 0 && (c.AzureAD != nil || c.GoogleIAM != nil) {
		f.add("`azuread` and `google_iam` are for `endpoint`: move them into the elements of `endpoints`")
	}
	f.addAll(c.validateSharding())

	first := map[string]int{}
	for i := range c.Endpoints {
		f.addAll(c.validateOwn(&c.Endpoints[i], fmt.Sprintf("endpoints[%d].", i)))
		// By its URL a reload or a restart finds a destination's queue: equal ones that change places would send each other's data.
		switch j, ok := first[c.Endpoints[i].HTTP.Endpoint]; {
		case ok:
			f.add("`endpoints[%d].endpoint` must not be the same as `endpoints[%d].endpoint`: append #a to one and #b to the other, or any names, "+
				"which tell their queues apart and are not sent", i, j)
		default:
			first[c.Endpoints[i].HTTP.Endpoint] = i
		}
	}
	return f.join()
}

// validateFormat checks the protocol, and what names and labels become in it.
func (c *Config) validateFormat() error {
	var f faults
	version, ok := versions[c.ProtobufMessage]
	if !ok && c.ProtobufMessage != auto {
		f.add("`protobuf_message` must be auto, 2.0, 1.0 or one of their full names, got %q", c.ProtobufMessage)
	}
	onlyOne := ok && version == promwrite.V1
	if _, ok := encodings[c.Compression]; !ok && c.Compression != auto {
		f.add("`compression` must be auto, zstd or snappy, got %q", c.Compression)
	}
	if c.CompressionLevel < 1 || c.CompressionLevel > 4 {
		f.add("`compression_level` must be from 1 to 4, got %d", c.CompressionLevel)
	}
	f.addAll(c.Labels.validate(), c.Names.validate(onlyOne), c.Points.validate(onlyOne))
	encoding := c.encoding(1)
	if err := encoding.Names.CheckExternalLabels(); err != nil {
		f.add("`external_labels`: %w", err)
	}
	_, err := relabelling(c.Labels.WriteRelabelConfigs, c.Names.scheme(), "")
	f.addAll(err)
	return f.join()
}

func (c *LabelsConfig) validate() error {
	if !slices.Contains([]string{auto, always, never}, c.ScopeLabels) {
		return fmt.Errorf("`scope_labels` must be auto, always or never, got %q", c.ScopeLabels)
	}
	return nil
}

// validate checks the names. onlyOne says that no other version than 1.0 is sent.
func (c *NamesConfig) validate(onlyOne bool) error {
	switch strategy := otlptranslator.TranslationStrategyOption(c.TranslationStrategy); {
	case !slices.Contains(strategies, strategy):
		return fmt.Errorf("`translation_strategy` must be one of %v, got %q", strategies, c.TranslationStrategy)
	case onlyOne && !strategy.ShouldEscape():
		return fmt.Errorf("`translation_strategy` %s needs UTF-8 names, which `protobuf_message: 1.0` does not have: choose 2.0 or auto", strategy)
	}
	return nil
}

func (c *PointsConfig) validate(onlyOne bool) error {
	if onlyOne && c.isCustomOnly() {
		return errors.New("`convert_explicit_histograms_to_nhcb` needs 2.0: choose `protobuf_message: 2.0` or auto, or set `keep_classic_histograms`")
	}
	return nil
}

// isCustomOnly reports whether histograms are only sent as 2.0 can carry them.
func (c *PointsConfig) isCustomOnly() bool {
	return c.ConvertExplicitHistogramsToNHCB && !c.KeepClassicHistograms
}

// validateNumbers checks what must be positive, or not negative.
func (c *Config) validateNumbers() error {
	var f faults
	for _, n := range []struct {
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
		{"target_info.interval", int64(c.Labels.TargetInfo.Interval), true},
		{"delta.max_series", int64(c.Points.Delta.MaxSeries), false},
	} {
		if n.value < 0 || n.value == 0 && !n.allowZero {
			f.add("`%s` must be positive, got %d", n.key, n.value)
		}
	}
	return f.join()
}

func (c *ShardsConfig) validate() error {
	if c.Max < c.Min || c.Max > MaxShards {
		return fmt.Errorf("`shards.max` must be from `shards.min`, %d, to %d, got %d", c.Min, MaxShards, c.Max)
	}
	return nil
}

func (c *RetryConfig) validate() error {
	var f faults
	if c.MaxInterval < c.InitialInterval {
		f.add("`retry.max_interval` must not be less than `retry.initial_interval`")
	}
	if c.Multiplier < 1 {
		f.add("`retry.multiplier` must be at least 1, got %v", c.Multiplier)
	}
	if c.RandomizationFactor < 0 || c.RandomizationFactor > 1 {
		f.add("`retry.randomization_factor` must be from 0 to 1, got %v", c.RandomizationFactor)
	}
	for _, code := range c.StatusCodes {
		if code < 400 || code > 499 || code == 413 {
			f.add("`retry.status_codes` must be 4xx, but for 413, which splits the request, got %d", code)
		}
	}
	return f.join()
}

func (c *BreakerConfig) validate() error {
	if c.ConsecutiveFailures > 0 && c.OpenFor <= 0 {
		return fmt.Errorf("`circuit_breaker.open_for` must be positive, got %s; `consecutive_failures: 0` turns the breaker off", c.OpenFor)
	}
	return nil
}

func (c *QueueConfig) validate() error {
	var f faults
	if _, ok := onFull[c.OnFull]; !ok {
		f.add("`queue.on_full` must be block, drop_oldest or drop_newest, got %q", c.OnFull)
	}
	key := c.stored()
	if key != "" && c.WaitForResult {
		f.add("`queue.wait_for_result` must not be set along with `%s`, which answers once data is stored: choose one", key)
	}
	if key != "" && c.MaxBatches > 0 {
		f.add("`queue.max_batches` must not be set along with `%s`, which `queue.size` bounds: remove one", key)
	}
	return f.join()
}

func (c *Config) validateClient(key, endpointKey string, client *confighttp.ClientConfig) error {
	var f faults
	if u, err := url.Parse(client.Endpoint); client.Endpoint != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		f.add("`%s` must be an http or https URL, got %q", endpointKey, redact.URL(client.Endpoint))
	} else if client.Endpoint == "" && len(c.Endpoints) > 0 {
		f.add("`%s` must be set", endpointKey)
	}
	if u, err := url.Parse(client.Endpoint); err == nil && strings.HasPrefix(u.Host, byService) && u.Port() != "" {
		f.add("`%s` must have no port after `%s`, whose records have it, got %q", endpointKey, byService, client.Endpoint)
	}
	if client.Compression != "" {
		f.add("`%scompression` must not be set: use `compression`, of the exporter or in `endpoints`", key)
	}
	for name := range client.Headers.Iter {
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		if slices.Contains(reserved, canonical) {
			f.add("`%sheaders` must not have %q: the protocol says what it is", key, name)
		}
		for _, key := range c.Tenant.MetadataKeys {
			if canonical == textproto.CanonicalMIMEHeaderKey(key) {
				f.add("`%sheaders` must not have %q, which is of `tenant.metadata_keys`", key, name)
			}
		}
		if c.Tenant.Header != "" && canonical == textproto.CanonicalMIMEHeaderKey(c.Tenant.Header) {
			f.add("`%sheaders` must not have %q, which is `tenant.header`: use `tenant.default`", key, name)
		}
	}
	return f.join()
}

func (c *TenantConfig) validate() error {
	var f faults
	for _, key := range c.MetadataKeys {
		switch {
		case slices.Contains(reserved, textproto.CanonicalMIMEHeaderKey(key)):
			f.add("`tenant.metadata_keys` must not have %q: the protocol says what that header is", key)
		case !isHeaderName(key):
			f.add("`tenant.metadata_keys` must be names of headers, got %q", key)
		}
	}
	switch {
	case len(c.MetadataKeys) > 0:
		if c.Header != "" || c.FromMetadata != "" || c.FromResourceAttribute != "" || c.Default != "" {
			f.add("`tenant.metadata_keys` must not be set along with `header`, `from_metadata`, `from_resource_attribute` or `default`")
		}
	case c.Header == "":
		if c.FromMetadata != "" || c.FromResourceAttribute != "" || c.Default != "" {
			f.add("`tenant.header` must be set, for example to X-Scope-OrgID")
		}
	case slices.Contains(reserved, textproto.CanonicalMIMEHeaderKey(c.Header)):
		f.add("`tenant.header` must not be %q: the protocol says what it is", c.Header)
	case !isHeaderName(c.Header):
		f.add("`tenant.header` must be a header's name, got %q", c.Header)
	case (c.FromMetadata == "") == (c.FromResourceAttribute == ""):
		f.add("one of `tenant.from_metadata` and `tenant.from_resource_attribute` must be set")
	}
	return f.join()
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
