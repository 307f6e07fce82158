// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/gate"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/series"
)

// instance has the pipelines of an instance, like the Collector's type.
type instance []string

func (i instance) AllPipelineIDs(f func(id pipeline.ID) bool) {
	for _, name := range i {
		if !f(pipeline.NewIDWithName(pipeline.SignalMetrics, name)) {
			return
		}
	}
}

// startHost is the host that an instance is started with.
type startHost struct {
	component.Host

	InstanceID instance
}

func TestPipelineOfAnInstance(t *testing.T) {
	require.Equal(t, "metrics/a", pipelineOf(&startHost{InstanceID: instance{"a"}}))
	require.Equal(t, "metrics", pipelineOf(&startHost{InstanceID: instance{""}}))
	for what, host := range map[string]component.Host{
		"none":        &startHost{},
		"several":     &startHost{InstanceID: instance{"a", "b", "c"}},
		"not said":    componenttest.NewNopHost(),
		"nobody":      nil,
		"no instance": (*startHost)(nil),
		"something else": &struct {
			component.Host

			InstanceID *int
		}{},
		"not exported": &struct {
			component.Host

			instanceID instance
		}{instanceID: instance{"a"}},
	} {
		require.Empty(t, pipelineOf(host), what)
	}
}

// lockedFiles is a storage like files: each can only be opened once at a time.
type lockedFiles struct {
	component.StartFunc
	component.ShutdownFunc

	mu    sync.Mutex
	files map[string]*memory
	open  map[string]bool
}

func (l *lockedFiles) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{memoryID: l}
}

func (l *lockedFiles) GetClient(_ context.Context, kind component.Kind, id component.ID, name string) (storage.Client, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	file := kind.String() + "_" + id.String() + "_" + name
	if l.open[file] {
		return nil, errors.New("timeout")
	}
	l.open[file] = true
	if l.files[file] == nil {
		l.files[file] = newMemory()
	}
	return &lockedFile{memory: l.files[file], close: func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.open[file] = false
	}}, nil
}

type lockedFile struct {
	*memory

	close func()
}

func (f *lockedFile) Close(context.Context) error {
	f.close()
	return nil
}

// TestEachPipelineKeepsItsState, in whatever order the instances are started.
func TestEachPipelineKeepsItsState(t *testing.T) {
	files := &lockedFiles{files: map[string]*memory{}, open: map[string]bool{}}
	start := func(pipelines ...string) map[string]*rig {
		all := map[string]*rig{}
		for _, name := range pipelines {
			all[name] = newRig(t, withStorage(func(c *Config) { c.Memory.MaxSeries = 1 }))
			require.NoError(t, all[name].begin(&startHost{Host: files, InstanceID: instance{name}}))
		}
		return all
	}
	stop := func(all map[string]*rig) {
		for _, r := range all {
			require.NoError(t, r.shutdown(t.Context()))
		}
	}
	before := start("a", "b")
	require.Equal(t, []bool{true, false}, before["a"].passes(aSeries(1), aSeries(2)))
	require.Equal(t, []bool{true, false}, before["b"].passes(aSeries(2), aSeries(1)))
	stop(before)
	after := start("c", "b", "a")
	require.Equal(t, []bool{false, true}, after["a"].passes(aSeries(2), aSeries(1)))
	require.Equal(t, []bool{false, true}, after["b"].passes(aSeries(1), aSeries(2)))
	require.Equal(t, []bool{true}, after["c"].passes(aSeries(3)))
	stop(after)
}

// TestAFailedStartLetsGoOfTheStorage: the next start must be able to open it, and finds it as it was.
func TestAFailedStartLetsGoOfTheStorage(t *testing.T) {
	files := &lockedFiles{files: map[string]*memory{}, open: map[string]bool{}}
	start := func() (*rig, error) {
		r := newRig(t, withStorage(func(c *Config) { c.Memory.MaxSeries = 1 }))
		return r, r.begin(&startHost{Host: files, InstanceID: instance{"a"}})
	}
	before, err := start()
	require.NoError(t, err)
	require.Equal(t, []bool{true}, before.passes(aSeries(1)))
	_, err = start()
	require.ErrorContains(t, err, "timeout")
	require.NoError(t, before.shutdown(t.Context()))
	for _, file := range files.files {
		for unreadable := range series.PartCount {
			file.unreadable = gate.SnapshotKey(unreadable)
			failed, err := start()
			require.ErrorContains(t, err, "bad sector")
			require.NoError(t, failed.shutdown(t.Context()))
		}
		file.unreadable = ""
	}
	after, err := start()
	require.NoError(t, err)
	require.Equal(t, []bool{false, true}, after.passes(aSeries(2), aSeries(1)))
}
