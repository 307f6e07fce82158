// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkExchange fetches and decodes a node exporter's page over loopback, on each road, from a server that costs as
// little as possible.
func BenchmarkExchange(b *testing.B) {
	page := pageOf(57 << 10)
	for encoding, body := range [][]byte{Identity: page, Gzip: gzipped(b, page), Zstd: zstded(b, page)} {
		name := Encoding(encoding).String()
		response := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"+
			"Content-Encoding: %s\r\nContent-Length: %d\r\n\r\n%s", name, len(body), body)
		for _, road := range []Road{Plain, NetHTTP} {
			b.Run(fmt.Sprintf("encoding=%s/road=%s", name, road), func(b *testing.B) {
				target := newTarget(b, road, serveFast(b, response), patient)
				d := &Decoder{}
				var buf []byte
				got := 0
				count := func(chunk []byte) error {
					got += len(chunk)
					return nil
				}
				b.ReportAllocs()
				b.SetBytes(int64(len(page)))
				for b.Loop() {
					r, err := target.Get(b.Context(), buf, nil)
					if err != nil {
						b.Fatal(err)
					}
					buf, got = r.Body, 0
					if _, err := d.Decode(r, 0, count); err != nil {
						b.Fatal(err)
					}
				}
				require.Equal(b, len(page), got)
			})
		}
	}
}
