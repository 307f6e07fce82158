// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package otlpstreamreceiver receives OTLP, one request at a time or as streams
// with acknowledgements, over gRPC, HTTP and WebSocket.
//
// A request is acknowledged once the pipeline has accepted its data, in whatever
// order that happens. Requests are admitted by their bytes before they are
// decoded, so memory is limited whatever clients do: by in_flight.bytes, plus
// what each stream's window lets the transport hold.
package otlpstreamreceiver
