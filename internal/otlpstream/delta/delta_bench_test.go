// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package delta

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

// frame returns a zstd frame as long as the stream, like otlpstream's.
func frame(tb testing.TB) func(payload []byte) int {
	var out bytes.Buffer
	e, err := zstd.NewWriter(&out, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(256<<10),
		zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
	require.NoError(tb, err)
	return func(payload []byte) int {
		out.Reset()
		_, _ = e.Write(payload)
		_ = e.Flush()
		return out.Len()
	}
}

// BenchmarkForms measures a point of node exporters, in bytes and in time, unchanged, as a difference in bytes from the
// last payload of the target, and as deltas, each through the frame of a stream. Fresh is the first scrape of each
// target.
func BenchmarkForms(b *testing.B) {
	const targets = 20
	for _, share := range []float64{0.3, 1} {
		payloads, points := scrapes(b, targets, 10, share)
		for _, m := range []struct {
			name string
			make func() func(i int, payload []byte) []byte
		}{
			{"plain", func() func(int, []byte) []byte { return func(_ int, p []byte) []byte { return p } }},
			{"xor", func() func(int, []byte) []byte {
				last, out := make([][]byte, targets), []byte(nil)
				return func(i int, p []byte) []byte {
					out = append(out[:0], p...)
					if before := last[i%targets]; len(before) == len(p) {
						for j := range before {
							out[j] ^= before[j]
						}
					}
					last[i%targets] = append(last[i%targets][:0], p...)
					return out
				}
			}},
			{"delta", func() func(int, []byte) []byte {
				e, out := NewEncoder(16<<20), []byte(nil)
				return func(_ int, p []byte) []byte {
					out, _ = e.Append(out[:0], p)
					return out
				}
			}},
		} {
			for _, fresh := range []bool{true, false} {
				b.Run(fmt.Sprintf("changing=%v/form=%s/fresh=%v", share, m.name, fresh), func(b *testing.B) {
					b.ReportAllocs()
					size := 0
					for b.Loop() {
						size = 0
						form, compress := m.make(), frame(b)
						for i, p := range payloads {
							if i == targets && fresh {
								break
							}
							if i == targets {
								size = 0
							}
							size += compress(form(i, p))
						}
					}
					n, timed := points/10, points/10
					if !fresh {
						n, timed = points-n, points // the time includes both
					}
					b.ReportMetric(float64(size)/float64(n), "B/point")
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*timed), "ns/point")
				})
			}
		}
	}
}

// BenchmarkDecode measures decoding the payloads.
func BenchmarkDecode(b *testing.B) {
	payloads, points := scrapes(b, 20, 10, 0.3)
	e := NewEncoder(16 << 20)
	forms := make([][]byte, len(payloads))
	for i, p := range payloads {
		forms[i], _ = e.Append(nil, p)
	}
	var out []byte
	for b.Loop() {
		d := NewDecoder(16 << 20)
		for i, form := range forms {
			var err error
			if out, err = d.Append(out[:0], form, len(payloads[i]), payloads[i][0]); err != nil {
				b.Fatal(err)
			}
		}
	}
	require.True(b, bytes.Equal(payloads[len(payloads)-1], out))
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*points), "ns/point")
}
