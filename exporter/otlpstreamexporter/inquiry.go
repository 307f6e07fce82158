// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/server"
	"github.com/godwit-otel/godwit/internal/inquiry"
)

// lacksClientData reports whether a stream has been opened with less data about the client than was asked for, and logs that the
// first time. Its requests can then be sent one by one, each with its own client.
func (s *slot) lacksClientData(i *inquiry.Context) (avoids bool) {
	if !i.AskedForAuth() && (!i.Asked() || len(s.cfg.MetadataKeys) > 0) {
		return false
	}
	advice := "list the keys that it takes in `metadata_keys`, and each client has streams of its own"
	if i.AskedForAuth() {
		advice = "what a client was authenticated as is known only with `mode: unary`"
	}
	s.server.AvoidStreams(advice)
	return s.cfg.Mode != server.Stream
}
