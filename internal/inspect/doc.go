// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package inspect is how a component shows what it is doing to whoever looks, and how one who looks finds it.
//
// A component registers a [Source] when it starts, and takes it back when it stops. A source is functions: nothing is
// computed until one is called, which may be at any time between the two and from any goroutine. What they return
// belongs to the caller. Counters are sums since the component started; rates are for the caller to make.
//
// Without an extension that is a [Registry], registering does nothing.
package inspect
