// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml
//go:generate goimports -w generated_component_test.go

// Package otlpstreamexporter sends OTLP as streams of requests that the other
// end acknowledges, over gRPC or WebSocket, and one by one to servers that
// know no streams.
//
// Data is marshalled as soon as it arrives; from then on its bytes are shared
// and never change. A request leaves the queue when it is acknowledged or
// dropped, so what a queue on disk holds survives. What is in flight is
// bounded by in_flight, what waits by sending_queue.
package otlpstreamexporter
