// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstream

// Signal is a kind of telemetry. Each has streams of its own.
type Signal uint8

// The signals that can be streamed.
const (
	Traces Signal = iota
	Metrics
	Logs
	Profiles
)

// SignalCount is how many there are.
const SignalCount = int(Profiles) + 1

// Signals lists them all.
func Signals() []Signal { return []Signal{Traces, Metrics, Logs, Profiles} }

func (s Signal) String() string { return signals[s].name }

// Method is the method of the stream service and of the unary service.
func (s Signal) Method() string { return signals[s].method }

// StreamMethod is the full name of the method that streams this signal.
func (s Signal) StreamMethod() string { return "/" + StreamService + "/" + s.Method() }

// OTLPService is the service of standard OTLP.
func (s Signal) OTLPService() string { return signals[s].otlpService }

// OTLPMethod is the full name of the unary method of standard OTLP.
func (s Signal) OTLPMethod() string { return "/" + signals[s].otlpService + "/Export" }

// WebSocketPath is where this signal is streamed over WebSocket.
func (s Signal) WebSocketPath() string { return "/" + signals[s].version + "/stream/" + s.String() }

// HTTPPath is where standard OTLP/HTTP takes this signal.
func (s Signal) HTTPPath() string { return "/" + signals[s].version + "/" + s.String() }

// ReferenceServices are the services of the reference implementation that speak the same messages, and empty where
// it has none.
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

// What is in development has a version in its method and its paths, so that no later form is taken for it.
var signals = [SignalCount]struct{ name, version, method, otlpService string }{
	Traces:   {"traces", "v1", "ExportTraces", "opentelemetry.proto.collector.trace.v1.TraceService"},
	Metrics:  {"metrics", "v1", "ExportMetrics", "opentelemetry.proto.collector.metrics.v1.MetricsService"},
	Logs:     {"logs", "v1", "ExportLogs", "opentelemetry.proto.collector.logs.v1.LogsService"},
	Profiles: {"profiles", "v1development", "ExportProfilesV1Development", "opentelemetry.proto.collector.profiles.v1development.ProfilesService"},
}
