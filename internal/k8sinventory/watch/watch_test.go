// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/internal/k8sinventory"
)

var events = schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}

// An api responds to lists and watches as a test wants.
type api struct {
	mu      sync.Mutex
	version string                             // of lists
	there   []string                           // names of the listed objects
	refuse  error                              // error of the next watches
	watches chan *apiwatch.RaceFreeFakeWatcher // begun watches
	from    []string                           // where watches began, or tried to
}

func newAPI() *api {
	return &api{version: "100", watches: make(chan *apiwatch.RaceFreeFakeWatcher, 10)}
}

// now changes the next responses.
func (a *api) now(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}

// asked returns where watches began, or tried to.
func (a *api) asked() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.from)
}

func (a *api) client() *fake.FakeDynamicClient {
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{events: "EventList"})
	client.PrependReactor("list", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "events.k8s.io/v1", "kind": "EventList"}}
		list.SetResourceVersion(a.version)
		for _, name := range a.there {
			list.Items = append(list.Items, *object(name, "1"))
		}
		return true, list, nil
	})
	client.PrependWatchReactor("events", func(action clienttesting.Action) (bool, apiwatch.Interface, error) {
		asked, _ := action.(clienttesting.WatchActionImpl)
		a.mu.Lock()
		defer a.mu.Unlock()
		a.from = append(a.from, asked.ListOptions.ResourceVersion)
		if a.refuse != nil {
			return true, nil, a.refuse
		}
		w := apiwatch.NewRaceFreeFake()
		a.watches <- w
		return true, w, nil
	})
	return client
}

func object(name, version string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": map[string]any{"name": name, "resourceVersion": version},
	}}
}

// seen has what an observer passed on.
type seen struct {
	mu  sync.Mutex
	all []string
}

func (s *seen) handle(e *apiwatch.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, _ := e.Object.(*unstructured.Unstructured)
	s.all = append(s.all, string(e.Type)+" "+o.GetName())
}

func (s *seen) take() (all []string) {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	all, s.all = s.all, nil
	return all
}

// memory is a storage that survives an observer.
type memory map[string][]byte

func (m memory) Get(_ context.Context, key string) ([]byte, error)     { return m[key], nil }
func (m memory) Set(_ context.Context, key string, value []byte) error { m[key] = value; return nil }

func (m memory) Delete(_ context.Context, key string) error       { delete(m, key); return nil }
func (memory) Batch(context.Context, ...*storage.Operation) error { return nil }
func (memory) Close(context.Context) error                        { return nil }

// start starts an observer; the returned function stops it.
func start(t *testing.T, a *api, config Config, logger *zap.Logger, store storage.Client, s *seen) (stop func()) {
	t.Helper()
	config.Gvr = events
	o, err := New(a.client(), config, logger, store, s.handle)
	require.NoError(t, err)
	var running sync.WaitGroup
	channel := o.Start(t.Context(), &running)
	synctest.Wait()
	return func() {
		close(channel)
		running.Wait()
	}
}

// Changes are passed on, except for excluded types; a watch that the API ends is continued.
func TestFollowsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, s := newAPI(), &seen{}
		a.now(func() { a.there = []string{"old"} })
		stop := start(t, a, Config{Exclude: map[apiwatch.EventType]bool{apiwatch.Deleted: true}}, zap.NewNop(), nil, s)
		w := <-a.watches
		w.Add(object("a", "101"))
		w.Delete(object("a", "102"))
		w.Modify(object("b", "103"))
		assert.Equal(t, []string{"ADDED a", "MODIFIED b"}, s.take())
		w.Action(apiwatch.Bookmark, object("", "110"))
		assert.Empty(t, s.take())
		w.Stop()
		w = <-a.watches
		w.Add(object("c", "111"))
		assert.Equal(t, []string{"ADDED c"}, s.take())
		assert.Equal(t, []string{"100", "110"}, a.asked())
		stop()
	})
}

// Initial objects are passed on if configured, and only once.
func TestBeginsWithWhatIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, s := newAPI(), &seen{}
		a.now(func() { a.there = []string{"x", "y"} })
		stop := start(t, a, Config{IncludeInitialState: true}, zap.NewNop(), nil, s)
		assert.Equal(t, []string{"ADDED x", "ADDED y"}, s.take())
		(<-a.watches).Stop()
		<-a.watches
		assert.Empty(t, s.take())
		stop()
	})
}

// A restarted observer continues where the last one ended.
func TestRemembersHowFarItCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, s, store := newAPI(), &seen{}, memory{}
		stop := start(t, a, Config{IncludeInitialState: true}, zap.NewNop(), store, s)
		(<-a.watches).Add(object("a", "105"))
		s.take()
		stop()
		a.now(func() { a.there, a.version = []string{"a"}, "200" })
		stop = start(t, a, Config{IncludeInitialState: true}, zap.NewNop(), store, s)
		assert.Equal(t, []string{"100", "105"}, a.asked())
		assert.Empty(t, s.take(), "it is not the first time")
		stop()
	})
}

// A configured version is where the first watch begins.
func TestBeginsAtAState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, s := newAPI(), &seen{}
		stop := start(t, a, Config{Config: k8sinventory.Config{ResourceVersion: "42"}}, zap.NewNop(), nil, s)
		assert.Equal(t, []string{"42"}, a.asked())
		stop()
	})
}

// A version that the API has forgotten, as reported in a watch or instead of one, is replaced by the latest one, and
// logged.
func TestGoesOnFromTheLatestState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, s := newAPI(), &seen{}
		core, logs := observer.New(zap.InfoLevel)
		stop := start(t, a, Config{}, zap.New(core), nil, s)
		expired := apierrors.NewResourceExpired("too old")
		a.now(func() { a.version = "500" })
		(<-a.watches).Error(&expired.ErrStatus)
		w := <-a.watches
		assert.Equal(t, []string{"100", "500"}, a.asked())
		assert.Equal(t, 1, logs.FilterMessageSnippet("forgotten").Len())

		a.now(func() {
			a.refuse, a.version = apierrors.NewGenericServerResponse(http.StatusGone, "watch", events.GroupResource(), "", "", 0, true), "600"
		})
		w.Stop()
		synctest.Wait()
		a.now(func() { a.refuse = nil })
		(<-a.watches).Add(object("a", "601"))
		assert.Equal(t, []string{"ADDED a"}, s.take())
		assert.Equal(t, []string{"100", "500", "500", "600"}, a.asked())
		stop()
	})
}

// Failures are logged once and retried with growing pauses, and their end is logged.
func TestTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, s := newAPI(), &seen{}
		core, logs := observer.New(zap.InfoLevel)
		a.now(func() { a.refuse = apierrors.NewServiceUnavailable("later") })
		began := time.Now()
		stop := start(t, a, Config{}, zap.New(core), nil, s)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		assert.Equal(t, 1, logs.Len())
		assert.Less(t, len(a.asked()), 10+int(time.Since(began)/lastWait))
		a.now(func() { a.refuse = nil })
		<-a.watches
		synctest.Wait()
		require.Equal(t, 2, logs.Len())
		assert.Equal(t, "watching objects again", logs.All()[1].Message)
		stop()
	})
}
