// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package runtime has the type that service discovery uses for objects, and lists of them.
package runtime

// An Object is an object of the API, or a list of them.
type Object any
