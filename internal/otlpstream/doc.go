// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package otlpstream is the protocol of streaming OTLP: its messages, their
// transport over gRPC and WebSocket, and the counters of both ends.
//
// Payloads are OTLP bytes. They are marshalled once, are never changed after
// that, and may be shared by any number of messages; sending does not copy
// them. Parsed messages own their data.
//
// docs/otlpstream.md is the specification that this package follows.
package otlpstream
