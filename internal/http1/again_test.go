// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package http1

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// clientHeads are those of clients, and similar ones. Each has a placeholder for the length of its body.
var clientHeads = []string{
	"POST /api/v1/write HTTP/1.1\r\nHost: h\r\nUser-Agent: u\r\nContent-Length: %s\r\nContent-Encoding: snappy\r\nX-Of: a\r\nX-Of: b\r\n\r\n",
	"POST /api/v1/write?x=y HTTP/1.1\r\nContent-Length: %s\r\nHost: h\r\n\r\n",
	"POST http://user:word@h/a%%20b HTTP/1.1\r\nHost: other\r\nContent-Length: %s\r\n\r\n",
	"POST / HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: %s\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: %s\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\ncontent-length: %s\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %s \r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %[1]s\r\nContent-Length: %[1]s\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %[1]s\r\ncontent-length: %[1]s\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\nX-Content-Length: 1\r\nContent-Length: %s\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: %s\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: %s\r\n\r\n2\r\nab\r\n0\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nX: %s\r\n\r\n2\r\nab\r\n0\r\n\r\n",
	"POST / HTTP/1.1\r\nContent-Length: %s\r\nHost: h\n\n", // the rest looks like a part of the head
	"POST / HTTP/1.1\nContent-Length: %s\nHost: h\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: h\r\nX: %s\r\n\r\n",
	"POST / HTTP/1.1\r\nContent-Length: %s\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("x", 2*mostHead) + "\r\nContent-Length: %s\r\n\r\n",
}

// said returns the contents of a request, with its body.
func said(q *http.Request, err error) string {
	if err != nil {
		return err.Error()
	}
	body, err := io.ReadAll(q.Body)
	return fmt.Sprintf("%s %v %s %d %d %q %s %d %v %v %v %s %q %v", q.Method, q.URL, q.Proto, q.ProtoMajor, q.ProtoMinor, fmt.Sprint(q.Header), q.Host,
		q.ContentLength, q.Close, q.TransferEncoding, q.Trailer, q.RequestURI, body, err)
}

// Whether a head is parsed or recognized, a request is the same as net/http's: for consecutive requests that differ in
// some bytes, complete or not, in pieces or not, and whatever a handler does with the previous ones.
func TestAHeadThatComesAgainMeansTheSame(t *testing.T) {
	again := 0
	for seed := range uint64(4000) {
		random := rand.New(rand.NewPCG(seed, 11))
		head := clientHeads[random.IntN(len(clientHeads))]
		var all strings.Builder
		for range 2 + random.IntN(5) {
			if random.IntN(4) == 0 {
				head = clientHeads[random.IntN(len(clientHeads))]
			}
			body := strings.Repeat([]string{"b", "\r\n\r\n", "Content-Length: 1\r\n"}[random.IntN(3)], []int{0, 1, 1, 2, 7, 400}[random.IntN(6)])
			length := fmt.Sprint(len(body))
			if random.IntN(10) == 0 {
				length = []string{"", "00" + length, "+" + length, "1 2", "99999999999999999999", "-1"}[random.IntN(6)]
			}
			text := []byte(fmt.Sprintf(head, length) + body)
			if random.IntN(6) == 0 {
				text[random.IntN(min(len(text), 200))] ^= 1 << random.IntN(8)
			}
			all.Write(text)
		}
		text := all.String()
		if random.IntN(4) == 0 {
			text = text[:random.IntN(len(text))]
		}
		var from io.Reader = strings.NewReader(text)
		if random.IntN(3) == 0 {
			from = &pieces{random, from}
		}
		c := &conn{in: bufio.NewReader(from)}
		twin := bufio.NewReader(strings.NewReader(text))
		for {
			_, _ = c.in.Peek(1) // like a server that waits for a request
			wanted, wantErr := http.ReadRequest(twin)
			want := said(wanted, wantErr)
			had := c.last.request
			got, err := c.request(t.Context())
			require.Equal(t, want, said(got, err), "seed %d", seed)
			if had != nil && had == c.last.request {
				again++
			}
			if err != nil {
				break
			}
			got.Header.Set("Content-Encoding", "changed")
			got.Header["X-Of"] = append(got.Header["X-Of"], "more")
			if of := got.Header["X-Of"]; len(of) > 1 {
				of[0] = "changed"
			}
			got.URL.Path = "/changed"
			_ = got.Body.Close() // damaged chunks are an error
		}
	}
	require.Greater(t, again, 300, "heads come again")
}

// pieces returns some bytes at a time.
type pieces struct {
	random *rand.Rand
	of     io.Reader
}

func (p *pieces) Read(b []byte) (int, error) { return p.of.Read(b[:min(len(b), 1+p.random.IntN(300))]) }

// Reading a truncated body fails, and a closed one returns nothing of the next request.
func TestABodyBehindAKnownHead(t *testing.T) {
	head := "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\n"
	c := &conn{in: bufio.NewReader(strings.NewReader(head + "abc" + head + "de"))}
	_, err := c.in.Peek(1) // like a server that waits for a request
	require.NoError(t, err)
	first, err := c.request(t.Context())
	require.NoError(t, err)
	_, err = io.ReadAll(first.Body)
	require.NoError(t, err)
	second, err := c.request(t.Context())
	require.NoError(t, err)
	require.IsType(t, &sizedBody{}, second.Body)
	body, err := io.ReadAll(second.Body)
	require.Equal(t, "de", string(body))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.NoError(t, second.Body.Close())
	_, err = second.Body.Read(make([]byte, 1))
	require.ErrorIs(t, err, http.ErrBodyReadAfterClose)
}

// The date of a response is that of its second.
func TestTheDateOfAnAnswer(t *testing.T) {
	var d dateLine
	for _, at := range []string{"Thu, 01 Jan 1970 00:00:00 GMT", "Thu, 26 Nov 2026 23:59:59 GMT", "Thu, 26 Nov 2026 23:59:59 GMT", "Fri, 27 Nov 2026 00:00:00 GMT", "Thu, 26 Nov 2026 23:59:59 GMT"} {
		now, err := http.ParseTime(at)
		require.NoError(t, err)
		require.Equal(t, "Date: "+at+"\r\n", string(d.line(now.In(time.FixedZone("east", 3600)))))
	}
}
