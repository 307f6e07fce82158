// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package inquiry finds out whether an authenticator asks for the client that
// data came from.
//
// Authenticators such as headers_setter set headers by the client's metadata,
// which they look for in the context of a request. A request that was queued,
// or that carries the data of several clients, has none. If the answer were that there
// is no client, everybody's data would silently be sent under the default
// name. An exporter opens such requests with a Context of this package, checks
// afterwards whether anybody asked, and reports it.
package inquiry

import (
	"context"
	"sync/atomic"

	"go.opentelemetry.io/collector/client"
)

// Context is the context of a request or stream whose client is known in part, or not at all.
type Context struct {
	context.Context

	known        client.Info
	asked        atomic.Bool
	askedForAuth atomic.Bool
}

// New returns a context with the known metadata of the client.
func New(ctx context.Context, known client.Metadata) *Context {
	return &Context{Context: ctx, known: client.Info{Metadata: known}}
}

// Asked reports whether anybody has asked for the client.
func (c *Context) Asked() bool { return c.asked.Load() }

// AskedForAuth reports whether anybody has asked how the client was authenticated, which is never known.
func (c *Context) AskedForAuth() bool { return c.askedForAuth.Load() }

// clientKey is the key of clients in contexts.
var clientKey = func() any {
	var k keyCatcher
	client.FromContext(&k)
	return k.key
}()

type keyCatcher struct {
	context.Context

	key any
}

func (k *keyCatcher) Value(key any) any { k.key = key; return nil }

// Value records a request for the client, and returns what is known of it.
func (c *Context) Value(key any) any {
	if key != clientKey {
		return c.Context.Value(key)
	}
	c.asked.Store(true)
	info := c.known
	info.Auth = c
	return info
}

// GetAttribute records that it was called, and returns nothing.
func (c *Context) GetAttribute(string) any { c.askedForAuth.Store(true); return nil }

// GetAttributeNames records that it was called, and returns nothing.
func (c *Context) GetAttributeNames() []string { c.askedForAuth.Store(true); return nil }
