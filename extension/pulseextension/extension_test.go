// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package pulseextension

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/extension/extensioncapabilities"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/godwit-otel/godwit/extension/pulseextension/internal/metadata"
	"github.com/godwit-otel/godwit/internal/selftelemetry"
)

// logged returns a flow's fields as JSON in a log line.
func logged(t *testing.T, f flow) string {
	t.Helper()
	line, err := zapcore.NewJSONEncoder(zapcore.EncoderConfig{}).EncodeEntry(zapcore.Entry{}, f.fields())
	require.NoError(t, err)
	return line.String()
}

// take returns and removes the lines of the log, each as "level message".
func take(logs *observer.ObservedLogs) []string {
	var lines []string
	for _, entry := range logs.TakeAll() {
		lines = append(lines, entry.Level.String()+" "+entry.Message)
	}
	return lines
}

// fake is a Collector that receives a span per second from a given time on.
type fake struct {
	t      *testing.T
	begins time.Time
	reads  atomic.Int64
	broken atomic.Pointer[string] // the error of reading
}

func (f *fake) breaks(why string) { f.broken.Store(&why) }

func (f *fake) read(context.Context, string) (*selftelemetry.Snapshot, error) {
	f.reads.Add(1)
	if why := f.broken.Load(); why != nil {
		return nil, errors.New(*why)
	}
	spans := max(0, time.Since(f.begins)/time.Second)
	return page(f.t, fmt.Sprintf(`receiver_accepted_spans{receiver="otlp"}=%d`, spans), time.Now()), nil
}

func started(t *testing.T, cfg *Config) (*pulse, *fake, *observer.ObservedLogs) {
	t.Helper()
	return startedQuiet(t, cfg, 0)
}

// startedQuiet is like started, with a Collector that receives nothing at first.
func startedQuiet(t *testing.T, cfg *Config, quiet time.Duration) (*pulse, *fake, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	p := newPulse(cfg, zap.New(core))
	f := &fake{t: t, begins: time.Now().Add(quiet)}
	p.read = f.read
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, p.Ready())
	synctest.Wait()
	return p, f, logs
}

func sleep(d time.Duration) {
	time.Sleep(d) // of the bubble's clock
	synctest.Wait()
}

const spanFlows = "info flowing: 1 spans/s in, nothing out, 0 refused, 0 dropped"

func TestLinesComeEarlyAndThenOncePerInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, f, logs := started(t, createDefaultConfig().(*Config))
		assert.EqualValues(t, 1, f.reads.Load())
		sleep(3*time.Second - 1)
		assert.Empty(t, take(logs))
		sleep(1)
		assert.Equal(t, []string{spanFlows}, take(logs))
		sleep(time.Minute - 1)
		assert.Empty(t, take(logs))
		sleep(1)
		assert.Equal(t, []string{spanFlows}, take(logs))
		sleep(10 * time.Minute)
		assert.Len(t, take(logs), 10)
		assert.EqualValues(t, 13, f.reads.Load())

		require.NoError(t, p.NotReady())
		require.NoError(t, p.Shutdown(t.Context()))
		require.NoError(t, p.Shutdown(t.Context()))
		sleep(time.Hour)
		assert.Empty(t, take(logs))
		assert.EqualValues(t, 13, f.reads.Load())
	})
}

func TestZeroTurnsLinesOff(t *testing.T) {
	f := func(cfg *Config, wantLines, wantReads int) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			p, f, logs := started(t, cfg)
			sleep(time.Hour)
			assert.Len(t, take(logs), wantLines)
			assert.EqualValues(t, wantReads, f.reads.Load())
			require.NoError(t, p.Shutdown(t.Context()))
		})
	}
	f(&Config{First: 5 * time.Second}, 1, 2)
	f(&Config{Interval: 30 * time.Minute}, 2, 3)
	f(&Config{}, 0, 0)
}

func TestAnUnreadablePageIsToldOnChangeOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, f, logs := started(t, &Config{Interval: time.Minute})
		sleep(time.Minute)
		assert.Equal(t, []string{spanFlows}, take(logs))

		const lost = "warn cannot tell what is flowing until own metrics can be read"
		f.breaks("cannot read own metrics: connection refused")
		sleep(time.Minute)
		entry := logs.All()[0]
		assert.Equal(t, []string{lost}, take(logs))
		assert.Equal(t, "cannot read own metrics: connection refused", entry.ContextMap()["error"])
		f.breaks("cannot read own metrics: for another reason")
		sleep(time.Hour)
		assert.Empty(t, take(logs))

		// The line after the gap includes the gap.
		f.broken.Store(nil)
		sleep(time.Minute)
		entry = logs.All()[1]
		assert.Equal(t, []string{"info own metrics can be read again", spanFlows}, take(logs))
		assert.InDelta(t, 3720, entry.ContextMap()["seconds"], 0)
		sleep(time.Minute)
		assert.Equal(t, []string{spanFlows}, take(logs))

		f.breaks("again")
		sleep(time.Minute)
		assert.Equal(t, []string{lost}, take(logs))
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

func TestAFirstReadingThatFailsOnlyDelaysTheBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.DebugLevel)
		p := newPulse(&Config{First: time.Second, Interval: time.Minute}, zap.New(core))
		f := &fake{t: t, begins: time.Now()}
		f.breaks("not yet")
		p.read = f.read
		require.NoError(t, p.Ready())
		synctest.Wait()
		f.broken.Store(nil)
		assert.Len(t, take(logs), 1)
		sleep(time.Second)
		assert.Equal(t, []string{"info own metrics can be read again"}, take(logs))
		sleep(time.Second)
		assert.Equal(t, []string{spanFlows}, take(logs))
		sleep(time.Minute)
		assert.Equal(t, []string{spanFlows}, take(logs))
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

func TestShutdownInterruptsAReadingAndDoesNotComplain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.DebugLevel)
		p := newPulse(createDefaultConfig().(*Config), zap.New(core))
		p.read = func(ctx context.Context, _ string) (*selftelemetry.Snapshot, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		require.NoError(t, p.Ready())
		synctest.Wait()
		require.NoError(t, p.Shutdown(t.Context()))
		assert.Empty(t, take(logs))
	})
}

func TestWhereToLookIsToldOnceInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _, logs := started(t, &Config{Interval: time.Minute, Look: map[string]string{
			"status":      "http://localhost:13133",
			"own metrics": "http://localhost:8888/metrics",
		}})
		assert.Equal(t, []string{
			"info where to look: own metrics: http://localhost:8888/metrics",
			"info where to look: status: http://localhost:13133",
		}, take(logs))
		sleep(time.Minute)
		assert.Equal(t, []string{spanFlows}, take(logs))
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

func snapshotOf(metrics map[string]any) extensioncapabilities.ConfigSnapshot {
	return extensioncapabilities.NewConfigSnapshot(confmap.NewFromStringMap(map[string]any{
		"service": map[string]any{"telemetry": map[string]any{"metrics": metrics}},
	}), nil)
}

func prometheusReader(port int) map[string]any {
	return map[string]any{"level": "Normal", "readers": []any{map[string]any{"pull": map[string]any{
		"exporter": map[string]any{"prometheus": map[string]any{"host": "0.0.0.0", "port": port}},
	}}}}
}

func TestThePageIsFoundInTheConfiguration(t *testing.T) {
	f := func(cfg *Config, metrics map[string]any, want string) {
		t.Helper()
		p := newPulse(cfg, zap.NewNop())
		asked := make(chan string, 1)
		p.read = func(_ context.Context, page string) (*selftelemetry.Snapshot, error) {
			asked <- page
			return nil, errors.New("unused")
		}
		if metrics != nil {
			require.NoError(t, p.NotifyConfigSnapshot(t.Context(), snapshotOf(metrics)))
		}
		require.NoError(t, p.Ready())
		assert.Equal(t, want, <-asked)
		require.NoError(t, p.Shutdown(t.Context()))
	}
	const configured = "http://localhost:9999/metrics"
	f(&Config{First: time.Hour}, nil, "http://localhost:8888/metrics")
	f(&Config{First: time.Hour}, prometheusReader(18888), "http://localhost:18888/metrics")
	f(&Config{First: time.Hour, MetricsEndpoint: configured}, prometheusReader(18888), configured)
	f(&Config{First: time.Hour, MetricsEndpoint: configured}, map[string]any{"level": "None"}, configured)
}

func TestACollectorWithoutMetricsIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.DebugLevel)
		p := newPulse(createDefaultConfig().(*Config), zap.New(core))
		require.NoError(t, p.NotifyConfigSnapshot(t.Context(), snapshotOf(map[string]any{"level": "None"})))
		require.NoError(t, p.Ready())
		sleep(time.Hour)
		require.Equal(t, 1, logs.Len())
		assert.Contains(t, logs.All()[0].ContextMap()["error"], "`service::telemetry::metrics::level` is none")
		assert.Equal(t, []string{"warn cannot tell what is flowing: this Collector serves no metrics of its own"}, take(logs))
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

// Through the factory, over HTTP, with names in both styles.
func TestPulseOfAServedPage(t *testing.T) {
	for style, suffix := range map[string]string{"plain": "", "suffixed": "_total"} {
		t.Run(style, func(t *testing.T) {
			var points atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				n := points.Add(1000)
				fmt.Fprintf(w, "otelcol_receiver_accepted_metric_points%s{receiver=\"otlp\"} %d\n", suffix, n)
				fmt.Fprintf(w, "otelcol_exporter_sent_metric_points%s{exporter=\"otlp\"} %d\n", suffix, n)
			}))
			defer server.Close()

			core, logs := observer.New(zapcore.DebugLevel)
			set := extensiontest.NewNopSettings(metadata.Type)
			set.Logger = zap.New(core)
			ext, err := NewFactory().Create(t.Context(), set, &Config{First: time.Millisecond, MetricsEndpoint: server.URL})
			require.NoError(t, err)
			require.NoError(t, ext.Start(t.Context(), componenttest.NewNopHost()))
			require.NoError(t, ext.(extensioncapabilities.PipelineWatcher).Ready())
			require.Eventually(t, func() bool { return logs.Len() > 0 }, time.Minute, time.Millisecond)
			require.NoError(t, ext.Shutdown(t.Context()))
			assert.Regexp(t, `^info flowing: [0-9.]+[kM]? points/s in, [0-9.]+[kM]? points/s out, 0 refused, 0 dropped$`, take(logs)[0])
		})
	}
}
