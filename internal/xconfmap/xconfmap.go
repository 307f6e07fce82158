// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package xconfmap replaces the module of its path in the full distribution: see docs/design/057.
//
// It has what that module has at the Collector's 0.159, and Validate, which had moved to confmap by then and which a component of 0.156
// still calls here.
package xconfmap

import (
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/internal"
)

// ExpandedValue is a value that was written as a reference, with the text that it had.
type ExpandedValue = internal.ExpandedValue

// Validate checks a configuration and everything in it.
func Validate(config any) error { return confmap.Validate(config) }

// WithForceUnmarshaler makes a configuration decode itself, even while it is being decoded.
func WithForceUnmarshaler() confmap.UnmarshalOption { return internal.WithForceUnmarshaler() }

// ToStringMapRaw returns a configuration with its expanded values.
func ToStringMapRaw(conf *confmap.Conf) map[string]any { return internal.ToStringMapRaw(conf) }

// WithUnredacted writes secrets as they are.
func WithUnredacted() confmap.MarshalOption {
	return internal.MarshalOptionFunc(func(o *internal.MarshalOptions) { o.OpaqueUnredacted = true })
}
