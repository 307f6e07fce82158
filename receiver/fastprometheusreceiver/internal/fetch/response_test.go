// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// readWire reads a response through a wire, in the pieces that the reader returns.
func readWire(r io.Reader, most int64) (head, string, error) {
	var h head
	w := wire{conn: r, buf: make([]byte, 64), memory: heap{}}
	if err := w.head(&h); err != nil {
		return h, "", err
	}
	h.contentType, h.encoding, h.status = bytes.Clone(h.contentType), bytes.Clone(h.encoding), bytes.Clone(h.status)
	err := w.body(&h, most)
	return h, string(w.buf[:w.n]), err
}

func TestReadsResponses(t *testing.T) {
	f := func(response, body string, reusable bool) {
		t.Helper()
		for _, r := range []io.Reader{strings.NewReader(response), iotest.OneByteReader(strings.NewReader(response))} {
			h, got, err := readWire(r, 1000)
			require.NoError(t, err)
			require.Equal(t, body, got)
			require.Equal(t, 200, h.code)
			require.Equal(t, reusable, h.reusable)
		}
	}
	f("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nup 1\n", "up 1\n", true)
	f("HTTP/1.1 200\r\ncontent-length:5\t\r\n\r\nup 1\n", "up 1\n", true)
	f("HTTP/1.1 200 OK\nContent-Length: 5\n\nup 1\n", "up 1\n", true)
	f("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nup 1\n", "up 1\n", true)
	f("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "", true)
	f("HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 5\r\n\r\nup 1\n", "up 1\n", false)
	f("HTTP/1.1 200 OK\r\n\r\nup 1\n", "up 1\n", false)
	f("HTTP/1.0 200 OK\r\n\r\nup 1\n", "up 1\n", false)
	f("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nup 1\n", "up 1\n", false)
	f("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nup 1\n", "up 1\n", true)
	f("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nup \r\n2;x=\"y\"\r\n1\n\r\n0\r\n\r\n", "up 1\n", true)
	f("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0005\r\nup 1\n\r\n000\r\nX-Trailer: 1\r\nY: 2\r\n\r\n", "up 1\n", true)
	f("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "", true)
}

// Of repeated headers the first one counts, as in net/http, and so in Prometheus.
func TestReadsRepeatedHeaders(t *testing.T) {
	h, _, err := readWire(strings.NewReader("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Type: a\r\nContent-Encoding: br\r\nContent-Type: b\r\n\r\n"), 1000)
	require.NoError(t, err)
	require.Equal(t, "gzip", string(h.encoding))
	require.Equal(t, "a", string(h.contentType))
}

func TestNoticesWhatNobodyAskedFor(t *testing.T) {
	f := func(response string) {
		t.Helper()
		h, body, err := readWire(strings.NewReader(response), 1000)
		require.NoError(t, err)
		require.Equal(t, "up 1\n", body)
		require.False(t, h.reusable)
	}
	f("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nup 1\nHTTP/1.1 200 OK\r\n")
	f("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nup 1\n\r\n0\r\n\r\nx")
}

func TestRefusesResponses(t *testing.T) {
	f := func(response, want string) {
		t.Helper()
		_, _, err := readWire(strings.NewReader(response), 1000)
		require.ErrorContains(t, err, want)
	}
	const ok = "HTTP/1.1 200 OK\r\n"
	f("", "EOF")
	f("HTTP/1.1", "unexpected EOF")
	f(ok, "unexpected EOF")
	f("SSH-2.0-OpenSSH_9.2\r\n", "malformed HTTP response")
	f("HTTP/2.0 200 OK\r\n\r\n", "malformed HTTP version")
	f("HTTP/1.1 20 OK\r\n\r\n", "malformed HTTP status code")
	f("HTTP/1.1 2x0 OK\r\n\r\n", "malformed HTTP status code")
	f("HTTP/1.1 099 No\r\n\r\n", "malformed HTTP status code")
	f("HTTP/1.1 101 Switching Protocols\r\n\r\n", "interim")
	f(strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 6)+ok+"\r\n", "interim")
	f(ok+"no colon\r\n\r\n", "malformed MIME header line")
	f(ok+" folded: 1\r\n\r\n", "malformed MIME header line")
	f(ok+"Content-Length : 5\r\n\r\nup 1\n", "malformed MIME header line")
	f(ok+"X: a\x00b\r\n\r\n", "malformed MIME header line")
	f(ok+"X: a\rb\r\n\r\n", "malformed MIME header line")
	f(ok+"Content-Length: 5\r\nContent-Length: 6\r\n\r\nup 1\n", "multiple Content-Length")
	f(ok+"Content-Length: 5, 5\r\n\r\nup 1\n", "bad Content-Length")
	f(ok+"Content-Length: +5\r\n\r\nup 1\n", "bad Content-Length")
	f(ok+"Content-Length:\r\n\r\nup 1\n", "bad Content-Length")
	f(ok+"Content-Length: 99999999999999999999\r\n\r\nup 1\n", "bad Content-Length")
	f(ok+"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "chunked")
	f("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "chunked")
	f(ok+"Transfer-Encoding: gzip\r\n\r\n", "unsupported transfer encoding")
	f(ok+"Transfer-Encoding: gzip, chunked\r\n\r\n", "unsupported transfer encoding")
	f(ok+"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", "unsupported transfer encoding")
	f(ok+"X: "+strings.Repeat("x", maxHead)+"\r\n\r\n", "headers exceeded 65536 bytes")
	f(ok+strings.Repeat("X: x\r\n", maxHead/6), "headers exceeded 65536 bytes")

	f(ok+"Content-Length: 6\r\n\r\nup 1\n", "unexpected EOF")
	f(ok+"Content-Length: 1001\r\n\r\nup 1\n", "body size limit exceeded")
	f(ok+"\r\n"+strings.Repeat("x", 1001), "body size limit exceeded")
	const chunked = ok + "Transfer-Encoding: chunked\r\n\r\n"
	f(chunked, "unexpected EOF")
	f(chunked+"5\r\nup", "unexpected EOF")
	f(chunked+"5\r\nup 1\n", "unexpected EOF")
	f(chunked+"5\r\nup 1\n\r\n", "unexpected EOF")
	f(chunked+"5\r\nup 1\n\r\n0\r\n", "unexpected EOF")
	f(chunked+"5\r\nup 1\nx\r\n0\r\n\r\n", "malformed chunked encoding")
	f(chunked+"5\nup 1\n\r\n0\r\n\r\n", "bare LF")
	f(chunked+"x\r\n", "invalid byte in chunk length")
	f(chunked+"\r\n", "invalid chunk length")
	f(chunked+"-5\r\nup 1\n\r\n0\r\n\r\n", "invalid byte in chunk length")
	f(chunked+"fffffffffffffffff\r\n", "invalid chunk length")
	f(chunked+"3e9\r\n", "body size limit exceeded")
	f(chunked+"1\r\nx\r\n3e8\r\n", "body size limit exceeded")
	f(chunked+"5;"+strings.Repeat("x", maxLine)+"\r\n", "malformed chunked encoding")
	f(chunked+strings.Repeat("1;"+strings.Repeat("x", maxLine-100)+"\r\nx\r\n", 20), "too much non-data")
	f(chunked+"0\r\n"+strings.Repeat("X: x\r\n", maxTrailer/6+1), "malformed chunked encoding")
	f(chunked+"0\r\nno colon\r\n\r\n", "malformed trailer line")
}

// An error quotes little of what a peer sent.
func TestQuotesLittle(t *testing.T) {
	_, _, err := readWire(strings.NewReader(strings.Repeat("x", 60<<10)+" \r\n"), 10)
	require.Error(t, err)
	require.Less(t, len(err.Error()), 2*maxQuoted)
}

// FuzzResponse checks that responses that net/http and we accept are read in the same way. Some are only accepted by
// net/http, intentionally: other versions of HTTP, codes below 100, folded lines, odd names, several framings at once,
// and interim responses, which its transport skips.
func FuzzResponse(f *testing.F) {
	for _, seed := range []string{
		"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nup 1\n",
		"HTTP/1.1 200 OK\nContent-Encoding: gzip\nConnection: keep-alive, close\n\nup 1\n",
		"HTTP/1.0 404 Not Found\r\nLocation: /x\r\n\r\nup 1\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nup \r\n2;x=y\r\n1\n\r\n0\r\nX: y\r\n\r\n",
		"HTTP/1.1 204 \r\nX:\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nup",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, response []byte) {
		h, body, err := readWire(bytes.NewReader(response), 1<<20)
		_, slowBody, slowErr := readWire(iotest.OneByteReader(bytes.NewReader(response)), 1<<20)
		require.Equal(t, err == nil, slowErr == nil, "at once: %v, byte by byte: %v", err, slowErr)
		if err != nil {
			return
		}
		require.Equal(t, body, slowBody)
		want, wantErr := http.ReadResponse(bufio.NewReader(bytes.NewReader(response)), nil)
		if wantErr != nil || want.StatusCode < 200 {
			return
		}
		defer want.Body.Close()
		wantBody, wantErr := io.ReadAll(want.Body)
		if wantErr != nil {
			return
		}
		require.Equal(t, string(wantBody), body)
		require.Equal(t, want.StatusCode, h.code)
		require.Equal(t, want.Status, string(h.status))
		require.Equal(t, strings.TrimSpace(want.Header.Get("Content-Type")), string(h.contentType))
		require.Equal(t, strings.TrimSpace(want.Header.Get("Content-Encoding")), string(h.encoding))
		if h.reusable {
			require.False(t, want.Close)
		}
	})
}
