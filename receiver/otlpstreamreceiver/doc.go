// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package otlpstreamreceiver takes OTLP, one request at a time or as streams
// with acknowledgements, over gRPC, HTTP and WebSocket.
//
// A request is acknowledged once the pipeline has taken its data, in whatever
// order that happens. Requests are let in by their bytes before they are
// decoded, so memory is bounded whatever clients do: by in_flight.bytes, plus
// for each stream what its window lets the transport hold.
package otlpstreamreceiver
