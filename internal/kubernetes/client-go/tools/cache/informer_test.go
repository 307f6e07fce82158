// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"k8s.io/client-go/rest"
)

func pod(name, version, node string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", ResourceVersion: version}, Spec: corev1.PodSpec{NodeName: node}}
}

// An api returns the responses that a test sets, one after the other, and records the requests.
type api struct {
	mu      sync.Mutex
	asked   []string
	lists   []any // *rest.List or error
	watches []any // chan any or error
}

func (a *api) note(what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, what)
}

func (a *api) take(from *[]any) any {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(*from) == 0 {
		return errors.New("nobody is there")
	}
	next := (*from)[0]
	*from = (*from)[1:]
	return next
}

func (a *api) listWatch() *ListWatch {
	return &ListWatch{
		ListWithContextFunc: func(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
			a.note("list " + o.ResourceVersion)
			switch next := a.take(&a.lists).(type) {
			case *rest.List:
				return next, nil
			case error:
				return nil, next
			}
			return nil, errors.New("no list")
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			a.note("watch " + o.ResourceVersion)
			switch next := a.take(&a.watches).(type) {
			case chan any:
				return &stream{ctx, next}, nil
			case error:
				return nil, next
			}
			return nil, errors.New("no watch")
		},
	}
}

// A stream is a watch that ends with its channel.
type stream struct {
	ctx    context.Context
	events chan any
}

func (s *stream) Next() (watch.Event, error) {
	select {
	case <-s.ctx.Done():
		return watch.Event{}, s.ctx.Err()
	case next := <-s.events:
		switch next := next.(type) {
		case watch.Event:
			return next, nil
		case error:
			return watch.Event{}, next
		}
		return watch.Event{}, io.EOF
	}
}

func (*stream) Stop() {}

// told records the calls of handlers.
type told struct{ all []string }

func (l *told) handlers() ResourceEventHandlerFuncs {
	name := func(o any) string { p := o.(*corev1.Pod); return p.Name + p.ResourceVersion }
	return ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { l.all = append(l.all, "+"+name(o)) },
		UpdateFunc: func(old, now any) { l.all = append(l.all, name(old)+">"+name(now)) },
		DeleteFunc: func(o any) { l.all = append(l.all, "-"+name(o)) },
	}
}

func (l *told) take() []string {
	all := l.all
	l.all = nil
	slices.Sort(all)
	return all
}

var byNode = Indexers{"node": func(o any) ([]string, error) { return []string{o.(*corev1.Pod).Spec.NodeName}, nil }}

func TestInformerFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second, third := make(chan any, 9), make(chan any, 9), make(chan any, 9)
		a := &api{
			lists: []any{
				&rest.List{ResourceVersion: "10", Items: []metav1.Object{pod("a", "1", "n"), pod("b", "2", "n")}},
				&rest.List{ResourceVersion: "30", Items: []metav1.Object{pod("b", "2", "n"), pod("c", "29", "m"), pod("d", "28", "n")}},
			},
			watches: []any{first, second, third},
		}
		i := NewSharedIndexInformer(a.listWatch(), &corev1.Pod{}, 0, byNode)
		var l told
		_, err := i.AddEventHandler(l.handlers())
		require.NoError(t, err)
		var failures []error
		require.NoError(t, i.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *Reflector, err error) { failures = append(failures, err) }))
		assert.False(t, i.HasSynced())
		stop, ended := make(chan struct{}), make(chan struct{})
		go func() { i.Run(stop); close(ended) }()
		synctest.Wait()
		assert.True(t, i.HasSynced())
		assert.Equal(t, []string{"+a1", "+b2"}, l.take())

		onNode := func(node string) (names []string) {
			all, err := i.GetIndexer().ByIndex("node", node)
			require.NoError(t, err)
			for _, o := range all {
				names = append(names, o.(*corev1.Pod).Name)
			}
			slices.Sort(names)
			return names
		}
		first <- watch.Event{Type: watch.Modified, Object: pod("a", "11", "m")}
		first <- watch.Event{Type: watch.Added, Object: pod("c", "12", "n")}
		first <- watch.Event{Type: watch.Deleted, Object: pod("gone", "13", "n")} // it never existed
		first <- watch.Event{Type: watch.Bookmark, Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "20"}}}
		synctest.Wait()
		assert.Equal(t, []string{"+c12", "a1>a11"}, l.take())
		assert.Equal(t, []string{"b", "c"}, onNode("n"))
		assert.Equal(t, []string{"a"}, onNode("m"))
		_, exists, _ := i.GetStore().GetByKey("shop/c")
		assert.True(t, exists)
		_, exists, _ = i.GetStore().GetByKey("shop/gone")
		assert.False(t, exists)

		// Late handlers get the existing objects.
		var late told
		_, err = i.AddEventHandler(late.handlers())
		require.NoError(t, err)
		assert.Equal(t, []string{"+a11", "+b2", "+c12"}, late.take())

		// A watch ends and is continued. Then its version is forgotten: there is a new list, and handlers get the
		// changes since.
		time.Sleep(time.Minute)
		close(first)
		synctest.Wait()
		second <- &rest.StatusError{Code: 410, Reason: "Expired", Message: "too old"}
		synctest.Wait()
		assert.Equal(t, []string{"+d28", "-a11", "c12>c29"}, l.take())
		assert.Equal(t, []string{"c"}, onNode("m"))
		assert.Equal(t, []string{"b", "d"}, onNode("n"))
		third <- watch.Event{Type: watch.Deleted, Object: pod("d", "31", "n")}
		synctest.Wait()
		assert.Equal(t, []string{"-d28"}, l.take())
		assert.Equal(t, []string{"list 0", "watch 10", "watch 20", "list ", "watch 30"}, a.asked)
		assert.Empty(t, failures)

		close(stop)
		<-ended
	})
}

// Failures are reported, and retried after twice as long each time.
func TestInformerTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		short := make(chan any)
		close(short)
		open := make(chan any)
		a := &api{
			lists: []any{
				errors.New("down"), &rest.StatusError{Code: 429, Message: "busy"}, &rest.StatusError{Code: 410, Message: "forgotten"}, &rest.List{ResourceVersion: "1"},
			},
			watches: []any{short, errors.New("refused"), open},
		}
		i := NewSharedInformer(a.listWatch(), &corev1.Pod{}, 0)
		var failures []string
		var waits []time.Duration
		began := time.Now()
		require.NoError(t, i.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *Reflector, err error) {
			failures = append(failures, err.Error())
			waits = append(waits, time.Since(began))
			began = time.Now()
		}))
		stop, ended := make(chan struct{}), make(chan struct{})
		go func() { i.Run(stop); close(ended) }()
		time.Sleep(5 * time.Minute)
		close(stop)
		<-ended
		assert.True(t, i.HasSynced())
		assert.Equal(t, []string{"down", "busy", "forgotten", errShort.Error(), "refused"}, failures)
		// An API with problems does not get requests for data that it does not have in memory: all clients would send
		// them at once.
		assert.Equal(t, []string{"list 0", "list 0", "list 0", "list ", "watch 1", "watch 1", "watch 1"}, a.asked)
		for n, wait := range waits[1:] {
			least := firstWait << n
			assert.True(t, wait >= least && wait < 2*least, fmt.Sprint(waits))
		}
	})
}

// An API that forgets the version of a list immediately does not get requests for all its objects again and again.
func TestVersionsThatAreForgottenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{}
		for range 100 {
			a.lists = append(a.lists, &rest.List{ResourceVersion: "1"})
			a.watches = append(a.watches, &rest.StatusError{Code: 410, Message: "too old"})
		}
		i := NewSharedInformer(a.listWatch(), &corev1.Pod{}, 0)
		failures := 0
		require.NoError(t, i.SetWatchErrorHandlerWithContext(func(context.Context, *Reflector, error) { failures++ }))
		stop, ended := make(chan struct{}), make(chan struct{})
		go func() { i.Run(stop); close(ended) }()
		time.Sleep(time.Minute)
		close(stop)
		<-ended
		assert.Len(t, a.asked, 2*(failures+1), "the first time is no failure")
		assert.GreaterOrEqual(t, failures, 4)
		assert.LessOrEqual(t, failures, 7)
	})
}

// The log has a line for each change of state, however many attempts there are.
func TestLogOfFailures(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	defer slog.SetDefault(before)
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})))
	synctest.Test(t, func(t *testing.T) {
		open := make(chan any, 9)
		refused := errors.New("refused")
		a := &api{
			lists:   []any{refused, refused, refused, &rest.List{ResourceVersion: "1"}},
			watches: []any{refused, refused, refused, open},
		}
		i := NewSharedInformer(a.listWatch(), &corev1.Pod{}, 0)
		failures := 0 // like discovery counts them
		require.NoError(t, i.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *Reflector, err error) {
			failures++
			DefaultWatchErrorHandler(ctx, r, err)
		}))
		stop, ended := make(chan struct{}), make(chan struct{})
		go func() { i.Run(stop); close(ended) }()
		time.Sleep(10 * time.Minute)
		open <- watch.Event{Type: watch.Added, Object: pod("a", "2", "n")}
		synctest.Wait()
		close(stop)
		<-ended
		assert.Equal(t, 6, failures)
	})
	const failed, again = `level=WARN msg="Cannot follow objects of Kubernetes, and tries again" kind=Pod error=`, `level=INFO msg="Follows objects of Kubernetes again" kind=Pod` + "\n"
	assert.Equal(t, failed+"refused\n"+again+failed+"refused\n"+again, log.String())
}

func TestWaitForCacheSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		yes := func() bool { return true }
		later := func() bool { return time.Since(began) > time.Second }
		assert.True(t, WaitForCacheSync(nil, yes, later))
		assert.Greater(t, time.Since(began), time.Second)
		stop := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(stop) })
		assert.False(t, WaitForCacheSync(stop, yes, func() bool { return false }))
	})
}

func TestKeys(t *testing.T) {
	key, err := DeletionHandlingMetaNamespaceKeyFunc(pod("a", "", ""))
	require.NoError(t, err)
	assert.Equal(t, "shop/a", key)
	namespace, name, err := SplitMetaNamespaceKey(key)
	require.NoError(t, err)
	assert.Equal(t, []string{"shop", "a"}, []string{namespace, name})
	key, err = DeletionHandlingMetaNamespaceKeyFunc(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	require.NoError(t, err)
	assert.Equal(t, "n", key)
	namespace, name, err = SplitMetaNamespaceKey(key)
	require.NoError(t, err)
	assert.Equal(t, []string{"", "n"}, []string{namespace, name})
	_, _, err = SplitMetaNamespaceKey("a/b/c")
	require.Error(t, err)
	_, err = DeletionHandlingMetaNamespaceKeyFunc("a")
	require.Error(t, err)
}
