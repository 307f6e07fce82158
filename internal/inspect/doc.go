// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package inspect is how components show what they are doing, and how viewers find them.
//
// A component registers a [Source] when it starts, and removes it when it stops. A source consists of functions: nothing is
// computed until one is called, which may happen at any time between the two and from any goroutine. What they return
// belongs to the caller. Counters are sums since the component started; callers compute rates.
//
// Without an extension that is a [Registry], registering does nothing.
package inspect
