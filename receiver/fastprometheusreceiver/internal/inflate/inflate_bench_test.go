// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package inflate

import (
	"bytes"
	stdgzip "compress/gzip"
	"fmt"
	"io"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"
)

// 57 kB is the size of a node exporter's page, 2 MB that of kube-state-metrics.
func BenchmarkGunzip(b *testing.B) {
	for _, size := range []int{57 << 10, 2 << 20} {
		want := page(size, 1)
		for _, level := range []int{1, 6} {
			src := gzipped(b, want, level)
			run := func(name string, decode func(buf []byte) ([]byte, error)) {
				b.Run(fmt.Sprintf("size=%d/level=%d/decoder=%s", len(want), level, name), func(b *testing.B) {
					buf := make([]byte, 0, len(want)+Slack)
					b.SetBytes(int64(len(want)))
					for b.Loop() {
						out, err := decode(buf[:0])
						if err != nil || len(out) != len(want) {
							b.Fatal(len(out), err)
						}
					}
					out, err := decode(buf[:0])
					require.NoError(b, err)
					require.True(b, bytes.Equal(want, out))
				})
			}
			d := &Decoder{}
			run("godwit", func(buf []byte) ([]byte, error) { return d.Gunzip(buf, src, 1<<30) })
			window := make([]byte, 256<<10)
			run("godwit-stream", func(buf []byte) ([]byte, error) {
				_, err := d.Stream(window, src, 1<<30, func(chunk []byte) error {
					buf = append(buf, chunk...)
					return nil
				})
				return buf, err
			})
			in := bytes.NewReader(src)
			kr := &gzip.Reader{}
			run("klauspost", func(buf []byte) ([]byte, error) {
				in.Reset(src)
				if err := kr.Reset(in); err != nil {
					return nil, err
				}
				return readAll(buf, kr)
			})
			sr := &stdgzip.Reader{}
			run("std", func(buf []byte) ([]byte, error) {
				in.Reset(src)
				if err := sr.Reset(in); err != nil {
					return nil, err
				}
				return readAll(buf, sr)
			})
		}
	}
}

// readAll reads all of r, which fits into buf.
func readAll(buf []byte, r io.Reader) ([]byte, error) {
	for {
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			return buf, nil
		}
		if err != nil {
			return buf, err
		}
	}
}
