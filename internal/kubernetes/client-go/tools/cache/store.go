// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"maps"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NamespaceIndex is the name of an index by namespace.
const NamespaceIndex = "namespace"

// An IndexFunc returns the values under which an index has an object.
type IndexFunc func(obj any) ([]string, error)

// Indexers are the indexes of a store, by name.
type Indexers map[string]IndexFunc

// MetaNamespaceIndexFunc indexes by namespace.
func MetaNamespaceIndexFunc(obj any) ([]string, error) {
	return []string{obj.(metav1.Object).GetNamespace()}, nil
}

// A Store has the objects of an informer.
type Store interface {
	GetByKey(key string) (item any, exists bool, err error)
}

// An Indexer is a store with indexes.
type Indexer interface {
	Store
	ByIndex(index, value string) ([]any, error)
}

// A store keeps objects by key, and keys by the values of its indexes.
type store struct {
	indexers Indexers

	mu      sync.RWMutex
	objects map[string]metav1.Object
	indexes map[string]map[string]map[string]struct{} // by index, value and key
}

func newStore(indexers Indexers) *store {
	s := &store{indexers: indexers, objects: map[string]metav1.Object{}, indexes: map[string]map[string]map[string]struct{}{}}
	for index := range indexers {
		s.indexes[index] = map[string]map[string]struct{}{}
	}
	return s
}

// GetByKey implements Store.
func (s *store) GetByKey(key string) (item any, exists bool, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	object, ok := s.objects[key]
	if !ok {
		return nil, false, nil
	}
	return object, true, nil
}

// ByIndex implements Indexer.
func (s *store) ByIndex(index, value string) (all []any, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for key := range s.indexes[index][value] {
		all = append(all, s.objects[key])
	}
	return all, nil
}

// set replaces the object with a key, which it returns; nil removes it.
func (s *store) set(key string, object metav1.Object) (old metav1.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old = s.objects[key]; old != nil {
		s.reindex(old, func(keys map[string]struct{}) { delete(keys, key) })
	}
	if object == nil {
		delete(s.objects, key)
		return old
	}
	s.objects[key] = object
	s.reindex(object, func(keys map[string]struct{}) { keys[key] = struct{}{} })
	return old
}

func (s *store) reindex(object metav1.Object, change func(keys map[string]struct{})) {
	for index, f := range s.indexers {
		values, err := f(object)
		if err != nil { // the object is of another kind
			continue
		}
		for _, value := range values {
			keys := s.indexes[index][value]
			if keys == nil {
				keys = map[string]struct{}{}
				s.indexes[index][value] = keys
			}
			if change(keys); len(keys) == 0 {
				delete(s.indexes[index], value)
			}
		}
	}
}

// all returns the objects by key.
func (s *store) all() map[string]metav1.Object {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return maps.Clone(s.objects)
}
