// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"errors"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

func TestLogger(t *testing.T) {
	const link = "http://me:hidden@host/?a=hidden"
	core, logs := observer.New(zap.InfoLevel)
	log := Logger(zap.New(core)).With(zap.String("with", link))
	parsed, err := url.Parse(link)
	require.NoError(t, err)
	log.Debug("left out " + link)
	log.Warn("from "+link, zap.String("text", link), zap.Stringer("link", parsed), zap.ByteString("bytes", []byte(link)),
		zap.Error(fmt.Errorf("cannot ask %s: %w", link, errors.New("EOF"))), zap.Stringer("none", (*url.URL)(nil)), zap.Int("n", 1), zap.String("plain", "x"))
	require.Equal(t, 1, logs.Len())
	said := logs.All()[0]
	require.NotContains(t, fmt.Sprint(said.Message, said.ContextMap()), "hidden")
	fields := said.ContextMap()
	require.Equal(t, "cannot ask http://[REDACTED]@host/?a=[REDACTED]: EOF", fields["error"])
	require.EqualValues(t, 1, fields["n"])
	require.Equal(t, "x", fields["plain"])
	require.Contains(t, fields["with"], "@host/")
}

// The Collector's logger samples in Check.
func TestLoggerLeavesSamplingToTheCore(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	log := Logger(zap.New(zapcore.NewSamplerWithOptions(core, time.Hour, 2, 1000)))
	for range 10 {
		log.Info("again")
	}
	require.Equal(t, 2, logs.Len())
}
