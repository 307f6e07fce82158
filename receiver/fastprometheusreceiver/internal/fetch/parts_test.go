// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	promconfig "github.com/prometheus/prometheus/config"
	"github.com/stretchr/testify/require"
)

// framings are the ways to frame a body.
var framings = map[string]func(body []byte) string{
	"sized": func(body []byte) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body) },
	"chunked": func(body []byte) string {
		var b strings.Builder
		b.WriteString("Transfer-Encoding: chunked\r\n\r\n")
		r := rand.New(rand.NewPCG(3, 3))
		for len(body) > 0 {
			n := min(1+r.IntN(9<<10), len(body))
			fmt.Fprintf(&b, "%x\r\n%s\r\n", n, body[:n])
			body = body[n:]
		}
		return b.String() + "0\r\n\r\n"
	},
	"until the end": func(body []byte) string { return "\r\n" + string(body) },
}

// A collector assembles a page from its parts.
type collector struct {
	page  []byte
	parts int
	most  int // size of the largest part
}

func (c *collector) take(r Response) error {
	if int(r.Before) != len(c.page) || r.Encoding != Identity || r.ContentType != "text/plain" {
		return fmt.Errorf("a part of %d bytes after %d, where %d are there, of %q in %s", len(r.Body), r.Before, len(c.page), r.ContentType, r.Encoding)
	}
	c.parts++
	c.most = max(c.most, len(r.Body))
	c.page = append(c.page, r.Body...)
	return nil
}

// A large uncompressed page is never held as a whole, but only one piece at a time.
func TestGivesLargePlainPagesInParts(t *testing.T) {
	page := pageOf(3*large - 7)
	for name, framing := range framings {
		server := answering(t, head200+framing(page), name == "until the end")
		t.Run(name, func(t *testing.T) {
			bothRoads(t, server, func(t *testing.T, target *Target) {
				var buf []byte
				for range 3 {
					c := collector{}
					r, err := target.Get(t.Context(), buf, c.take)
					require.NoError(t, err)
					size, err := (&Decoder{}).Decode(r, 0, func(end []byte) error {
						c.page = append(c.page, end...)
						return nil
					})
					require.NoError(t, err)
					require.EqualValues(t, len(page), size)
					require.True(t, bytes.Equal(page, c.page))
					require.Equal(t, len(page), target.Size())
					require.LessOrEqual(t, c.most, piece)
					require.GreaterOrEqual(t, c.parts, 2)
					require.LessOrEqual(t, cap(r.Body), piece)
					buf = make([]byte, 0, 4<<10)
				}
				_, err := (&Decoder{}).Decode(Response{Body: page[:10], Before: 90}, 100, nil)
				require.ErrorIs(t, err, ErrBodySize, "the parts count")
			})
		})
	}
}

func TestGivesOtherPagesAsAWhole(t *testing.T) {
	page := pageOf(2 * large)
	for _, response := range []string{
		head200 + framings["sized"](page[:piece-2*leastBuffer]), head200 + framings["chunked"](page[:piece-2*leastBuffer]),
		head200 + "Content-Encoding: zstd\r\n" + framings["chunked"](page), // it is not zstd, but nobody checks
	} {
		bothRoads(t, answering(t, response, false), func(t *testing.T, target *Target) {
			for range 2 {
				r, err := target.Get(t.Context(), nil, func(Response) error { return errors.New("a part") })
				require.NoError(t, err)
				require.Zero(t, r.Before)
				require.True(t, bytes.Equal(page[:len(r.Body)], r.Body))
			}
		})
	}
}

// However a chunked body is cut, and whatever its trailers are, the parts are the body.
func TestPartsOfWhatIsReadByAndBy(t *testing.T) {
	page := pageOf(3 * large)
	trailers := strings.Repeat("X: "+strings.Repeat("x", 500)+"\r\n", 100)
	response := strings.TrimSuffix(head200+framings["chunked"](page), "\r\n") + trailers + "\r\n"
	for name, r := range map[string]io.Reader{
		"at once": strings.NewReader(response), "by halves": iotest.HalfReader(strings.NewReader(response)),
		"with the end": iotest.DataErrReader(strings.NewReader(response)),
	} {
		var h head
		var c collector
		w := wire{conn: r, buf: make([]byte, leastBuffer), memory: heap{}}
		require.NoError(t, w.head(&h), name)
		w.page.ContentType = "text/plain"
		w.split(c.take)
		require.NoError(t, w.body(&h, int64(len(page))), name)
		require.True(t, bytes.Equal(page, append(c.page, w.buf[:w.n]...)), name)
		require.LessOrEqual(t, len(w.buf), piece+maxTrailer, name)
	}
}

func TestPartsEndWithTheirReader(t *testing.T) {
	page := pageOf(3 * large)
	enough := fmt.Errorf("malformed line: %w", io.EOF)
	for _, framing := range framings {
		server := answering(t, head200+framing(page), true)
		bothRoads(t, server, func(t *testing.T, target *Target) {
			calls := 0
			r, err := target.Get(t.Context(), nil, func(Response) error {
				calls++
				return enough
			})
			require.ErrorIs(t, err, enough)
			require.EqualError(t, err, enough.Error())
			require.Equal(t, ReasonOther, Reason(err))
			require.Equal(t, 1, calls)
			require.Empty(t, r.Body)
			_, err = target.Get(t.Context(), nil, nil)
			require.NoError(t, err, "the next exchange is not the worse for it")
		})
	}
}

// Failures after parts of a page were delivered.
func TestPartsOfBadPages(t *testing.T) {
	page := pageOf(3 * large)
	sent := func(conn net.Conn, length int) {
		fmt.Fprintf(conn, "%sContent-Length: %d\r\n\r\n%s", head200, length, page)
	}
	f := func(reason string, timeout time.Duration, handle func(conn net.Conn)) {
		t.Helper()
		server := serveRaw(t, func(conn net.Conn, _ int) {
			requests(conn, func(*http.Request) bool {
				handle(conn)
				return false
			})
		})
		for _, road := range []Road{Plain, NetHTTP} {
			target := newTarget(t, road, server, timeout, func(c *promconfig.ScrapeConfig) { c.BodySizeLimit = 4 * large })
			var c collector
			r, err := target.Get(t.Context(), nil, c.take)
			require.Equal(t, reason, Reason(err), "%s: %v", road, err)
			require.Positive(t, c.parts)
			require.Empty(t, r.Body)
			require.Less(t, len(c.page), 4*large)
			require.LessOrEqual(t, cap(r.Body), piece)
		}
	}
	f(ReasonReset, patient, func(conn net.Conn) { sent(conn, len(page)+1) })
	f(ReasonReset, patient, func(conn net.Conn) {
		sent(conn, len(page)+1)
		conn.(*net.TCPConn).SetLinger(0)
	})
	f(ReasonTimeout, time.Second, func(conn net.Conn) {
		sent(conn, len(page)+10)
		for range 9 { // slowly but steadily
			if _, err := conn.Write([]byte("x")); err != nil {
				return
			}
		}
		hold(conn)
	})
	f(ReasonBodySize, patient, func(conn net.Conn) {
		_, err := fmt.Fprintf(conn, "%s\r\n", head200)
		for err == nil {
			_, err = conn.Write(page)
		}
	})
	f(ReasonBodySize, patient, func(conn net.Conn) {
		_, err := fmt.Fprintf(conn, "%sTransfer-Encoding: chunked\r\n\r\n", head200)
		for err == nil {
			_, err = fmt.Fprintf(conn, "%x\r\n%s\r\n", 1000, page[:1000])
		}
	})
}

func TestPartsEndWithTheirContext(t *testing.T) {
	page := pageOf(3 * large)
	server := serveRaw(t, func(conn net.Conn, _ int) {
		requests(conn, func(*http.Request) bool {
			fmt.Fprintf(conn, "%sContent-Length: %d\r\n\r\n%s", head200, len(page)+1, page)
			hold(conn)
			return false
		})
	})
	bothRoads(t, server, func(t *testing.T, target *Target) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_, err := target.Get(ctx, nil, func(Response) error {
			cancel()
			return nil
		})
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, ReasonCanceled, Reason(err))
	})
}

// A slow reader, with many pages to read, does not count against the target's timeout.
func TestTimeInPartsIsNotTheTargets(t *testing.T) {
	page := pageOf(3 * large)
	const timeout = 2 * time.Second
	server := answering(t, head200+framings["sized"](page), false)
	for _, road := range []Road{Plain, NetHTTP} {
		t.Run(road.String(), func(t *testing.T) {
			t.Parallel()
			slow := timeout + timeout/4
			r, err := newTarget(t, road, server, timeout).Get(t.Context(), nil, func(Response) error {
				time.Sleep(slow)
				slow = 0
				return nil
			})
			require.NoError(t, err)
			require.Len(t, page, int(r.Before)+len(r.Body))
		})
	}
}
