// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package memo remembers what was made of repeated data, such as the labels of a series.
//
// The bytes of a Table are limited. An entry stays as long as it is asked for, and new entries do not displace it: if there is no room for
// a new one, it is not remembered. An entry that nobody has asked for in a while is removed.
//
// What a table returns may be used for ever. It is never changed, and the garbage collector frees it.
package memo
