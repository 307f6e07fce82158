// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"bytes"
	"errors"
	"html"
	"mime"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// proxied is the error for an answer that no server of OTLP makes: most come from a proxy in front of it.
type proxied struct{ error }

func (p proxied) Unwrap() error { return p.error }

// GRPCStatus makes the status of the error be found without a change of its text.
func (p proxied) GRPCStatus() *status.Status { return status.Convert(p.error) }

// ByProxy reports whether a request failed with an answer that no server of OTLP makes. It is about the way to the
// server, and says nothing about the request.
func ByProxy(err error) bool { return errors.As(err, new(proxied)) }

// isPage reports whether a body is a web page.
func isPage(body []byte) bool { return strings.HasPrefix(http.DetectContentType(body), "text/html") }

// mostSaid limits, in bytes, how much of an answer is put into an error.
const mostSaid = 256

// said is what the body of a refusal says to people: the title of a web page, the message of a server, or a text.
func said(contentType string, body []byte) string {
	kind, _, _ := mime.ParseMediaType(contentType)
	switch {
	case isPage(body):
		return shortened(html.UnescapeString(titleOf(body)))
	case kind == protobufType:
		var s spb.Status
		if proto.Unmarshal(body, &s) != nil {
			return ""
		}
		return shortened(s.GetMessage())
	}
	return shortened(string(body))
}

// titleOf returns the text of the title of a web page, which may be empty.
func titleOf(page []byte) string {
	lower := bytes.ToLower(page)
	if len(lower) != len(page) { // some letters have another length in lower case
		return ""
	}
	begin := bytes.Index(lower, []byte("<title>"))
	if begin < 0 {
		return ""
	}
	begin += len("<title>")
	end := bytes.IndexByte(page[begin:], '<')
	if end < 0 {
		return ""
	}
	return string(page[begin : begin+end])
}

// shortened makes a short line of a text, an empty one of other data.
func shortened(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > mostSaid {
		text = strings.ToValidUTF8(text[:mostSaid], "") + "..."
	}
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return ""
	}
	return text
}
