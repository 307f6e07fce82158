// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package watch follows the changes of Kubernetes objects.
//
// A watch continues where the last one ended, with a storage also after a restart. If the API has forgotten that state, it
// starts with the latest one, and logs it: changes in between are missed.
package watch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/open-telemetry/opentelemetry-collector-contrib/internal/k8sinventory"
)

// The shortest and the longest pause between two attempts.
const (
	firstWait = time.Second
	lastWait  = 30 * time.Second
)

// Config sets what to watch.
type Config struct {
	k8sinventory.Config

	// IncludeInitialState passes on the existing objects first, as added.
	IncludeInitialState bool
	// Exclude are the types of events that are not passed on.
	Exclude map[apiwatch.EventType]bool
}

type watcher struct {
	config Config
	places []k8sinventory.Place
	logger *zap.Logger
	store  storage.Client
	handle func(*apiwatch.Event)
}

// New returns an observer that passes on events. A storage client stores its position; nil means no storage.
func New(client dynamic.Interface, config Config, logger *zap.Logger, store storage.Client, handle func(*apiwatch.Event)) (k8sinventory.Observer, error) {
	if store == nil {
		store = storage.NewNopClient()
	}
	return &watcher{config: config, places: config.Places(client), logger: logger, store: store, handle: handle}, nil
}

func (o *watcher) Start(ctx context.Context, running *sync.WaitGroup) chan struct{} {
	return k8sinventory.Run(ctx, running, o.places, func(ctx context.Context, place k8sinventory.Place) {
		(&follower{
			watcher: o, place: place, key: "watched/" + o.config.Gvr.String() + "/" + place.Namespace,
			logger: o.logger.With(zap.Stringer("resource", &o.config.Gvr), zap.String("namespace", place.Namespace)),
		}).run(ctx)
	})
}

// A follower watches one place.
type follower struct {
	*watcher

	place   k8sinventory.Place
	key     string // in the storage
	logger  *zap.Logger
	version string // the last version seen; empty if it must be requested
	failing bool   // a failure was logged
}

func (f *follower) run(ctx context.Context) {
	f.version = f.config.ResourceVersion
	if seen, err := f.store.Get(ctx, f.key); err != nil {
		f.logger.Warn("cannot read how far objects were watched", zap.Error(err))
	} else if len(seen) > 0 {
		f.version = string(seen)
	}
	initial := f.config.IncludeInitialState && f.version == ""
	for wait := firstWait; ctx.Err() == nil; {
		began, err := f.follow(ctx, initial)
		if began {
			wait, initial = firstWait, false
		}
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			continue // The API ends watches from time to time.
		case forgotten(err):
			f.logger.Warn("the API has forgotten the state that objects were watched up to; what changed since then is not seen", zap.String("resource_version", f.version))
			f.version = ""
			if began {
				continue
			}
		case !f.failing:
			f.failing = true
			f.logger.Error("cannot watch objects, trying again", zap.Error(err))
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
		wait = min(2*wait, lastWait)
	}
}

// forgotten reports whether the API no longer has a version.
func forgotten(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

// follow watches until the watch ends, and reports whether it began.
func (f *follower) follow(ctx context.Context, initial bool) (began bool, _ error) {
	if f.version == "" {
		if err := f.list(ctx, initial); err != nil {
			return false, err
		}
	}
	watch, err := f.place.Watch(ctx, metav1.ListOptions{
		LabelSelector: f.config.LabelSelector, FieldSelector: f.config.FieldSelector,
		ResourceVersion: f.version, AllowWatchBookmarks: true,
	})
	if err != nil {
		return false, err
	}
	defer watch.Stop()
	if f.failing {
		f.failing = false
		f.logger.Info("watching objects again")
	}
	for {
		select {
		case event, ok := <-watch.ResultChan():
			if !ok {
				return true, nil
			}
			if err := f.take(ctx, &event); err != nil {
				return true, err
			}
		case <-ctx.Done():
			return true, nil
		}
	}
}

// list requests the latest version, and passes on the existing objects.
func (f *follower) list(ctx context.Context, handOn bool) error {
	latest := f.config.Config
	latest.ResourceVersion = ""
	var version string
	var err error
	if handOn && !f.config.Exclude[apiwatch.Added] {
		version, err = f.place.List(ctx, &latest, func(page *unstructured.UnstructuredList) {
			for i := range page.Items {
				f.handle(&apiwatch.Event{Type: apiwatch.Added, Object: &page.Items[i]})
			}
		})
	} else {
		version, err = f.place.Version(ctx, &latest)
	}
	if err != nil {
		return err
	}
	f.saw(ctx, version)
	return nil
}

// take passes an event on and stores its version.
func (f *follower) take(ctx context.Context, event *apiwatch.Event) error {
	if event.Type == apiwatch.Error {
		return apierrors.FromObject(event.Object)
	}
	object, err := meta.Accessor(event.Object)
	if err != nil {
		return fmt.Errorf("cannot read an event of type %s: %w", event.Type, err)
	}
	if event.Type != apiwatch.Bookmark && !f.config.Exclude[event.Type] {
		f.handle(event)
	}
	f.saw(ctx, object.GetResourceVersion())
	return nil
}

func (f *follower) saw(ctx context.Context, version string) {
	if version == "" || version == f.version {
		return
	}
	f.version = version
	if err := f.store.Set(ctx, f.key, []byte(version)); err != nil && !errors.Is(err, context.Canceled) {
		f.logger.Warn("cannot remember how far objects were watched", zap.Error(err))
	}
}
