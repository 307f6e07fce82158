// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml
//go:generate goimports -w generated_component_test.go

// Package otlpstreamexporter sends OTLP as streams of requests that the other
// end acknowledges, over gRPC or WebSocket. To servers without streams it sends
// requests one by one.
//
// Data is marshalled as soon as it arrives; from then on its bytes are shared
// and never change. A request leaves the queue when it is acknowledged or
// dropped, so a queue on disk loses nothing when the process ends. in_flight
// limits what is in flight, sending_queue what waits.
package otlpstreamexporter
