// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package block

import "testing"

// BenchmarkTranscode converts a request for a destination that needs another format.
func BenchmarkTranscode(b *testing.B) {
	const size = 48_000
	for _, f := range []Format{v2Snappy, v1Zstd, v1Snappy} {
		b.Run("version="+f.Version.String()+"/compression="+f.Compression.String(), func(b *testing.B) {
			whole := made(b, v2Zstd, nodeSeries(size, 1)...)
			b.ReportAllocs()
			for b.Loop() {
				if other, err := Transcode(whole, f); err != nil || other.Samples != size {
					b.Fatal(err, other.Samples)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/size, "ns/sample")
		})
	}
}
