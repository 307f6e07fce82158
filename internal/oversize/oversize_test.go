// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package oversize_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/oversize"
)

func TestAnswersAboutTheSizeOfARequest(t *testing.T) {
	f := func(want bool, text string) {
		t.Helper()
		require.Equal(t, want, oversize.Says(text), text)
	}
	// VictoriaMetrics 1.150.
	f(true, "cannot decompress snappy-encoded request with length 59517: too big data size 187890 exceeding 100000 bytes")
	f(true, "cannot decompress zstd block with len=29631 and maxDataSizeBytes=100000: decompressed size exceeds configured limit")
	f(true, "cannot decompress zstd block with len=29631 and maxDataSizeBytes=100000: decompressed source size: 187890 exceeds limit: 100000")
	f(true, "too big unpacked request; mustn't exceed `-maxInsertRequestSize=100000` bytes; got 187890 bytes")
	f(true, "too big data size exceeding -maxInsertRequestSize=100000 bytes")
	f(true, "too big decompressed data size exceeding -opentelemetry.maxRequestSize=100000 bytes")
	// Others.
	f(true, "http: request body too large")
	f(true, "Request Entity Too Large")
	f(true, "received message larger than max (187890 vs. 100000)")
	f(true, "its message size is larger than the allowed limit")

	f(false, "")
	f(false, "out of order sample")
	f(false, "received a series whose label value length exceeds the limit, actual: 4000, limit: 2048")
	f(false, "label value too long for metric")
	f(false, "the request has too many labels")
	f(false, "timestamp too large: 9223372036854775807")
	f(false, "exemplar labels too large")
	f(false, "cannot unmarshal prompb.WriteRequest with size 187890 bytes: too big encoded varuint")
}
