// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
)

// maxHead limits the head of a response: status line, headers, and the interim responses before it.
const maxHead = 64 << 10

// maxQuoted limits what an error quotes from a peer.
const maxQuoted = 256

// A head is what the exchange needs from a response's head. Slices alias the input.
type head struct {
	code        int
	status      []byte // code and reason
	contentType []byte
	encoding    []byte // nil when there is none
	length      int64  // -1 when there is none
	chunked     bool
	location    bool
	reusable    bool // the connection stays open after the response

	typed, packed bool // the header was seen
}

// parseHead parses the response head at the beginning of b and returns its size, or zero when b ends within it. It is
// stricter than net/http where the end of the body depends on it: lines that are not headers, spaces in names,
// folded lines, ambiguous or unknown framing are errors, and HTTP is 1.0 or 1.1.
func parseHead(b []byte, h *head) (int, error) {
	*h = head{length: -1}
	line, n := cutLine(b)
	if n == 0 {
		return 0, nil
	}
	minor, err := h.statusLine(line)
	if err != nil {
		return 0, err
	}
	h.reusable = minor > 0
	for {
		line, used := cutLine(b[n:])
		if used == 0 {
			return 0, nil
		}
		n += used
		if len(line) == 0 {
			break
		}
		if line[0] == ' ' || line[0] == '\t' {
			return 0, errFolded
		}
		if err := h.field(line); err != nil {
			return 0, err
		}
	}
	if h.chunked && (h.length >= 0 || minor == 0) {
		return 0, errAmbiguous
	}
	return n, nil
}

// Nobody should send these: a header in several lines or with a space in its name, and a body whose end is said in two ways. Who does so is
// talked to by net/http, which has its ways with them, and Prometheus with it.
var (
	errSpaced    = malformed("malformed MIME header line: its name has a space", nil)
	errFolded    = malformed("malformed MIME header line: it is the rest of another", nil)
	errAmbiguous = malformed("Content-Length or HTTP/1.0 with chunked transfer encoding", nil)
)

// isOdd reports whether a fault of a head is one of these.
func isOdd(err error) bool {
	return errors.Is(err, errSpaced) || errors.Is(err, errFolded) || errors.Is(err, errAmbiguous)
}

// cutLine returns the first line of b without its end, and its size with it: zero when b holds no whole line.
func cutLine(b []byte) ([]byte, int) {
	i := bytes.IndexByte(b, '\n')
	if i < 0 {
		return nil, 0
	}
	return bytes.TrimSuffix(b[:i], []byte("\r")), i + 1
}

func (h *head) statusLine(line []byte) (minor int, err error) {
	version, status, ok := bytes.Cut(line, []byte(" "))
	if !ok {
		return 0, malformed("malformed HTTP response", line)
	}
	digit := bytes.TrimPrefix(version, []byte("HTTP/1."))
	if len(digit) != 1 || len(version) != len("HTTP/1.1") || digit[0] != '0' && digit[0] != '1' {
		return 0, malformed("malformed HTTP version", version)
	}
	minor = int(digit[0] - '0')
	h.status = bytes.TrimLeft(status, " ")
	code, _, _ := bytes.Cut(h.status, []byte(" "))
	if len(code) != 3 {
		return 0, malformed("malformed HTTP status code", code)
	}
	for _, c := range code {
		if c < '0' || c > '9' {
			return 0, malformed("malformed HTTP status code", code)
		}
		h.code = 10*h.code + int(c-'0')
	}
	if h.code < 100 {
		return 0, malformed("malformed HTTP status code", code)
	}
	return minor, nil
}

func (h *head) field(line []byte) error {
	name, value, ok := bytes.Cut(line, []byte(":"))
	if ok && bytes.IndexByte(name, ' ') >= 0 {
		return errSpaced
	}
	if !ok || !validName(name) || !validValue(value) {
		return malformed("malformed MIME header line:", line)
	}
	value = bytes.Trim(value, " \t")
	switch {
	case is(name, "content-length"):
		return h.contentLength(value)
	case is(name, "transfer-encoding"):
		if h.chunked || !is(value, "chunked") {
			return malformed("unsupported transfer encoding:", value)
		}
		h.chunked = true
	case is(name, "content-type"):
		if !h.typed {
			h.contentType, h.typed = value, true
		}
	case is(name, "content-encoding"):
		if !h.packed {
			h.encoding, h.packed = value, true
		}
	case is(name, "connection"):
		for option := range bytes.SplitSeq(value, []byte(",")) {
			if is(bytes.Trim(option, " \t"), "close") {
				h.reusable = false
			}
		}
	case is(name, "location"):
		h.location = h.location || len(value) > 0
	}
	return nil
}

func (h *head) contentLength(value []byte) error {
	n := int64(0)
	for _, c := range value {
		if c < '0' || c > '9' || n > (math.MaxInt64-9)/10 {
			return malformed("bad Content-Length", value)
		}
		n = 10*n + int64(c-'0')
	}
	if len(value) == 0 {
		return malformed("bad Content-Length", value)
	}
	if h.length >= 0 && h.length != n {
		return malformed("http: message cannot contain multiple Content-Length headers; got also", value)
	}
	h.length = n
	return nil
}

// is reports whether b equals the lower-case s in ASCII, whatever b's case.
func is(b []byte, s string) bool {
	if len(b) != len(s) {
		return false
	}
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != s[i] {
			return false
		}
	}
	return true
}

// redirects reports whether the response is a redirect.
func (h *head) redirects() bool {
	switch h.code {
	case 301, 302, 303, 307, 308:
		return h.location
	}
	return false
}

// An Encoding is how a body is compressed.
type Encoding uint8

// The encodings a body may have.
const (
	Identity Encoding = iota
	Gzip
	Zstd
)

const gzipCoding = "gzip"

var encodings = [...]string{Identity: identity, Gzip: gzipCoding, Zstd: "zstd"}

func (e Encoding) String() string { return encodings[e] }

func parseEncoding(value []byte) (Encoding, error) {
	switch {
	case len(value) == 0 || is(value, encodings[Identity]):
		return Identity, nil
	case is(value, encodings[Gzip]) || is(value, "x-gzip"):
		return Gzip, nil
	case is(value, encodings[Zstd]):
		return Zstd, nil
	case isCompression(value):
		return Identity, &encodingError{fmt.Errorf("unsupported content encoding %.64q", value)}
	default:
		return Identity, nil
	}
}

// compressions are encodings that were not asked for, but that a body may have. Any other value is from servers that
// mean something else by it, such as a charset, and send plain pages to Prometheus, whose clients know gzip only.
var compressions = []string{"aes128gcm", "br", "bzip2", "compress", "dcb", "dcz", "deflate", "exi", gzipCoding, "lz4", "pack200-gzip", "snappy", "x-bzip2", "x-compress", "x-gzip", "x-snappy", "xz", "zstd"}

func isCompression(value []byte) bool {
	for part := range bytes.SplitSeq(value, []byte(",")) {
		part = bytes.Trim(part, " \t")
		if slices.ContainsFunc(compressions, func(name string) bool { return is(part, name) }) {
			return true
		}
	}
	return false
}
