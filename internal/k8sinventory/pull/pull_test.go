// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package pull

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/internal/k8sinventory"
)

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// pages responds to lists with pages of one pod each, and records the requests.
type pages struct {
	mu    sync.Mutex
	names []string
	err   error
	asked []clienttesting.ListActionImpl
}

func (p *pages) list(action clienttesting.Action) (bool, runtime.Object, error) {
	asked, _ := action.(clienttesting.ListActionImpl)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, asked)
	if p.err != nil {
		return true, nil, p.err
	}
	at := len(asked.ListOptions.Continue) // which has a character per page so far
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "PodList"}}
	list.SetResourceVersion("7")
	if at < len(p.names) {
		list.Items = []unstructured.Unstructured{{Object: map[string]any{
			"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{
				"name": p.names[at], "namespace": action.GetNamespace(), "labels": map[string]any{"app": "web"},
			},
		}}}
	}
	if at+1 < len(p.names) {
		list.SetContinue(asked.ListOptions.Continue + "x")
	}
	return true, list, nil
}

func (p *pages) client() *fake.FakeDynamicClient {
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{pods: "PodList"})
	client.PrependReactor("list", "pods", p.list)
	return client
}

// All pages of all namespaces are passed on, immediately and then in each interval, until the channel is closed.
func TestListsInAnInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pages{names: []string{"a", "b", "c"}}
		var mu sync.Mutex
		got := map[string]int{}
		o, err := New(p.client(), Config{
			Config: k8sinventory.Config{
				Gvr: pods, Namespaces: []string{"one", "two"}, LabelSelector: "app=web", ResourceVersion: "5",
			},
			Interval: time.Minute,
		}, zap.NewNop(), func(list *unstructured.UnstructuredList) {
			mu.Lock()
			defer mu.Unlock()
			for _, item := range list.Items {
				got[item.GetNamespace()+"/"+item.GetName()]++
			}
		})
		require.NoError(t, err)
		var running sync.WaitGroup
		stop := o.Start(t.Context(), &running)
		times := func(n int) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			assert.Equal(t, map[string]int{"one/a": n, "one/b": n, "one/c": n, "two/a": n, "two/b": n, "two/c": n}, got)
		}
		times(1)
		time.Sleep(time.Minute)
		times(2)
		close(stop)
		running.Wait()
		time.Sleep(time.Hour)
		times(2)
		for _, asked := range p.asked {
			assert.Equal(t, "app=web", asked.ListOptions.LabelSelector)
			if asked.ListOptions.Continue == "" {
				assert.Equal(t, "5", asked.ListOptions.ResourceVersion)
			} else {
				assert.Empty(t, asked.ListOptions.ResourceVersion, "an API refuses both")
			}
		}
	})
}

// The log says once that lists fail, and once that they succeed again; an empty list is not passed on.
func TestTellsThatListsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pages{err: errors.New("no")}
		core, logs := observer.New(zap.InfoLevel)
		o, err := New(p.client(), Config{Config: k8sinventory.Config{Gvr: pods}, Interval: time.Minute}, zap.New(core),
			func(*unstructured.UnstructuredList) { assert.Fail(t, "there is nothing") })
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		o.Start(ctx, &running)
		time.Sleep(3*time.Minute + time.Second)
		synctest.Wait()
		p.mu.Lock()
		assert.Len(t, p.asked, 4)
		p.err = nil
		p.mu.Unlock()
		require.Equal(t, 1, logs.Len())
		assert.Equal(t, "cannot list objects", logs.All()[0].Message)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		require.Equal(t, 2, logs.Len())
		assert.Equal(t, "objects are listed again", logs.All()[1].Message)
		cancel()
		running.Wait()
		assert.Equal(t, 2, logs.Len(), "an end is no failure")
	})
}

func TestWantsAnInterval(t *testing.T) {
	_, err := New((&pages{}).client(), Config{}, zap.NewNop(), nil)
	assert.ErrorContains(t, err, "interval")
}
