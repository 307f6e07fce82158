// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/racetest"
)

// noiseOf returns an incompressible page.
func noiseOf(size int) []byte {
	out := make([]byte, size)
	r := rand.New(rand.NewPCG(5, 5))
	for i := range out {
		out[i] = byte(r.Uint32())
	}
	return out
}

// A large gzipped page is never held as a whole, neither compressed nor decompressed, but only in parts.
func TestGivesLargeGzipPagesInParts(t *testing.T) {
	page := noiseOf(3 * large)
	body := gzipped(t, page)
	for name, framing := range framings {
		server := answering(t, head200+"Content-Encoding: gzip\r\n"+framing(body), name == "until the end")
		t.Run(name, func(t *testing.T) {
			bothRoads(t, server, func(t *testing.T, target *Target) {
				var d Decoder
				for range 2 {
					var b Body
					var got []byte
					take := func(chunk []byte) error {
						if len(chunk) > window+piece+1024 {
							return errors.New("too much at a time")
						}
						got = append(got, chunk...)
						return nil
					}
					parts := 0
					r, err := target.Get(t.Context(), nil, func(r Response) error {
						parts++
						n, err := b.Part(&d, r, 0, take)
						require.EqualValues(t, len(got), n)
						return err
					})
					require.NoError(t, err)
					n, err := b.End(&d, r, 0, take)
					require.NoError(t, err)
					require.EqualValues(t, len(page), n)
					require.True(t, bytes.Equal(page, got))
					require.Greater(t, parts, len(body)/piece/2)
					require.LessOrEqual(t, cap(r.Body), piece)
					require.Equal(t, len(body), target.Size())
					b.Close()
				}
				require.LessOrEqual(t, cap(d.buf)+cap(d.packed), 3*piece)
			})
		})
	}
}

// A part that exceeds a page's limit ends the page, and so does one that does not decode.
func TestPartsOfBadGzip(t *testing.T) {
	racetest.Sequential(t)
	page := make([]byte, 64<<20)
	bomb := gzipped(t, page)
	nothing := func([]byte) error { return nil }
	f := func(body []byte, limit int64, reason string) {
		t.Helper()
		var b Body
		var d Decoder
		r := Response{Encoding: Gzip}
		var err error
		for len(body) > 10_000 && err == nil {
			r.Body, body = body[:10_000], body[10_000:]
			_, err = b.Part(&d, r, limit, nothing)
			r.Before += 10_000
		}
		if err == nil {
			r.Body = body
			_, err = b.End(&d, r, limit, nothing)
		}
		require.Equal(t, reason, Reason(err), "%v", err)
		b.Close()
		b.Close() // no effect
	}
	f(bomb, 32<<20, ReasonBodySize)
	f(bomb, 64<<20, ReasonBodySize)
	f(bomb, 64<<20+1, "")
	f(bomb[:len(bomb)-1], 0, ReasonEncoding)
	f(append(bytes.Clone(bomb[:40_000]), bomb[:30_000]...), 0, ReasonEncoding)
}

// rationed is memory with a limited amount beyond the shares.
type rationed struct {
	heap

	left, most int
}

func (m *rationed) Take(size int) []byte {
	m.most = max(m.most, size)
	if size > Share {
		if size > m.left {
			return nil
		}
		m.left -= size
	}
	return make([]byte, size)
}

// Without memory, pages are read in the smallest parts possible.
func TestPartsAreSmallWithoutMemory(t *testing.T) {
	page := pageOf(3 * large)
	for name, framing := range framings {
		for encoding, body := range map[string][]byte{"identity": page, "gzip": gzipped(t, page)} {
			server := answering(t, head200+"Content-Encoding: "+encoding+"\r\n"+framing(body), name == "until the end")
			t.Run(name+"/"+encoding, func(t *testing.T) {
				for _, left := range []int{piece, 0, 100 << 20}[:racetest.Size(3, 1)] {
					for _, road := range []Road{Plain, NetHTTP} {
						target := newTarget(t, road, server, patient)
						m := &rationed{left: left}
						target.client.options.Memory = m
						var d Decoder
						var b Body
						var got []byte
						take := func(chunk []byte) error {
							if len(chunk) == 0 {
								return errors.New("nothing")
							}
							got = append(got, chunk...)
							return nil
						}
						r, err := target.Get(t.Context(), nil, func(r Response) error {
							_, err := b.Part(&d, r, 0, take)
							return err
						})
						require.NoError(t, err)
						_, err = b.End(&d, r, 0, take)
						require.NoError(t, err)
						require.True(t, bytes.Equal(page, got))
						require.LessOrEqual(t, m.most, piece)
						if left == 0 {
							require.LessOrEqual(t, cap(r.Body), 2*Share)
						}
						b.Close()
					}
				}
			})
		}
	}
}

// However much a target announces, or has sent the last time, what has not arrived takes no memory.
func TestMemoryIsForWhatHasCome(t *testing.T) {
	page := pageOf(1 << 20)
	for name, sent := range map[string]int{"nothing": -1, "a head": 0, "a line": 50, "a little": 20_000} {
		t.Run(name, func(t *testing.T) {
			var good atomic.Bool
			server := serveRaw(t, func(conn net.Conn, _ int) {
				requests(conn, func(*http.Request) bool {
					response := []byte(head200 + framings["sized"](page))
					if !good.Load() {
						response = response[:max(0, len(response)-len(page)+sent)]
						if sent < 0 {
							response = nil
						}
					}
					conn.Write(response)
					if !good.Load() {
						hold(conn)
					}
					return good.Load()
				})
			})
			for _, road := range []Road{Plain, NetHTTP} {
				good.Store(true)
				target := newTarget(t, road, server, hasty)
				target.timeout = patient
				m := &rationed{left: 100 << 20}
				target.client.options.Memory = m
				part := func(Response) error { return nil }
				_, err := target.Get(t.Context(), make([]byte, 0, 4<<10), part)
				require.NoError(t, err)
				good.Store(false)
				m.most, target.timeout = 0, hasty
				_, err = target.Get(t.Context(), make([]byte, 0, 4<<10), part)
				require.Equal(t, ReasonTimeout, Reason(err))
				require.LessOrEqual(t, m.most, max(Share, growth*sent))
			}
		})
	}
}
