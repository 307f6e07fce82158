// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstream

// Signal is a kind of telemetry. Each has its own streams.
type Signal uint8

// The signals that can be streamed.
const (
	Traces Signal = iota
	Metrics
	Logs
	Profiles
)

// SignalCount is the number of signals.
const SignalCount = int(Profiles) + 1

// Signals lists them all.
func Signals() []Signal { return []Signal{Traces, Metrics, Logs, Profiles} }

func (s Signal) String() string { return signals[s].name }

// Method returns the name of the method in the stream service and in the unary service.
func (s Signal) Method() string { return signals[s].method }

// StreamMethod returns the full name of the method that streams this signal.
func (s Signal) StreamMethod() string { return "/" + StreamService + "/" + s.Method() }

// OTLPService returns the name of standard OTLP's service.
func (s Signal) OTLPService() string { return signals[s].otlpService }

// OTLPMethod returns the full name of standard OTLP's unary method.
func (s Signal) OTLPMethod() string { return "/" + signals[s].otlpService + "/Export" }

// WebSocketPath returns the path at which this signal is streamed over WebSocket.
func (s Signal) WebSocketPath() string { return "/" + signals[s].version + "/stream/" + s.String() }

// HTTPPath returns the path at which standard OTLP/HTTP accepts this signal.
func (s Signal) HTTPPath() string { return "/" + signals[s].version + "/" + s.String() }

// ReferenceServices returns the services of the reference implementation that use the same messages, empty if there are
// none.
func (s Signal) ReferenceServices() (stream, unary string) {
	if s != Traces {
		return "", ""
	}
	return "experimental.collector.trace.v1.StreamExporter", "experimental.collector.trace.v1.UnaryExporter"
}

// The services of the specification.
const (
	StreamService = "otlp.StreamExporter"
	UnaryService  = "otlp.UnaryExporter"
)

// Signals in development have a version in their method and paths, so that later forms are not mistaken for them.
var signals = [SignalCount]struct{ name, version, method, otlpService string }{
	Traces:   {"traces", "v1", "ExportTraces", "opentelemetry.proto.collector.trace.v1.TraceService"},
	Metrics:  {"metrics", "v1", "ExportMetrics", "opentelemetry.proto.collector.metrics.v1.MetricsService"},
	Logs:     {"logs", "v1", "ExportLogs", "opentelemetry.proto.collector.logs.v1.LogsService"},
	Profiles: {"profiles", "v1development", "ExportProfilesV1Development", "opentelemetry.proto.collector.profiles.v1development.ProfilesService"},
}
