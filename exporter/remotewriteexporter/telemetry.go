// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/loss"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/metadata"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/queue"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/segments"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/send"
	"github.com/godwit-otel/godwit/internal/redact"
)

// anyDestination replaces a destination's name if it is not known which of several has lost something.
const anyDestination = "unknown"

// telemetry counts what the encoder, the queue and the senders report. The metrics that all exporters have carry the
// exporter's ID and sum up the destinations; the others carry the destination.
type telemetry struct {
	builder      *metadata.TelemetryBuilder
	log          *zap.Logger
	id           attribute.KeyValue
	exporter     metric.MeasurementOption
	queue        metric.MeasurementOption // with data_type, as exporterhelper has it
	destinations []*destinationTelemetry

	damaged atomic.Int64 // bytes of the queue on disk that could not be read at the start

	host component.Host // to report the status to; set by Start

	mu   sync.Mutex
	down int // destinations that do not accept data
	// untranslated counts what the encoder left out, by reason; nil while there is nothing.
	untranslated map[string]int64
	storage      bool // whether it was logged that the storage fails
}

func newTelemetry(set exporter.Settings) (*telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	t := &telemetry{builder: builder, log: set.Logger, id: attribute.String("exporter", set.ID.String())}
	t.exporter = t.with()
	t.queue = t.with(attribute.String("data_type", signal))
	return t, nil
}

// with returns the attributes of a metric: the exporter, and more.
func (t *telemetry) with(more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(append(more, t.id)...))
}

func (t *telemetry) shutdown() { t.builder.Shutdown() }

// refused counts points that were refused to the pipeline.
func (t *telemetry) refused(points int) {
	t.builder.ExporterEnqueueFailedMetricPoints.Add(context.Background(), int64(points), t.exporter)
}

// Dropped counts what the encoder left out.
func (t *telemetry) Dropped(reason loss.Reason, n int) {
	if reason == loss.Relabelled { // that is intended
		t.builder.ExporterRemotewriteRelabelDroppedPoints.Add(context.Background(), int64(n), t.exporter)
		return
	}
	t.mu.Lock()
	if t.untranslated == nil {
		t.untranslated = map[string]int64{}
	}
	t.untranslated[string(reason)] += int64(n)
	t.mu.Unlock()
	t.builder.ExporterRemotewriteUntranslatedPoints.Add(context.Background(), int64(n),
		t.with(attribute.String("reason", string(reason))))
}

// First logs the first point that the encoder left out for a reason.
func (t *telemetry) First(reason loss.Reason, name string) {
	t.log.Warn("cannot send some points; more of the same are counted, not logged",
		zap.String("reason", string(reason)), zap.String("metric", name))
}

// Panicked logs a defect of the encoder, which continued without the data that caused it.
func (t *telemetry) Panicked(cause any, stack []byte, n int) {
	t.log.Error("lost points to a defect in the encoder; please report it",
		zap.Any("panic", cause), zap.Int("points", n), zap.ByteString("stack", stack))
}

// queueDropped counts a block that the queue dropped, and logs that once a minute for each reason.
func (t *telemetry) queueDropped(destination int, reason string, h block.Header) {
	d := t.destinations[destination]
	d.Dropped(h, reason)
	if !d.isNews(reason) {
		return
	}
	fields := []zap.Field{zap.String("reason", reason), zap.String("destination", d.name)}
	if h.Version != 0 { // otherwise its content is not known
		fields = append(fields, zap.Int("samples", h.Samples), zap.Int("histograms", h.Histograms))
	}
	t.log.Warn("the queue dropped a block; more of the same are counted, not logged", fields...)
}

// blocked logs that the queue started or stopped making the pipeline wait.
func (t *telemetry) blocked(is bool) {
	if is {
		t.log.Warn("The queue is full: the pipeline waits for room")
	} else {
		t.log.Info("The queue has room again")
	}
}

// storageFailed counts a failure of the storage, and logs the first one.
func (t *telemetry) storageFailed(err error) {
	t.builder.ExporterRemotewriteStorageFailures.Add(context.Background(), 1, t.exporter)
	t.mu.Lock()
	first := !t.storage
	t.storage = true
	t.mu.Unlock()
	if first {
		t.log.Error("the storage of the queue fails; further failures are counted, not logged", zap.Error(err))
	}
}

// storageWorks logs that the storage works again after a failure.
func (t *telemetry) storageWorks() {
	t.mu.Lock()
	failed := t.storage
	t.storage = false
	t.mu.Unlock()
	if failed {
		t.log.Info("the storage of the queue works again")
	}
}

// storageDamaged records damage of the queue on disk.
func (t *telemetry) storageDamaged(d segments.Damage) {
	t.damaged.Add(d.Bytes)
	file, bytes := zap.String("file", d.File), zap.Int64("bytes", d.Bytes)
	if d.Foreign {
		t.log.Warn("something other than a file had the name of a file of the queue on disk: it was renamed, and is not read", file)
		return
	}
	if d.Torn {
		t.log.Warn("the end of the queue on disk cannot be read: the machine stopped during the last write, which was not acknowledged, or the file is damaged", file, bytes)
		return
	}
	if d.Ended {
		t.log.Error("the queue on disk ends too early, as if files at its end were deleted or cut off: their blocks are lost, and counted as dropped if their number is known; everything else is sent", file, bytes)
		return
	}
	t.log.Error("a part of the queue on disk cannot be read: its blocks are lost, and counted as dropped if their number is known; everything else is sent", file, bytes)
}

// lost counts blocks that were destroyed completely. Their destination is not known, unless there is only one.
func (t *telemetry) lost(blocks int) {
	destination := anyDestination
	if len(t.destinations) == 1 {
		destination = t.destinations[0].name
	}
	t.builder.ExporterRemotewriteDroppedBlocks.Add(context.Background(), int64(blocks),
		t.with(attribute.String("destination", destination), attribute.String("reason", queue.ReasonCorrupt)))
	t.log.Error("nothing is left of some blocks of the queue on disk: they are lost", zap.Int("blocks", blocks))
}

// destinationTelemetry counts for one destination.
type destinationTelemetry struct {
	t       *telemetry
	name    string
	only    metric.MeasurementOption
	busy    busy
	mu      sync.Mutex
	codes   map[int]metric.MeasurementOption
	outcome Outcome
	status  int                  // of the last answer; 0 without one
	said    string               // the error, or the text of an answer that was not a success
	drops   map[string]time.Time // last logged drop of the queue, by reason
}

// Outcome sums up what happened to a destination's data.
type Outcome struct {
	Samples, Histograms, Exemplars int64            // delivered
	Dropped                        map[string]int64 // samples and histograms dropped, by reason
	Requests                       map[int]int64    // by status code; 0 means no answer
	Retries, WireBytes, RawBytes   int64
	Busy                           time.Duration // total time of answers
}

// addDestination adds the telemetry of a destination. If another one has the same name, it gets a number, because their
// metrics would collide otherwise.
func (t *telemetry) addDestination(endpoint string) {
	name := destinationName(endpoint)
	for n := 2; slices.ContainsFunc(t.destinations, func(d *destinationTelemetry) bool { return d.name == name }); n++ {
		name = destinationName(endpoint) + "#" + strconv.Itoa(n)
	}
	d := &destinationTelemetry{
		t: t, name: name,
		only:    t.with(attribute.String("destination", name)),
		codes:   map[int]metric.MeasurementOption{},
		outcome: Outcome{Dropped: map[string]int64{}, Requests: map[int]int64{}},
		drops:   map[string]time.Time{},
	}
	t.destinations = append(t.destinations, d)
}

// destinationName returns an endpoint without parts that may be secret: credentials and query.
func destinationName(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return "invalid"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, Fragment: u.Fragment}).String()
}

// Requested implements send.Telemetry.
func (d *destinationTelemetry) Requested(code int, said string, wireBytes int, took time.Duration) {
	ctx, b := context.Background(), d.t.builder
	d.mu.Lock()
	option, ok := d.codes[code]
	if !ok {
		option = d.with(attribute.Int("code", code))
		d.codes[code] = option
	}
	d.outcome.Requests[code]++
	d.status, d.said = code, said
	d.outcome.WireBytes += int64(wireBytes)
	if code != 0 {
		d.outcome.Busy += took
	}
	d.mu.Unlock()
	d.busy.add(took, code/100 == 2 || code/100 == 4)
	b.ExporterRemotewriteRequests.Add(ctx, 1, option)
	b.ExporterRemotewriteWireBytes.Add(ctx, int64(wireBytes), d.only)
	b.ExporterRemotewriteRequestDuration.Record(ctx, took.Seconds(), d.only)
}

// Retried implements send.Telemetry.
func (d *destinationTelemetry) Retried(reason string) {
	d.mu.Lock()
	d.outcome.Retries++
	d.mu.Unlock()
	d.t.builder.ExporterRemotewriteRetries.Add(context.Background(), 1, d.with(attribute.String("reason", reason)))
}

// Paced implements send.Telemetry.
func (d *destinationTelemetry) Paced() {
	d.t.builder.ExporterRemotewriteRateLimitedRequests.Add(context.Background(), 1, d.only)
}

// Delivered implements send.Telemetry.
func (d *destinationTelemetry) Delivered(h block.Header, losses []send.Loss) {
	ctx, b := context.Background(), d.t.builder
	for _, l := range losses {
		h.Samples -= l.Samples
		h.Histograms -= l.Histograms
		h.Exemplars -= l.Exemplars
		d.lost(l.Reason, l.Samples, l.Histograms, l.Exemplars)
	}
	d.mu.Lock()
	d.outcome.Samples += int64(h.Samples)
	d.outcome.Histograms += int64(h.Histograms)
	d.outcome.Exemplars += int64(h.Exemplars)
	d.outcome.RawBytes += int64(h.RawSize)
	d.mu.Unlock()
	b.ExporterSentMetricPoints.Add(ctx, int64(h.Samples+h.Histograms), d.t.exporter)
	b.ExporterRemotewriteRawBytes.Add(ctx, int64(h.RawSize), d.only)
}

// Dropped implements send.Telemetry.
func (d *destinationTelemetry) Dropped(h block.Header, reason string) {
	d.t.builder.ExporterRemotewriteDroppedBlocks.Add(context.Background(), 1, d.with(attribute.String("reason", reason)))
	d.lost(reason, h.Samples, h.Histograms, h.Exemplars)
}

// Down implements send.Telemetry: the component is healthy while all destinations are.
func (d *destinationTelemetry) Down(reason error) {
	t := d.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if reason != nil {
		t.down++
		componentstatus.ReportStatus(t.host, componentstatus.NewRecoverableErrorEvent(redact.Error(fmt.Errorf("%s: %w", d.name, reason))))
		return
	}
	t.down--
	if t.down == 0 {
		componentstatus.ReportStatus(t.host, componentstatus.NewEvent(componentstatus.StatusOK))
	}
}

// isNews reports whether no drop for a reason was logged recently.
func (d *destinationTelemetry) isNews(reason string) bool {
	const interval = time.Minute
	d.mu.Lock()
	defer d.mu.Unlock()
	if at, ok := d.drops[reason]; ok && time.Since(at) < interval {
		return false
	}
	d.drops[reason] = time.Now()
	return true
}

func (d *destinationTelemetry) lost(reason string, samples, histograms, exemplars int) {
	ctx := context.Background()
	if points := int64(samples + histograms); points > 0 {
		d.mu.Lock()
		d.outcome.Dropped[reason] += points
		d.mu.Unlock()
		d.t.builder.ExporterSendFailedMetricPoints.Add(ctx, points, d.t.exporter)
	}
	for _, item := range []struct {
		name string
		n    int
	}{{"sample", samples}, {"histogram", histograms}, {"exemplar", exemplars}} {
		if item.n > 0 {
			d.t.builder.ExporterRemotewriteDroppedItems.Add(ctx, int64(item.n), d.with(attribute.String("item", item.name), attribute.String("reason", reason)))
		}
	}
}

func (d *destinationTelemetry) with(more ...attribute.KeyValue) metric.MeasurementOption {
	return d.t.with(append(more, attribute.String("destination", d.name))...)
}

// observe registers callbacks that report the state of e when metrics are read.
func (t *telemetry) observe(e *remoteWrite) error {
	b := t.builder
	each := func(f func(destination int) int64) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			for i, d := range t.destinations {
				o.Observe(f(i), d.only)
			}
			return nil
		}
	}
	sum := func(f func(queue.Stats) int64) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			var n int64
			for i := range t.destinations {
				n += f(e.queue.Stats(i))
			}
			o.Observe(n, t.queue)
			return nil
		}
	}
	return errors.Join(
		b.RegisterExporterQueueSizeCallback(sum(func(s queue.Stats) int64 { return s.Bytes })),
		b.RegisterExporterQueueCapacityCallback(sum(func(s queue.Stats) int64 { return s.Capacity })),
		b.RegisterExporterRemotewriteQueueBytesCallback(each(func(i int) int64 { return e.queue.Stats(i).Bytes })),
		b.RegisterExporterRemotewriteQueuedBlocksCallback(each(func(i int) int64 { return int64(e.queue.Stats(i).Blocks) })),
		b.RegisterExporterRemotewriteInFlightCallback(each(func(i int) int64 { return int64(e.queue.Stats(i).Leased) })),
		b.RegisterExporterRemotewriteBreakerOpenCallback(each(func(i int) int64 {
			if e.destinations[i].BreakerOpen() {
				return 1
			}
			return 0
		})),
		b.RegisterExporterRemotewriteOldestBlockAgeCallback(func(_ context.Context, o metric.Float64Observer) error {
			for i, d := range t.destinations {
				o.Observe(age(e.queue.Stats(i)).Seconds(), d.only)
			}
			return nil
		}),
		b.RegisterExporterRemotewriteFallbackCallback(func(_ context.Context, o metric.Int64Observer) error {
			for i, d := range t.destinations {
				n, f := e.destinations[i].Fallback()
				o.Observe(int64(n), d.with(attribute.String("version", f.Version.String()), attribute.String("encoding", f.Compression.String())))
			}
			return nil
		}),
		b.RegisterExporterRemotewriteStorageDamagedBytesCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(t.damaged.Load(), t.exporter)
			return nil
		}),
		b.RegisterExporterRemotewriteShardsCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(e.intake.shards.count()), t.exporter)
			return nil
		}),
		b.RegisterExporterRemotewriteCacheSeriesCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(e.intake.encoder.Stats().Series), t.exporter)
			return nil
		}),
		b.RegisterExporterRemotewriteCacheLookupsCallback(func(_ context.Context, o metric.Int64Observer) error {
			s := e.intake.encoder.Stats()
			o.Observe(int64(s.Hits), t.with(attribute.String("result", "hit")))
			o.Observe(int64(s.Misses), t.with(attribute.String("result", "miss")))
			return nil
		}),
	)
}

func age(s queue.Stats) time.Duration {
	if s.Oldest.IsZero() {
		return 0
	}
	return max(0, time.Since(s.Oldest))
}
