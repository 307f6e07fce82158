// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"sync"

	"go.opentelemetry.io/collector/extension/xextension/storage"
)

var errKilled = errors.New("killed")

// medium is what survives a process: the values that its clients stored.
type medium struct {
	mu     sync.Mutex
	values map[string][]byte
	limit  int // bytes of values; 0 means unlimited
}

func newMedium() *medium { return &medium{values: map[string][]byte{}} }

func (m *medium) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.values)
}

func (m *medium) size() int {
	n := 0
	for _, v := range m.values {
		n += len(v)
	}
	return n
}

// memoryClient is a storage.Client with atomic batches, like those of file_storage. After lives operations it is dead:
// further operations have no effect. A negative number means it lives for ever.
type memoryClient struct {
	*medium

	lives  int
	failed bool // whether reads fail
	full   bool // whether there is no room for anything, reported like bbolt does, not even for deletions
}

func (c *memoryClient) setFull(full bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.full = full
}

func (c *memoryClient) Batch(_ context.Context, ops ...*storage.Operation) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lives == 0 || c.failed {
		return errKilled
	}
	if c.full && len(ops) > 0 && ops[0].Type != storage.Get {
		return errors.New("file resize error: truncate: no space left on device")
	}
	c.lives--
	before := maps.Clone(c.values)
	for _, op := range ops {
		switch op.Type {
		case storage.Get:
			op.Value = bytes.Clone(c.values[op.Key])
		case storage.Set:
			c.values[op.Key] = bytes.Clone(op.Value)
		case storage.Delete:
			delete(c.values, op.Key)
		}
	}
	if c.limit > 0 && c.size() > c.limit {
		c.values = before
		return storage.ErrStorageFull
	}
	return nil
}

func (c *memoryClient) Get(ctx context.Context, key string) ([]byte, error) {
	op := storage.GetOperation(key)
	err := c.Batch(ctx, op)
	return op.Value, err
}

func (c *memoryClient) Set(ctx context.Context, key string, value []byte) error {
	return c.Batch(ctx, storage.SetOperation(key, value))
}

func (c *memoryClient) Delete(ctx context.Context, key string) error {
	return c.Batch(ctx, storage.DeleteOperation(key))
}

func (c *memoryClient) Close(context.Context) error { return nil }

// walkingClient can also list its keys.
type walkingClient struct{ *memoryClient }

func (c walkingClient) Walk(_ context.Context, f storage.WalkFunc) error {
	c.mu.Lock()
	values := maps.Clone(c.values)
	c.mu.Unlock()
	for k, v := range values {
		if _, err := f(k, v); err != nil {
			return err
		}
	}
	return nil
}
