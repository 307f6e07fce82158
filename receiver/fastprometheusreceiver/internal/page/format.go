// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"strings"

	promconfig "github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/textparse"
)

// A format is how a page is read.
type format uint8

const (
	unknownFormat format = iota
	textFormat
	openMetricsFormat
	protobufFormat
)

// mostFormats limits how many Content-Types are remembered.
const mostFormats = 64

// format chooses how a page is read, as Prometheus does.
func (j *Job) format(contentType string) (format, error) {
	j.mu.Lock()
	f, ok := j.formats[contentType]
	j.mu.Unlock()
	if ok {
		return f, nil
	}
	p, err := textparse.New(nil, contentType, nil, textparse.ParserOptions{FallbackContentType: fallback(j.cfg.Scrape)})
	switch p.(type) {
	case nil:
		return unknownFormat, err
	case *textparse.OpenMetricsParser:
		f = openMetricsFormat
	case *textparse.ProtobufParser:
		f = protobufFormat
	default:
		f = textFormat
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.formats) < mostFormats {
		j.formats[strings.Clone(contentType)] = f
	}
	return f, nil
}

// fallback is the media type of a page whose Content-Type is missing or unknown.
func fallback(cfg *promconfig.ScrapeConfig) string {
	return cfg.ScrapeFallbackProtocol.HeaderMediaType()
}
