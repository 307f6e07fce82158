// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"bytes"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

var zstdEncoder, _ = zstd.NewWriter(nil) // without options there is no error

// encode returns the encoded body and its content encoding.
func encode(page Page, accept []string) (body []byte, encoding string) {
	encodings := page.Encodings
	if encodings == nil {
		encodings = []string{"zstd", "gzip"}
	}
	accepted := parseAccept(accept)
	for _, encoding := range encodings {
		if !slices.Contains(accepted, encoding) {
			continue
		}
		switch encoding {
		case "zstd":
			return zstdEncoder.EncodeAll([]byte(page.Body), nil), encoding
		case "gzip":
			var b bytes.Buffer
			w := gzip.NewWriter(&b)
			_, _ = w.Write([]byte(page.Body)) // a buffer accepts everything
			_ = w.Close()
			return b.Bytes(), encoding
		}
	}
	return []byte(page.Body), ""
}

// parseAccept returns the encodings of Accept-Encoding without those that q=0 excludes.
func parseAccept(values []string) []string {
	var accepted []string
	for item := range strings.SplitSeq(strings.Join(values, ","), ",") {
		name, params, _ := strings.Cut(strings.ToLower(item), ";")
		q := strings.ReplaceAll(params, " ", "")
		if q == "q=0" || strings.HasPrefix(q, "q=0.") && strings.Trim(q[len("q=0."):], "0") == "" {
			continue
		}
		accepted = append(accepted, strings.TrimSpace(name))
	}
	return accepted
}
