// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package runtime has the name by which service discovery hands around objects, and lists of them.
package runtime

// An Object is one of the API's, or a list of them.
type Object any
