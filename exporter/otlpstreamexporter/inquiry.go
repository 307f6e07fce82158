// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/internal/inquiry"
)

// inVain tells whether a stream has been opened with less than was asked for, and says so the first time. The requests it
// was opened for can go one by one then, each with the client that it came from.
func (s *slot) inVain(i *inquiry.Context) (forgone bool) {
	if !i.AskedForAuth() && (!i.Asked() || len(s.cfg.MetadataKeys) > 0) {
		return false
	}
	if s.modes.forgo() {
		advice := "list the keys that it takes in `metadata_keys`, and each client has streams of its own"
		if i.AskedForAuth() {
			advice = "what a client was authenticated as is known only with `mode: unary`"
		}
		text := "The authenticator sets headers by the client that a request came from, which a stream does not know: requests are sent one by one"
		if s.cfg.Mode == modeStream {
			text = "The authenticator sets headers by the client that a request came from, which a stream does not know: it sets its defaults for all"
		}
		s.set.Logger.Warn(text, zap.String("endpoint", s.client.Endpoint), zap.String("advice", advice))
	}
	return s.cfg.Mode != modeStream
}
