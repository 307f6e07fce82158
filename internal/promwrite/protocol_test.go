// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package promwrite

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseContentType(t *testing.T) {
	f := func(header string, want Version) {
		t.Helper()
		got, err := ParseContentType(header)
		require.Equal(t, want, got)
		require.Equal(t, want == 0, err != nil)
	}
	f("", V1)
	f("application/x-protobuf", V1)
	f("application/x-protobuf; charset=utf-8", V1)
	f("application/x-protobuf;proto=prometheus.WriteRequest", V1)
	f("application/x-protobuf;proto=io.prometheus.write.v2.Request", V2)
	f("Application/X-Protobuf; Proto=\"io.prometheus.write.v2.Request\"", V2)
	f("application/x-protobuf;proto=io.prometheus.write.v3.Request", 0)
	f("application/x-protobuf;proto", 0)
	f("application/json", 0)
	f("application/json;proto=io.prometheus.write.v2.Request", 0)
	for _, version := range []Version{V1, V2} {
		f(version.ContentType(), version)
	}
}

func TestParseContentEncoding(t *testing.T) {
	f := func(header string, want Encoding, ok bool) {
		t.Helper()
		got, err := ParseContentEncoding(header)
		require.Equal(t, ok, err == nil)
		require.Equal(t, want, got)
	}
	f("", Snappy, true) // some senders omit it
	f("snappy", Snappy, true)
	f("Snappy", Snappy, true)
	f("zstd", Zstd, true)
	f("identity", Identity, true)
	f("gzip", 0, false)
	f("snappy, zstd", 0, false)
	for _, encoding := range []Encoding{Snappy, Zstd, Identity} {
		f(encoding.String(), encoding, true)
	}
}

func TestVersionNamesItself(t *testing.T) {
	require.Equal(t, []string{"0.1.0", "2.0.0", "unknown"}, []string{V1.String(), V2.String(), Version(0).String()})
	require.Equal(t, "unknown", Encoding(9).String())
}

func TestWrittenHeaders(t *testing.T) {
	h := http.Header{}
	_, ok := ParseWritten(h)
	require.False(t, ok, "no header means that the receiver did not understand")

	want := Written{Samples: 3, Exemplars: 1}
	want.SetHeaders(h)
	require.Equal(t, "3", h.Get("X-Prometheus-Remote-Write-Samples-Written"))
	require.Equal(t, "0", h.Get("X-Prometheus-Remote-Write-Histograms-Written"))
	require.Equal(t, "1", h.Get("X-Prometheus-Remote-Write-Exemplars-Written"))
	got, ok := ParseWritten(h)
	require.True(t, ok)
	require.Equal(t, want, got)

	_, ok = ParseWritten(http.Header{HeaderSamplesWritten: {"-1"}, HeaderExemplarsWritten: {"many"}})
	require.False(t, ok)
}
