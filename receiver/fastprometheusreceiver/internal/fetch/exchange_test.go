// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"testing"

	promconfig "github.com/prometheus/prometheus/config"
	"github.com/stretchr/testify/require"
)

// A generated is a response in the pieces in which it is sent.
type generated struct {
	bytes  []byte
	pieces int
	closes bool
}

// generate returns a valid response with random framing, encoding, headers and pieces.
func generate(t *testing.T, r *rand.Rand) generated {
	t.Helper()
	body := pageOf(1 + r.IntN(20<<10))
	var b bytes.Buffer
	pick := func(choices ...string) string { return choices[r.IntN(len(choices))] }
	for range r.IntN(3) {
		b.WriteString(pick("HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"))
	}
	proto := pick("HTTP/1.1", "HTTP/1.1", "HTTP/1.0")
	b.WriteString(proto + pick(" 200 OK", " 200 ", " 200", " 200 Fine by me", " 404 Not Found", " 500 Internal Server Error", " 304 Not Modified", " 204 No Content") + "\r\n")
	b.WriteString(pick("", "Content-Type: text/plain; version=0.0.4\r\n", "content-type:application/openmetrics-text; version=1.0.0\r\nContent-Type: x\r\n"))
	switch r.IntN(5) {
	case 0:
		body = gzipped(t, body)
		b.WriteString(pick("Content-Encoding: gzip\r\n", "content-encoding: X-GZIP\r\n"))
	case 1:
		body = zstded(t, body)
		b.WriteString("Content-Encoding:\tzstd \r\n")
	case 2:
		b.WriteString(pick("Content-Encoding: identity\r\n", "Content-Encoding:\r\n", "Content-Encoding: br\r\n"))
	}
	closes := proto == "HTTP/1.0"
	if r.IntN(4) == 0 {
		b.WriteString("Connection: close\r\n")
		closes = true
	}
	if bytes.Contains(b.Bytes(), []byte(" 304 ")) || bytes.Contains(b.Bytes(), []byte(" 204 ")) {
		b.WriteString("\r\n")
		return generated{b.Bytes(), 1, closes}
	}
	framing := r.IntN(3)
	if proto == "HTTP/1.0" {
		framing %= 2
	}
	switch framing {
	case 0:
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n", len(body))
		b.Write(body)
	case 1:
		b.WriteString("\r\n")
		b.Write(body)
		closes = true
	default:
		b.WriteString("Transfer-Encoding: " + pick("chunked", "Chunked") + "\r\n\r\n")
		for len(body) > 0 {
			n := min(1+r.IntN(1+len(body)), len(body))
			b.WriteString(pick("", "0", "00") + strconv.FormatInt(int64(n), 16) + pick("", "", ";name=value", " ") + "\r\n")
			b.Write(body[:n])
			b.WriteString("\r\n")
			body = body[n:]
		}
		b.WriteString("0\r\n" + pick("", "X-Trailer: yes\r\n") + "\r\n")
	}
	return generated{b.Bytes(), 1 + r.IntN(4), closes}
}

// send writes the response in pieces.
func (g generated) send(w io.Writer) {
	for i := range g.pieces {
		begin, end := i*len(g.bytes)/g.pieces, (i+1)*len(g.bytes)/g.pieces
		if _, err := w.Write(g.bytes[begin:end]); err != nil {
			return
		}
	}
}

func TestBothRoadsReadTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	next := make(chan generated, 1)
	handle := func(conn net.Conn, _ int) {
		requests(conn, func(*http.Request) bool {
			g := <-next
			g.send(conn)
			return !g.closes
		})
	}
	t.Run("plain", func(t *testing.T) {
		server := serveRaw(t, handle)
		readTheSame(t, r, next, [2]*Target{Plain: newTarget(t, Plain, server, patient), NetHTTP: newTarget(t, NetHTTP, server, patient)})
	})
	t.Run("TLS", func(t *testing.T) {
		server, trust := throughTLS(t, handle)
		never := func(c *promconfig.ScrapeConfig) { c.HTTPClientConfig.EnableHTTP2 = false }
		readTheSame(t, r, next, [2]*Target{Plain: newTarget(t, Plain, server, patient, trust, never), NetHTTP: newTarget(t, NetHTTP, server, patient, trust, never)})
	})
}

func readTheSame(t *testing.T, r *rand.Rand, next chan<- generated, targets [2]*Target) {
	t.Helper()
	d := &Decoder{}
	for i := range 400 {
		g := generate(t, r)
		var pages [2][]byte
		var responses [2]Response
		var errs [2]error
		for road, target := range targets {
			next <- g
			responses[road], errs[road] = target.Get(t.Context(), nil, nil)
			if errs[road] == nil {
				pages[road], errs[road] = decode(d, responses[road], 0)
			}
		}
		response := fmt.Sprintf("response %d: %.300q", i, g.bytes)
		if errs[NetHTTP] != nil {
			require.Error(t, errs[Plain], response)
			require.Equal(t, errs[NetHTTP].Error(), errs[Plain].Error(), response)
			require.Equal(t, Reason(errs[NetHTTP]), Reason(errs[Plain]), response)
			continue
		}
		require.NoError(t, errs[Plain], response)
		require.Equal(t, responses[NetHTTP].ContentType, responses[Plain].ContentType, response)
		require.Equal(t, responses[NetHTTP].Encoding, responses[Plain].Encoding, response)
		require.True(t, bytes.Equal(pages[NetHTTP], pages[Plain]), response)
	}
}
