// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package hostgraph tells a receiver what is behind it: the pipelines that it is in, with their processors and exporters.
//
// The Collector exposes that to no component. Its graph is read by reflection, without unsafe, and only if each field is as in
// the version that this was written for; for any other host the result is [ErrUnknown]. A test with the real Collector
// fails when its graph has changed.
package hostgraph
