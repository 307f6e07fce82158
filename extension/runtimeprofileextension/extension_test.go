// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import (
	"context"
	"io/fs"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension/extensioncapabilities"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/godwit-otel/godwit/extension/runtimeprofileextension/internal/metadatatest"
)

// machine is a file system that the test replaces while the extension runs.
type machine struct{ now atomic.Pointer[fs.FS] }

func newMachine(root fs.FS) *machine {
	m := &machine{}
	m.becomes(root)
	return m
}

func (m *machine) becomes(root fs.FS)                { m.now.Store(&root) }
func (m *machine) Open(name string) (fs.File, error) { return (*m.now.Load()).Open(name) }

// subject is an extension under test with its log.
type subject struct {
	*runtimeProfile

	log *observer.ObservedLogs
}

func newSubject(cfg *Config, root fs.FS) subject {
	core, log := observer.New(zapcore.InfoLevel)
	set := componenttest.NewNopTelemetrySettings()
	set.Logger = zap.New(core)
	if cfg.RefreshInterval == 0 {
		cfg.RefreshInterval = time.Minute
	}
	return subject{newExtension(cfg, set, root), log}
}

func (s subject) start(t *testing.T) {
	t.Helper()
	require.NoError(t, s.Start(t.Context(), componenttest.NewNopHost()))
}

func (s subject) shutdown(t *testing.T) {
	t.Helper()
	require.NoError(t, s.Shutdown(context.Background()))
}

// said counts the log lines that contain the message.
func (s subject) said(message string) int { return s.log.FilterMessageSnippet(message).Len() }

// quietEnv makes the result of a test independent of its environment.
func quietEnv(t *testing.T) {
	t.Helper()
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
}

func TestKnobsAreSetAndRestored(t *testing.T) {
	quietEnv(t)
	defer debug.SetGCPercent(debug.SetGCPercent(123))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(5 << 30))

	s := newSubject(&Config{Profile: ProfileMinimal}, treeV2("1073741824\n"))
	s.start(t)
	assert.Equal(t, knobs{gogc: 50, limit: percentOf(1<<30, 60)}, readKnobs())
	assert.Equal(t, 1, s.said("Runtime profile applied"))
	s.shutdown(t)
	assert.Equal(t, knobs{gogc: 123, limit: 5 << 30}, readKnobs())
	s.shutdown(t)
}

func TestGOGCOffIsRestored(t *testing.T) {
	quietEnv(t)
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	s := newSubject(&Config{Profile: ProfileBalanced}, tree(nil))
	s.start(t)
	assert.Equal(t, 100, readKnobs().gogc)
	s.shutdown(t)
	assert.Equal(t, -1, readKnobs().gogc)
}

func TestEnvironmentWins(t *testing.T) {
	f := func(gogc, limit string, want knobs, silent int) {
		t.Helper()
		t.Setenv("GOGC", gogc)
		t.Setenv("GOMEMLIMIT", limit)
		// What the runtime did with the variables at the start of the process.
		defer debug.SetGCPercent(debug.SetGCPercent(77))
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(3 << 30))
		s := newSubject(&Config{Profile: ProfilePerformance, MemoryLimit: "512MiB"}, treeV2("1073741824\n"))
		s.start(t)
		defer s.shutdown(t)
		assert.Equal(t, want, readKnobs())
		assert.Equal(t, silent, s.said("Not changed"))
	}
	f("", "", knobs{gogc: 400, limit: 512 << 20}, 0)
	f("77", "", knobs{gogc: 77, limit: 512 << 20}, 1)
	f("", "3GiB", knobs{gogc: 400, limit: 3 << 30}, 1)
	f("77", "3GiB", knobs{gogc: 77, limit: 3 << 30}, 2)
}

func TestOneInstanceAtATime(t *testing.T) {
	quietEnv(t)
	first := newSubject(&Config{Profile: ProfileMinimal}, tree(nil))
	second := newSubject(&Config{Profile: ProfilePerformance}, tree(nil))
	first.start(t)
	require.ErrorIs(t, second.Start(t.Context(), componenttest.NewNopHost()), errHeld)
	second.shutdown(t)
	assert.Equal(t, 50, readKnobs().gogc, "the loser's shutdown must not release the winner's knobs")
	require.ErrorIs(t, second.Start(t.Context(), componenttest.NewNopHost()), errHeld)
	first.shutdown(t)
	second.start(t)
	assert.Equal(t, 400, readKnobs().gogc)
	second.shutdown(t)
}

func TestRefreshFollowsTheCgroup(t *testing.T) {
	quietEnv(t)
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(treeV2("1073741824\n"))
		s := newSubject(&Config{Profile: ProfileBalanced}, m)
		s.start(t)
		defer s.shutdown(t)
		minutes := func(n int, want int64) {
			t.Helper()
			time.Sleep(time.Duration(n) * time.Minute)
			synctest.Wait()
			assert.Equal(t, want, readKnobs().limit)
		}
		minutes(5, percentOf(1<<30, 80))
		assert.Equal(t, 1, s.said("Runtime profile applied"), "one line per change")

		m.becomes(treeV2("536870912\n"))
		minutes(5, percentOf(512<<20, 80))
		assert.Equal(t, 2, s.said("Runtime profile applied"))

		m.becomes(denied{treeV2("536870912\n"), "sys/fs/cgroup/memory.max"})
		minutes(5, percentOf(512<<20, 80))
		assert.Equal(t, 1, s.said("Cannot read the memory budget"), "half a reading lifts no limit")

		m.becomes(treeV2("max\n"))
		minutes(5, noLimit)
		assert.Equal(t, 1, s.said("The memory budget can be read again"))
		assert.Equal(t, 3, s.said("Runtime profile applied"))
	})
}

func (s subject) notify(t *testing.T, yaml string) {
	t.Helper()
	snapshot := extensioncapabilities.NewConfigSnapshot(effective(t, yaml), nil)
	require.NoError(t, s.NotifyConfigSnapshot(t.Context(), snapshot))
}

const limiterAt400 = `
processors: {memory_limiter: {limit_mib: 400, spike_limit_mib: 100}}
service: {pipelines: {metrics: {processors: [memory_limiter]}}}`

func TestMemoryLimiterBoundsTheProfile(t *testing.T) {
	quietEnv(t)
	s := newSubject(&Config{Profile: ProfileBalanced}, tree(nil))
	s.start(t)
	defer s.shutdown(t)
	assert.Equal(t, int64(noLimit), readKnobs().limit)
	s.notify(t, limiterAt400)
	assert.EqualValues(t, 350*mib, readKnobs().limit)
	assert.Zero(t, s.said("memory_limiter"))
}

func TestDisagreementIsToldOnce(t *testing.T) {
	quietEnv(t)
	synctest.Test(t, func(t *testing.T) {
		s := newSubject(&Config{Profile: ProfileBalanced, MemoryLimit: "600MiB"}, tree(nil))
		s.start(t)
		defer s.shutdown(t)
		s.notify(t, limiterAt400)
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.Equal(t, 1, s.said("above the memory_limiter's hard limit"))
		assert.EqualValues(t, 600*mib, readKnobs().limit, "what the user wrote stands")
	})
}

func TestRivalIsTold(t *testing.T) {
	quietEnv(t)
	s := newSubject(&Config{Profile: ProfileBalanced}, tree(nil))
	s.start(t)
	defer s.shutdown(t)
	s.notify(t, "service: {extensions: [runtimeprofile]}")
	assert.Zero(t, s.said("also sets GOMEMLIMIT"))
	s.notify(t, "extensions: {cgroupruntime: }\nservice: {extensions: [runtimeprofile, cgroupruntime]}")
	assert.Equal(t, 1, s.said("also sets GOMEMLIMIT"))
}

func TestConfigSnapshotsThatSayNothing(t *testing.T) {
	quietEnv(t)
	s := newSubject(&Config{Profile: ProfileBalanced}, tree(nil))
	require.NoError(t, s.NotifyConfigSnapshot(t.Context(), extensioncapabilities.NewConfigSnapshot(nil, nil)))
	s.notify(t, limiterAt400)
	assert.Equal(t, int64(noLimit), readKnobs().limit, "not started: nothing is touched")
	s.notify(t, `{processors: {memory_limiter: {limit_mib: much}}, service: {pipelines: {logs: {processors: [memory_limiter]}}}}`)
	assert.Equal(t, 1, s.said("Cannot compare with the memory_limiter"))
}

func TestMetricsTellTheEffectiveValues(t *testing.T) {
	quietEnv(t)
	tt := componenttest.NewTelemetry()
	defer func() { require.NoError(t, tt.Shutdown(context.Background())) }()
	cfg := &Config{Profile: ProfileMinimal, RefreshInterval: time.Minute}
	e := newExtension(cfg, tt.NewTelemetrySettings(), treeV2("1073741824\n"))
	require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	defer func() { require.NoError(t, e.Shutdown(context.Background())) }()
	runtime.GC()
	e.refresh()

	point := func(v int64) []metricdata.DataPoint[int64] { return []metricdata.DataPoint[int64]{{Value: v}} }
	exact := metricdatatest.IgnoreTimestamp()
	metadatatest.AssertEqualExtensionRuntimeprofileGogc(t, tt, point(50), exact)
	metadatatest.AssertEqualExtensionRuntimeprofileMemoryBudget(t, tt, point(1<<30), exact)
	metadatatest.AssertEqualExtensionRuntimeprofileMemoryLimit(t, tt, point(percentOf(1<<30, 60)), exact)
	metadatatest.AssertEqualExtensionRuntimeprofileBinaryPagesReleased(t, tt, point(0), exact)

	debug.SetGCPercent(60) // changes by others are visible, too
	metadatatest.AssertEqualExtensionRuntimeprofileGogc(t, tt, point(60), exact)

	ints := func(name string) int64 {
		got, err := tt.GetMetric("otelcol_extension_runtimeprofile_" + name)
		require.NoError(t, err)
		if sum, ok := got.Data.(metricdata.Sum[int64]); ok {
			return sum.DataPoints[0].Value
		}
		return got.Data.(metricdata.Gauge[int64]).DataPoints[0].Value
	}
	assert.Positive(t, ints("gc_cycles"))
	assert.Positive(t, ints("goroutines"))
	assert.Positive(t, ints("heap_live"))
	gcTime, err := tt.GetMetric("otelcol_extension_runtimeprofile_gc_cpu_time")
	require.NoError(t, err)
	assert.Positive(t, gcTime.Data.(metricdata.Sum[float64]).DataPoints[0].Value)
	ratio, err := tt.GetMetric("otelcol_extension_runtimeprofile_gc_cpu_ratio")
	require.NoError(t, err)
	got := ratio.Data.(metricdata.Gauge[float64]).DataPoints[0].Value
	assert.True(t, got > 0 && got <= 1, "%v", got)
}

func TestAbsentLimitsAreNotObserved(t *testing.T) {
	quietEnv(t)
	tt := componenttest.NewTelemetry()
	defer func() { require.NoError(t, tt.Shutdown(context.Background())) }()
	cfg := &Config{Profile: ProfileBalanced, RefreshInterval: time.Minute}
	e := newExtension(cfg, tt.NewTelemetrySettings(), fstest.MapFS{})
	require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	defer func() { require.NoError(t, e.Shutdown(context.Background())) }()
	for _, name := range []string{"memory_limit", "memory_budget"} {
		_, err := tt.GetMetric("otelcol_extension_runtimeprofile_" + name)
		require.Error(t, err, name)
	}
	_, err := tt.GetMetric("otelcol_extension_runtimeprofile_gogc")
	require.NoError(t, err)
}
