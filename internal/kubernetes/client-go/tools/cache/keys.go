// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package cache keeps a copy of what the API has, by listing and watching.
package cache

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// DeletionHandlingMetaNamespaceKeyFunc returns an object's key: its namespace and its name, or its name.
func DeletionHandlingMetaNamespaceKeyFunc(obj any) (string, error) {
	object, ok := obj.(metav1.Object)
	if !ok {
		return "", fmt.Errorf("%T is no object of the API", obj)
	}
	return keyOf(object), nil
}

func keyOf(object metav1.Object) string {
	if namespace := object.GetNamespace(); namespace != "" {
		return namespace + "/" + object.GetName()
	}
	return object.GetName()
}

// SplitMetaNamespaceKey splits a key.
func SplitMetaNamespaceKey(key string) (namespace, name string, err error) {
	namespace, name, ok := strings.Cut(key, "/")
	switch {
	case !ok:
		return "", key, nil
	case strings.Contains(name, "/"):
		return "", "", fmt.Errorf("unexpected key format: %q", key)
	}
	return namespace, name, nil
}

// A ListerWatcher lists and watches a collection.
type ListerWatcher interface {
	list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error)
	watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
}

// A ListWatch is a ListerWatcher made of functions.
type ListWatch struct {
	ListWithContextFunc  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error)
	WatchFuncWithContext func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
}

func (l *ListWatch) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContextFunc(ctx, o)
}

func (l *ListWatch) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	return l.WatchFuncWithContext(ctx, o)
}

// InformerSynced reports whether an informer has processed its first list completely.
type InformerSynced func() bool

// syncInterval is the interval of these checks.
const syncInterval = 100 * time.Millisecond

// WaitForCacheSync waits until all informers are synced. It returns false if stop is closed before.
func WaitForCacheSync(stop <-chan struct{}, synced ...InformerSynced) bool {
	ticker := time.NewTicker(syncInterval)
	defer ticker.Stop()
	for _, one := range synced {
		for !one() {
			select {
			case <-stop:
				return false
			case <-ticker.C:
			}
		}
	}
	return true
}
