module github.com/godwit-otel/godwit/e2e/oldcollector

go 1.25.0

require go.opentelemetry.io/collector v0.30.0
