// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"k8s.io/client-go/rest"
)

// A SharedInformer keeps a store up to date with the API, and reports changes to its handlers.
type SharedInformer interface {
	AddEventHandler(h ResourceEventHandlerFuncs) (Registration, error)
	GetStore() Store
	HasSynced() bool
	Run(stop <-chan struct{})
	SetWatchErrorHandlerWithContext(f WatchErrorHandlerWithContext) error
}

// A SharedIndexInformer is a SharedInformer with indexes.
type SharedIndexInformer interface {
	SharedInformer
	GetIndexer() Indexer
}

// Registration is what the original returns to remove a handler, which nobody does here.
type Registration struct{}

// ResourceEventHandlerFuncs are called for changes, one after the other, after the store has them. Each may be nil.
type ResourceEventHandlerFuncs struct {
	AddFunc    func(obj any)
	UpdateFunc func(old, now any)
	DeleteFunc func(obj any)
}

func (h *ResourceEventHandlerFuncs) tell(old, now metav1.Object) {
	switch {
	case old == nil && h.AddFunc != nil:
		h.AddFunc(now)
	case now == nil && h.DeleteFunc != nil:
		h.DeleteFunc(old)
	case old != nil && now != nil && h.UpdateFunc != nil:
		h.UpdateFunc(old, now)
	}
}

// A WatchErrorHandlerWithContext is called for each list and watch that fails.
type WatchErrorHandlerWithContext func(ctx context.Context, r *Reflector, err error)

// A Reflector identifies a running informer to error handlers. It is used by one goroutine.
type Reflector struct {
	kind    string
	failing bool // a failure was logged
}

// DefaultWatchErrorHandler logs a failure, once until everything works again. Like the original, it uses the process's
// logger: discovery does not pass its own to informers.
func DefaultWatchErrorHandler(ctx context.Context, r *Reflector, err error) {
	if r.failing {
		return
	}
	r.failing = true
	slog.WarnContext(ctx, "Cannot follow objects of Kubernetes, and tries again", "kind", r.kind, "error", err)
}

// succeed logs that everything works again, if a failure was logged.
func (r *Reflector) succeed(ctx context.Context) {
	if !r.failing {
		return
	}
	r.failing = false
	slog.InfoContext(ctx, "Follows objects of Kubernetes again", "kind", r.kind)
}

// NewSharedInformer makes an informer. The example gives the kind in the log. The interval is ignored; the original can
// report everything again at that interval.
func NewSharedInformer(lw ListerWatcher, example runtime.Object, resync time.Duration) SharedInformer {
	return NewSharedIndexInformer(lw, example, resync, nil)
}

// NewSharedIndexInformer makes an informer with indexes.
func NewSharedIndexInformer(lw ListerWatcher, example runtime.Object, _ time.Duration, indexers Indexers) SharedIndexInformer {
	kind := strings.TrimPrefix(fmt.Sprintf("%T", example), "*v1.")
	return &informer{source: lw, store: newStore(indexers), failed: DefaultWatchErrorHandler, reflector: Reflector{kind: kind}}
}

type informer struct {
	source ListerWatcher
	store  *store
	failed WatchErrorHandlerWithContext
	synced atomic.Bool

	reflector Reflector // used by Run

	mu       sync.Mutex // held during a change and the calls of all handlers
	handlers []ResourceEventHandlerFuncs
}

// AddEventHandler implements SharedInformer. Existing objects are reported as new.
func (i *informer) AddEventHandler(h ResourceEventHandlerFuncs) (Registration, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.handlers = append(i.handlers, h)
	for _, object := range i.store.all() {
		h.tell(nil, object)
	}
	return Registration{}, nil
}

// GetStore implements SharedInformer.
func (i *informer) GetStore() Store { return i.store }

// GetIndexer implements SharedIndexInformer.
func (i *informer) GetIndexer() Indexer { return i.store }

// HasSynced implements SharedInformer.
func (i *informer) HasSynced() bool { return i.synced.Load() }

// SetWatchErrorHandlerWithContext implements SharedInformer. It must precede Run.
func (i *informer) SetWatchErrorHandlerWithContext(f WatchErrorHandlerWithContext) error {
	i.failed = f
	return nil
}

// errShort is the error of a watch that the API ended at once, which it would do again.
var errShort = errors.New("the API has ended a watch at once")

const (
	// The wait after a failure is doubled each time, until all went well for fineAfter.
	firstWait = 800 * time.Millisecond
	maxWait   = 30 * time.Second
	fineAfter = 2 * time.Minute
	// A watch that ends sooner without an error counts as failed.
	shortest = time.Second
)

// Run implements SharedInformer.
func (i *informer) Run(stop <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	// At first, any version is good enough, such as what the API has in memory. Only a list after a version was
	// forgotten must be new, for which the API asks its database.
	version, listed, wait := "0", false, firstWait
	var expired time.Time // when a version was last forgotten
	for ctx.Err() == nil {
		began := time.Now()
		var err error
		if !listed {
			var now string
			if now, err = i.list(ctx, version); err == nil {
				version, listed = now, true
			}
		} else {
			version, err = i.watch(ctx, version)
		}
		var status *rest.StatusError
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			i.reflector.succeed(ctx)
			continue
		case errors.As(err, &status) && status.IsExpired():
			isWell := listed && time.Since(expired) > fineAfter
			if version, listed, expired = "", false, time.Now(); isWell {
				continue // no failure: the version was too old
			}
		}
		i.failed(ctx, &i.reflector, err)
		if time.Since(began) > fineAfter {
			wait = firstWait
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait + rand.N(wait)): //nolint:gosec // it is no secret
		}
		wait = min(2*wait, maxWait)
	}
}

// list makes the store equal to what the API has, and returns its version.
func (i *informer) list(ctx context.Context, version string) (string, error) {
	answer, err := i.source.list(ctx, metav1.ListOptions{ResourceVersion: version})
	if err != nil {
		return "", err
	}
	list := answer.(*rest.List)
	i.mu.Lock()
	defer i.mu.Unlock()
	gone := i.store.all()
	for _, object := range list.Items {
		key := keyOf(object)
		if old := gone[key]; old == nil || old.GetResourceVersion() != object.GetResourceVersion() {
			i.change(key, object)
		}
		delete(gone, key)
	}
	for key := range gone {
		i.change(key, nil)
	}
	i.synced.Store(true)
	return list.ResourceVersion, nil
}

// change updates the store, and reports that. The caller must hold the lock.
func (i *informer) change(key string, object metav1.Object) {
	old := i.store.set(key, object)
	if old == nil && object == nil {
		return
	}
	for n := range i.handlers {
		i.handlers[n].tell(old, object)
	}
}

// watch follows changes until the API ends the watch, and returns the last version.
func (i *informer) watch(ctx context.Context, version string) (string, error) {
	began := time.Now()
	events, err := i.source.watch(ctx, metav1.ListOptions{ResourceVersion: version})
	if err != nil {
		return version, err
	}
	defer events.Stop()
	for n := 0; ; n++ {
		event, err := events.Next()
		switch {
		case err == nil:
		case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, context.DeadlineExceeded):
			return version, err
		case n == 0 && time.Since(began) < shortest:
			return version, errShort
		default:
			return version, nil // the next watch continues there
		}
		i.reflector.succeed(ctx)
		if event.Type != watch.Bookmark {
			i.see(event)
		}
		version = event.Object.GetResourceVersion()
	}
}

func (i *informer) see(event watch.Event) {
	i.mu.Lock()
	defer i.mu.Unlock()
	key := keyOf(event.Object)
	if event.Type == watch.Deleted {
		i.change(key, nil)
		return
	}
	i.change(key, event.Object)
}
